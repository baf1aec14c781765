import type { Limits } from '../../protocol/limits.ts';
import { IDLE_TIMEOUT, MAX_FLOWS } from './udp-listener.ts';

export const client: Limits = {
  'Flows of a local UDP tunnel': {
    value: [MAX_FLOWS, IDLE_TIMEOUT],
    setting: '`maxFlows`',
    filledBy: 'local programs',
    next: 'A flow: the one that was silent longest ends',
    freedWhen: '#s without a datagram (`idleTimeout`); the device ends it',
    test: 'test/client/tunnels/udp.test.ts',
  },
};
