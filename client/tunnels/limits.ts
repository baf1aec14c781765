import type { Limits } from '../../protocol/limits.ts';
import { MAX_WAITING } from './udp-flow.ts';
import { IDLE_TIMEOUT, MAX_FLOWS, MAX_LEAVING, MAX_LEAVING_BYTES } from './udp-listener.ts';

export const client: Limits = {
  'Flows of a local UDP tunnel': {
    value: [MAX_FLOWS, IDLE_TIMEOUT],
    setting: '`maxFlows`',
    filledBy: 'local programs',
    next: 'A flow: the one that was silent longest ends',
    freedWhen: '#s without a datagram (`idleTimeout`); the device ends it',
    test: 'test/client/tunnels/udp.test.ts',
  },
  'Datagrams of one flow of a local UDP tunnel that wait while the device grants no stream': {
    value: MAX_WAITING,
    filledBy: 'the local program of that flow',
    next: 'The oldest of that flow is dropped. Other flows have their own.',
    freedWhen: 'The device grants the stream; the flow ends',
    test: 'test/client/tunnels/udp-queues.test.ts',
  },
  'Datagrams of a local UDP tunnel that wait to leave for local programs': {
    value: [MAX_LEAVING, MAX_LEAVING_BYTES],
    unit: '#, of #B together',
    filledBy: 'the device, while the socket does not send',
    next: 'Dropped; other tunnels have sockets of their own',
    freedWhen: 'They have left',
    test: 'test/client/tunnels/udp-queues.test.ts',
  },
};
