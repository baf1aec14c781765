import { DEFAULTS, MEMORY_PER_STREAM } from '../bindings/module.ts';
import { ACCEPT_TIMEOUT } from '../protocol/connection/byte-streams.ts';
import { RESET_SHARE } from '../protocol/endpoint/context.ts';
import type { Limits } from '../protocol/limits.ts';
import { defaultLimits, defaultParameters } from '../runtime/host/defaults.ts';
import { PER_CONNECTION, PER_DEVICE } from './coap-observers.ts';
import { STREAM_CREDIT } from './runtime.ts';
import { DEFAULT_MOST } from './token-upload.ts';

/** Byte streams of all connections, and of one connection. */
const STREAMS = Math.ceil((DEFAULTS.memory / MEMORY_PER_STREAM) * (3 / 8) * (1 - RESET_SHARE));
const ALONE = defaultParameters.maxStreams + STREAM_CREDIT;

export const device: Limits = {
  'Connections of clients': {
    value: [defaultLimits.connections, defaultParameters.idleTimeout],
    setting: '`limitConnections`',
    filledBy: 'anyone who reaches the device',
    next:
      'A paired key: a connection. A quarter is kept for paired keys, and a user gets another connection only while it holds no more ' +
      'than are free; six users together can hold all. Another key: one of the rest. Of these, keys at one address that reaches the ' +
      'device directly can hold half; when two such addresses, or keys that come through the station, hold them all: BUSY. Without ' +
      'access control: BUSY; others keep nothing.',
    freedWhen: 'The connection ends; #s without a packet',
    test: ['test/device/kept-connections.test.ts', 'test/protocol/endpoint/admission.test.ts', 'test/device/limits.test.ts'],
  },
  'Requests that the application is handling': {
    unit: 'no limit',
    setting: '`limitCoapServerRequests`',
    filledBy: 'clients',
    next: '5.03; others keep nothing. One connection has 64 at most.',
    freedWhen: 'The handler answers',
    test: 'test/client/connect/coap.test.ts',
  },
  'Observations of one connection': {
    value: PER_CONNECTION,
    filledBy: 'that client',
    next: 'A single answer without Observe. Its other requests, and other connections, are served.',
    freedWhen: 'It is cancelled, answered with no 2.xx, or its connection ends',
    test: 'test/device/observe.test.ts',
  },
  'Observations of the device': {
    value: [PER_DEVICE, PER_DEVICE / PER_CONNECTION],
    setting: '`limitCoapObservations`',
    filledBy: '# clients that may read a resource',
    next: 'A single answer without Observe; others keep nothing',
    freedWhen: 'As above',
    test: 'test/device/observe.test.ts',
  },
  'Byte streams of all connections': {
    value: [STREAMS, ALONE, STREAMS - ALONE, ACCEPT_TIMEOUT],
    setting: '`limitStreams`',
    protocol: 'unaccepted stream',
    filledBy: 'clients; one connection alone up to #, and all where `limitStreams` is no larger',
    next:
      'From another connection: one of the # that one alone cannot have. When all are taken: refused with STREAM_LIMIT; others keep ' +
      'nothing.',
    freedWhen: 'The stream ends; without acceptance after #s',
    test: ['test/protocol/connection/byte-streams.test.ts', 'test/client/connect/streams.test.ts'],
  },
  'Tokens at the base station': {
    value: DEFAULT_MOST,
    unit: 'as many as it accepts, # by default',
    filledBy: 'users, one token each',
    next: "Its record says SctOmitted: it reaches the device locally only. The application's tokens and those of older users stay.",
    freedWhen: 'An older token is removed',
    test: ['test/device/token-upload.test.ts', 'test/device/iam/endpoints/pairing-rates.test.ts'],
  },
};
