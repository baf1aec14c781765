import { LONGEST, MAX_BYTES, MAX_PARTS, MAX_SETS, PART_COST } from '../../protocol/datagrams/parts.ts';
import type { Limits } from '../../protocol/limits.ts';
import { MAX_EARLY, MAX_EARLY_BYTES } from './datagrams.ts';
import { PAUSE } from './idle-sweeper.ts';

export const device: Limits = {
  'Tunnel datagrams without a flow': {
    value: [MAX_EARLY, MAX_EARLY_BYTES, PAUSE, 2 * PAUSE],
    unit: '# of one connection, #B',
    filledBy: 'that client',
    next: 'The oldest is dropped, on that connection alone',
    freedWhen: 'Its flow opens; #s to #s',
    test: 'test/runtime/session/datagrams.test.ts',
  },
  'Tunnel datagrams that lack a part': {
    value: [MAX_SETS, MAX_BYTES, MAX_PARTS, PART_COST, LONGEST],
    unit: '# of one connection, #B, in up to # parts, each counted with # bytes more',
    protocol: ['incomplete datagrams of a connection: number, bytes, time', 'parts of a UDP datagram'],
    filledBy: 'that client',
    next: 'The oldest is given up and counted, on that connection alone',
    freedWhen: 'It is complete; #s, noticed with the next part or within 5 s',
    test: 'test/protocol/datagrams/parts.test.ts',
  },
};
