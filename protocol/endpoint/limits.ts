import { LONGEST_REST } from '../connection/rest.ts';
import type { Limits } from '../limits.ts';
import { HANDSHAKE_RATE } from './accepting.ts';
import { BARE_ROUTE_TIME } from './bare-routes.ts';
import { MAX_WAITING } from './batch.ts';
import { FAILURE_RATE } from './completing.ts';
import { MAX_EARLY } from './half-open.ts';
import { BEYOND, MAX_NETWORKS, OVERALL, PER_NETWORK } from './rate.ts';
import { MAX_SHARED } from './remote-ids.ts';
import { RATE as RESET_RATE } from './reset.ts';

export const both: Limits = {
  'Initiates processed while an address must be validated': {
    value: [PER_NETWORK, OVERALL, BEYOND],
    unit: '# a second from one address, # in all, and # a second beyond these limits',
    filledBy: 'anyone; with forged addresses all of it',
    next: 'From its own address: a Retry. Under a flood from forged addresses: a share of the rate, and the client repeats.',
    freedWhen: 'The rate allows the next',
    test: ['test/protocol/endpoint/rate.test.ts', 'test/protocol/endpoint/load.test.ts'],
  },
  'Handshakes from one address while an address must be validated': {
    value: HANDSHAKE_RATE,
    unit: '# a second',
    filledBy: 'anyone at that address',
    next: 'At that address: no answer until the client repeats. Elsewhere: 5 a second.',
    freedWhen: 'The rate allows the next',
    test: ['test/protocol/endpoint/load.test.ts', 'test/protocol/endpoint/rate.test.ts'],
  },
  'Networks whose rates are remembered': {
    value: MAX_NETWORKS,
    unit: '# each for handshakes and Completes',
    filledBy: 'an attacker with many addresses',
    next: 'Its full rate: the network seen first is forgotten',
    freedWhen: 'Another network takes its place',
    test: 'test/protocol/endpoint/rate.test.ts',
  },
  'Completes after an invalid one': {
    value: FAILURE_RATE,
    unit: '# a second per address',
    filledBy: 'anyone at that address',
    next: 'The first Complete of another handshake is always processed. A valid one after an invalid one is accepted when it is repeated.',
    freedWhen: 'The rate allows the next',
    test: 'test/protocol/endpoint/complete-flood.test.ts',
  },
  'Data packets kept before the Complete': {
    value: MAX_EARLY,
    unit: '# per handshake; none while Retry is asked for',
    filledBy: 'the peer of that handshake',
    next: "The peer's further packets are dropped, and it sends them again",
    freedWhen: 'The Complete arrives, or the handshake ends',
    test: 'test/protocol/endpoint/handshake.test.ts',
  },
  'Handshake answers that wait to leave': {
    value: MAX_WAITING,
    filledBy: 'anyone',
    next: 'No answer: the client repeats after 500 ms',
    freedWhen: 'They leave',
    test: 'test/protocol/endpoint/load.test.ts',
  },
  'Connection ids chosen by peers, with the same first bytes': {
    value: MAX_SHARED,
    filledBy: 'a peer that chooses such ids',
    next:
      'A Reset does not end a connection whose id came after these: the keep-alive or the idle timeout does. Ids of other peers begin ' +
      'with other bytes.',
    freedWhen: 'The connection ends, or the id is retired',
    test: 'test/protocol/endpoint/remote-ids.test.ts',
  },
  'Resets for connections that are gone': {
    value: RESET_RATE,
    unit: '# a second',
    filledBy: 'anyone who has seen an old id',
    next: 'No Reset in that second: the next packet is answered, or the idle timeout decides',
    freedWhen: 'The rate allows the next',
    test: 'test/protocol/endpoint/reset.test.ts',
  },
};

export const device: Limits = {
  'Connections at rest': {
    value: LONGEST_REST,
    unit: 'they count as connections, #s each',
    protocol: 'rest; a bare route on which nothing has come in',
    filledBy: 'clients whose route ended; a base station that ends routes',
    next: "A paired key: the slot of the stranger's connection that has rested longest. Others: as for connections.",
    freedWhen: 'A packet under its keys on a path; the time is over; the connection makes way',
    test: ['test/protocol/endpoint/admission.test.ts', 'test/protocol/endpoint/bare-routes.test.ts'],
  },
  'Unused bare routes': {
    value: BARE_ROUTE_TIME,
    unit: 'one of each connection and each half-open handshake',
    protocol: 'rest; a bare route on which nothing has come in',
    filledBy: 'a client with a token that knows the id, which an observer on the path sees',
    next:
      'The newest one replaces the one before, so a client waits only as long as a packet takes; the own route of a handshake stays ' +
      'valid beside it',
    freedWhen: 'A packet of the connection or the Complete of the handshake comes in; #s; the route, the connection or the handshake ends',
    test: 'test/protocol/endpoint/bare-routes.test.ts',
  },
};
