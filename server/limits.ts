import { HALF_OPEN_LIFETIME, MAX_LIFETIME } from '../protocol/endpoint/half-open.ts';
import type { Limits } from '../protocol/limits.ts';
import { HALF_OPEN, RETRY_ABOVE, SPARE_SLOTS } from './basestation.ts';
import { CONNECTIONS, PATIENCE } from './status-socket.ts';

export const station: Limits = {
  'Half-open handshakes': {
    value: [HALF_OPEN, RETRY_ABOVE, RETRY_ABOVE, HALF_OPEN_LIFETIME, HALF_OPEN_LIFETIME, MAX_LIFETIME],
    unit: '#; above # an address must be validated by Retry',
    protocol: 'half-open handshake',
    filledBy: 'anyone; with forged addresses up to #',
    next:
      'A Retry, then a Respond: the oldest entry makes way if it was begun #s ago, else the oldest of an address that is not ' +
      'validated, then the oldest of all',
    freedWhen: 'The handshake completes; #s after its last packet, #s at most',
    test: ['test/protocol/endpoint/load.test.ts', 'test/protocol/endpoint/half-open.test.ts'],
  },
  'Core slots beyond the connections': {
    value: SPARE_SLOTS,
    unit: 'a quarter as many, plus #',
    filledBy: 'anyone who connects to a full station',
    next: 'A Reset in place of BUSY',
    freedWhen: 'The closed connection is forgotten',
    test: 'test/protocol/endpoint/load.test.ts',
  },
  'Connections to the status socket': {
    value: [CONNECTIONS, PATIENCE, PATIENCE],
    unit: '#, #s each',
    filledBy: "programs of the base station's own user",
    next: '`svc admin device list` does not say which devices are attached',
    freedWhen: 'The document has been sent; #s',
    test: 'test/server/status-socket.test.ts',
  },
};
