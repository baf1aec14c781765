import type { Limits } from '../../protocol/limits.ts';
import { MAX_SERVICES } from './node-port-forwarding.ts';
import { MAX_WAITING, WAIT } from './node-tcp-port.ts';

export const client: Limits = {
  'Services of one `PortForwarding`, as of `svc tunnel`': {
    value: MAX_SERVICES,
    filledBy: 'its own application',
    next: 'INVALID_ARGUMENT before anything is open; another one may be opened',
    freedWhen: 'It is closed',
    test: 'test/client/forwarding/port-forwarding.test.ts',
  },
  'TCP connections to a forwarded port that wait while there is no connection to the device': {
    value: [MAX_WAITING, WAIT],
    unit: '# for each service',
    filledBy: 'programs that reach the local port; beyond loopback (`--listen`) anyone there',
    next: 'A reset, which the owner sees. Those of other services keep waiting.',
    freedWhen: 'There is a connection, or each after #s, also where the program has given up',
    test: 'test/client/forwarding/tcp-port.test.ts',
  },
};
