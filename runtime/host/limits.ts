import { MESSAGE_LIMIT } from '../../bindings/options.ts';
import type { Limits } from '../../protocol/limits.ts';
import { MAX_COUNTS } from '../log-tally.ts';
import { MAX_QUEUED, RESERVED } from '../socket-queue.ts';
import { defaultLimits, defaultMaxRequests, defaultParameters } from './defaults.ts';
import { BODY_ROOM } from './host.ts';
import { MAX_ROUTES, MAX_UNUSED } from './routes.ts';

export const both: Limits = {
  'Datagrams that one socket has not sent yet': {
    value: [MAX_QUEUED, RESERVED],
    unit: '#, of which # are never for relayed packets',
    filledBy: 'anyone whose packets are relayed',
    next: 'Connections of the station send. Relayed packets wait.',
    freedWhen: 'The socket has sent them',
    test: 'test/runtime/driver.test.ts',
  },
  'Requests of one session': {
    value: defaultMaxRequests,
    unit: '# open, observations included',
    filledBy: 'the peer of that session',
    next: '5.03 on that session. Other sessions are served.',
    freedWhen: 'The answer has left, the observation ends, or the session does',
    test: ['test/runtime/session/hostile.test.ts', 'test/protocol/coap/requests.test.ts'],
  },
  'Messages in the core': {
    value: [defaultMaxRequests, defaultParameters.maxMessages],
    unit: '# open per peer (device: #); a quarter of the memory for those received, a sixth for those sent',
    filledBy: 'connected peers',
    next: 'When half is used, peers that hold little get more: a request and its answer get through',
    freedWhen: 'The message is complete and read, or acknowledged; the connection ends',
    test: 'test/bindings/fairness.test.ts',
  },
  'Bodies in blocks of all sessions': {
    value: [BODY_ROOM, MESSAGE_LIMIT],
    unit: '#B, at most a quarter of it for one session',
    protocol: 'R, largest message',
    core: ['MESSAGE_LIMIT'],
    filledBy: 'anyone with four sessions',
    next: '5.03 for a body in blocks, of a request or of an answer; others keep nothing. Messages up to # bytes need no blocks.',
    freedWhen: 'The last block; 30 s after the last block that came; the session ends',
    test: ['test/protocol/coap/bounded.test.ts', 'test/runtime/session/hostile.test.ts'],
  },
};

export const station: Limits = {
  'Log lines that strangers cause': {
    value: MAX_COUNTS,
    unit: 'one a minute for each warning or error, and for the refused tokens of each of # server keys; the rest is counted',
    filledBy: 'anyone',
    next: 'The number is logged every minute',
    freedWhen: 'The minute is over',
    test: 'test/runtime/log-tally.test.ts',
  },
};

export const device: Limits = {
  'Half-open handshakes': {
    value: [defaultLimits.halfOpen, defaultLimits.retryAbove],
    unit: '#; Retry above #',
    filledBy: 'anyone who reaches the device',
    next:
      'Directly: as at the base station. Through the station: a Respond, because entries begun 10 s ago and entries that came directly ' +
      'make way, and one token at one address can begin only 63 in that time. Against attackers with several tokens or addresses: 4.29 ' +
      'with Max-Age 1 while all 64 are younger.',
    freedWhen: 'As at the base station',
    test: ['test/device/limits.test.ts', 'test/protocol/endpoint/load.test.ts', 'test/protocol/endpoint/half-open.test.ts'],
  },
  'Routes that a device or client holds': {
    value: [MAX_ROUTES, MAX_UNUSED],
    filledBy: 'a base station, or clients through it',
    next: 'A route: the ones without a handshake or connection are given up',
    freedWhen: 'Nothing uses it; without a handshake or connection after #s',
    test: ['test/runtime/host/routes.test.ts', 'test/runtime/host/relay.test.ts'],
  },
};
