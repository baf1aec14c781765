import type { Limits } from '../../protocol/limits.ts';
import { PER_ADDRESS, TOTAL } from './connection-limits.ts';
import { HEADER_LIMIT, REQUEST_TIMEOUT } from './server.ts';

export const station: Limits = {
  'TCP connections from outside without TLS': {
    value: [PER_ADDRESS, TOTAL, REQUEST_TIMEOUT],
    unit: '# of an address, # in all, #s; over TLS they are HTTP connections until the upgrade',
    filledBy: 'anyone',
    next: 'An upgrade: the oldest is closed. REST on loopback has its own limit.',
    freedWhen: 'The connection closes, or becomes a WebSocket',
    test: ['test/server/websocket/station.test.ts', 'test/server/rest/connection-limits.test.ts'],
  },
  'HTTP connections of one address': {
    value: [PER_ADDRESS, REQUEST_TIMEOUT],
    filledBy: 'anyone at that address',
    next: 'At that address: closed at once. Elsewhere: an answer.',
    freedWhen: 'The connection closes; 10 s for the TLS handshake, #s per request, 1 s for what is not HTTP',
    test: ['test/server/rest/connection-limits.test.ts', 'test/server/rest/tls-connections.test.ts'],
  },
  'HTTP connections of all': {
    value: [TOTAL, TOTAL / PER_ADDRESS],
    filledBy: 'anyone with # addresses',
    next: 'An answer: the oldest connection is closed',
    freedWhen: 'The connection closes, or makes way',
    test: 'test/server/rest/connection-limits.test.ts',
  },
  'HTTP headers of one request': {
    value: HEADER_LIMIT,
    unit: '#B',
    filledBy: 'anyone',
    next: 'The sender gets 431, and is closed',
    freedWhen: 'At once',
    test: 'test/server/rest/rest.test.ts',
  },
};
