import type { Limits } from '../limits.ts';
import { MIN_PAUSE, MIN_REST, REST, TRIES } from './port-mapping.ts';

export const device: Limits = {
  'Requests to a gateway for a mapped port': {
    value: [TRIES.PCP + TRIES['NAT-PMP'], MIN_REST / 60_000, REST / 60_000, MIN_PAUSE],
    unit: '# in 29 s, then none for # to # minutes; for a mapping that works, at most two every #s',
    filledBy: 'a gateway that refuses, is silent or lies',
    next: 'No mapped address from that gateway. Others are asked.',
    freedWhen: "The pause is over, or the mapping's half life, 30 s to 12 h",
    test: ['test/runtime/port-mapping/port-mapper.test.ts', 'test/protocol/verbs.test.ts'],
  },
};
