/** The parsers of the control plane's bodies. */
import * as control from '../../protocol/control/index.ts';
import { RemoteError } from '../../protocol/errors/index.ts';
import { nativeHost } from '../support/crypto.ts';
import { codec, parser } from './parser.ts';
import type { Target } from './target.ts';

const crypto = nativeHost(2);
const bytes = (length: number) => crypto.randomBytes(length);
const redirect = { kind: 'redirect', host: 'station.example', port: 4433, fingerprint: 'ab'.repeat(32) } as const;
const ids = { productId: 'pr-1', deviceId: 'de-1' };
const candidates = [
  { address: '192.0.2.1', port: 50_000, type: 'reflexive' },
  { address: '2001:db8::1', port: 1, type: 'host' },
] as const;
const stun = [{ port: 4434 }, { address: '192.0.2.1', port: 4435 }];
const nat = { mapping: 'sequential', last: 40_000, stride: 65_535, age: 12 } as const;

export const controlParsers: readonly Target[] = [
  codec(
    'control.connect-request',
    control.decodeConnectRequest,
    control.encodeConnectRequest,
    { ...ids, serverKey: 'sk-1', initiate: bytes(90), wait: true },
    { ...ids, appName: 'app', appVersion: '1', sct: 'token', jwt: 'a.b.c', redirected: true, direct: true },
  ),
  codec(
    'control.connect-answer',
    control.decodeConnectAnswer,
    control.encodeConnectAnswer,
    { kind: 'connected', route: bytes(8), routeResetToken: bytes(16), respond: bytes(300), stun },
    redirect,
    { kind: 'waiting' },
  ),
  codec('control.p2p-request', control.decodeP2pConnectRequest, control.encodeP2pConnectRequest, {
    route: bytes(8),
    initiate: bytes(90),
    routeResetToken: bytes(16),
    peerAddress: candidates[1],
  }),
  codec('control.p2p-answer', control.decodeP2pConnectAnswer, control.encodeP2pConnectAnswer, { respond: bytes(300) }, {}),
  codec(
    'control.seen-address',
    control.decodeSeenAddress,
    control.encodeSeenAddress,
    { address: '192.0.2.1', port: 50_000 },
    { address: '2001:db8::1', port: 1 },
  ),
  codec('control.attach-request', control.decodeAttachRequest, control.encodeAttachRequest, {
    svcVersion: '1.0.0',
    appName: 'app',
    appVersion: '2',
    ...ids,
    redirected: true,
    tokens: bytes(32),
  }),
  codec(
    'control.join-request',
    control.decodeJoinRequest,
    control.encodeJoinRequest,
    { ...ids, token: bytes(16) },
    { productId: 'pr-1', deviceId: null, token: bytes(16) },
  ),
  codec('control.join-answer', control.decodeJoinAnswer, control.encodeJoinAnswer, 'de-1'),
  codec(
    'control.attach-answer',
    control.decodeAttachAnswer,
    control.encodeAttachAnswer,
    {
      kind: 'attached',
      keepAlive: { interval: 25_000, retryInterval: 2000, maxRetries: 15 },
      observedAddress: null,
      wallTime: 1_767_225_600_000,
      maxTokens: 2_000,
      tokensKnown: true,
      stun,
    },
    redirect,
  ),
  codec('control.tokens', control.decodeTokens, control.encodeTokens, ['a', 'demosct', 'x'.repeat(60)]),
  codec('control.rendezvous-offer', control.decodeRendezvousOffer, control.encodeRendezvousOffer, {
    round: 1,
    tag: bytes(8),
    key: bytes(16),
    number: 1,
    candidates,
    nat,
  }),
  codec('control.rendezvous-state', control.decodeRendezvousState, control.encodeRendezvousState, {
    tag: bytes(8),
    key: bytes(16),
    number: 70_000,
    candidates,
    nat,
    opened: 3,
  }),
  codec(
    'control.rendezvous-update',
    control.decodeRendezvousUpdate,
    control.encodeRendezvousUpdate,
    { round: 1, number: 2, candidates, nat, opened: 1, spray: true },
    { round: 1, number: 2, candidates: [], opened: 1 },
  ),
  parser({
    name: 'control.push',
    samples: [control.encodePushRequest({ projectId: 'p', body: '{"a":1}' }), control.encodePushAnswer({ statusCode: 200, body: '{}' })],
    parse: (input) => [attempt(() => control.decodePushRequest(input)), control.decodePushAnswer(input)],
  }),
  parser({
    name: 'control.service',
    samples: [
      control.encodeServiceRequest({ serviceId: 's', message: bytes(9) }),
      control.encodeServiceAnswer({ statusCode: 200, message: bytes(5), messageFormat: 'TEXT' }),
    ],
    parse: (input) => [attempt(() => control.decodeServiceRequest(input)), control.decodeServiceAnswer(input)],
  }),
  parser({
    name: 'control.error',
    samples: [control.encodeErrorBody({ code: 2, message: 'not attached' })],
    parse: (input) => {
      control.stationError({ status: 404, contentFormat: 60, payload: input });
      control.stationError({ status: 500, payload: input });
      return control.decodeErrorBody(input);
    },
    encode: control.encodeErrorBody,
  }),
];

function attempt<T>(parse: () => T): T | null {
  try {
    return parse();
  } catch (error) {
    if (error instanceof RemoteError) return null;
    throw error;
  }
}
