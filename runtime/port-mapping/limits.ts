import type { Limits } from '../../protocol/limits.ts';
import { MAX_GATEWAYS } from './gateways.ts';

export const device: Limits = {
  'Gateways that are asked for mapped ports': {
    value: MAX_GATEWAYS,
    unit: '#, and an address of each',
    filledBy: "the network's router",
    next: 'The first ones are taken',
    freedWhen: 'The route is gone; the mapping ends',
    test: 'test/runtime/port-mapping/port-mapper.test.ts',
  },
};
