/** Bodies of the control plane: round trips, the names on the wire, limits, and hostile bytes. */
import { describe, expect, test } from 'vitest';
import { type CborValue, decode, encode } from '../../../protocol/cbor/index.ts';
import * as control from '../../../protocol/control/index.ts';
import { LocalError, RemoteError, StationCode } from '../../../protocol/errors/index.ts';
import { seeds } from '../../support/tiered.ts';
import { randomBytes, seededRandom } from '../coap/pair.ts';
import { type Body, describeBodies } from './codec.ts';

const fingerprint = 'ab'.repeat(32);
const route = Uint8Array.of(1, 2, 3, 4, 5, 6, 7, 8);
const token = new Uint8Array(16).fill(7);
const packet = new Uint8Array(1200).fill(1);
const redirect = { kind: 'redirect', host: 'b.example', port: 4433, fingerprint } as const;
const v6 = Uint8Array.of(0x20, 1, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1);
const observedAddress = { address: '2001:db8::1', port: 50_000 };

const digest = new Uint8Array(32).fill(0xcd);

const bodies: readonly Body[] = [
  [
    'attach request',
    { encode: control.encodeAttachRequest, decode: control.decodeAttachRequest },
    { svcVersion: '0.1.0', appName: 'Tunnel', appVersion: '1', productId: 'pr-1', deviceId: 'de-1', redirected: true, tokens: digest },
    { SvcVersion: '0.1.0', AppName: 'Tunnel', AppVersion: '1', ProductId: 'pr-1', DeviceId: 'de-1', Redirected: true, Tokens: digest },
  ],
  [
    'small attach request',
    { encode: control.encodeAttachRequest, decode: control.decodeAttachRequest },
    { svcVersion: '', appName: null, appVersion: null, productId: 'p', deviceId: 'd', redirected: false, tokens: null },
    { SvcVersion: '', ProductId: 'p', DeviceId: 'd' },
  ],
  [
    'join request',
    { encode: control.encodeJoinRequest, decode: control.decodeJoinRequest },
    { productId: 'pr-1', deviceId: 'de-1', token },
    { ProductId: 'pr-1', DeviceId: 'de-1', Token: token },
  ],
  [
    'join request without a device id',
    { encode: control.encodeJoinRequest, decode: control.decodeJoinRequest },
    { productId: 'p', deviceId: null, token },
    { ProductId: 'p', Token: token },
  ],
  ['join answer', { encode: control.encodeJoinAnswer, decode: control.decodeJoinAnswer }, 'de-1', { DeviceId: 'de-1' }],
  [
    'attached',
    { encode: control.encodeAttachAnswer, decode: control.decodeAttachAnswer },
    {
      kind: 'attached',
      keepAlive: { interval: 25_000, retryInterval: 2000, maxRetries: 15 },
      observedAddress,
      wallTime: 1_800_000_000_000,
      maxTokens: 2_000,
      tokensKnown: true,
      stun: [
        { port: 4434, responsePort: true },
        { address: '2001:db8::1', port: 65_535 },
      ],
    },
    {
      Status: 0,
      KeepAlive: { Interval: 25_000, RetryInterval: 2000, MaxRetries: 15 },
      Address: { Ip: v6, Port: 50_000 },
      WallTime: 1_800_000_000_000,
      MaxTokens: 2_000,
      TokensKnown: true,
      Stun: [
        { Port: 4434, ResponsePort: true },
        { Ip: v6, Port: 65_535 },
      ],
    },
  ],
  [
    'bare attached',
    { encode: control.encodeAttachAnswer, decode: control.decodeAttachAnswer },
    { kind: 'attached', keepAlive: null, observedAddress: null, wallTime: null, maxTokens: null, tokensKnown: false },
    { Status: 0 },
  ],
  [
    'attach redirect',
    { encode: control.encodeAttachAnswer, decode: control.decodeAttachAnswer },
    redirect,
    { Status: 1, Host: 'b.example', Port: 4433, Fingerprint: new Uint8Array(32).fill(0xab) },
  ],
  ['tokens', { encode: control.encodeTokens, decode: control.decodeTokens }, ['abcdefghijkl', 'x'], ['abcdefghijkl', 'x']],
  ['no tokens', { encode: control.encodeTokens, decode: control.decodeTokens }, [], []],
  [
    'connect request',
    { encode: control.encodeConnectRequest, decode: control.decodeConnectRequest },
    {
      ...{ productId: 'pr-1', deviceId: 'de-1', appName: 'Phone', appVersion: '3.2', serverKey: 'sk-1', sct: 't', jwt: 'a.b.c' },
      ...{ initiate: packet, wait: true, redirected: false, direct: true },
    },
    {
      ...{ ProductId: 'pr-1', DeviceId: 'de-1', AppName: 'Phone', AppVersion: '3.2', ServerKey: 'sk-1', Sct: 't', Jwt: 'a.b.c' },
      ...{ Initiate: packet, Wait: true, Redirected: false, Direct: true },
    },
  ],
  [
    'small connect request',
    { encode: control.encodeConnectRequest, decode: control.decodeConnectRequest },
    { productId: 'p', deviceId: 'd' },
    { ProductId: 'p', DeviceId: 'd' },
  ],
  [
    'connected',
    { encode: control.encodeConnectAnswer, decode: control.decodeConnectAnswer },
    { kind: 'connected', route, respond: packet, routeResetToken: token, observedAddress, stun: [{ port: 1 }] },
    { Status: 0, Route: route, Respond: packet, RouteResetToken: token, Address: { Ip: v6, Port: 50_000 }, Stun: [{ Port: 1 }] },
  ],
  [
    'bare connected',
    { encode: control.encodeConnectAnswer, decode: control.decodeConnectAnswer },
    { kind: 'connected', route, routeResetToken: token },
    { Status: 0, Route: route, RouteResetToken: token },
  ],
  [
    'connect redirect',
    { encode: control.encodeConnectAnswer, decode: control.decodeConnectAnswer },
    redirect,
    { Status: 1, Host: 'b.example', Port: 4433, Fingerprint: new Uint8Array(32).fill(0xab) },
  ],
  ['waiting', { encode: control.encodeConnectAnswer, decode: control.decodeConnectAnswer }, { kind: 'waiting' }, { Status: 2 }],
  [
    'p2p connect request',
    { encode: control.encodeP2pConnectRequest, decode: control.decodeP2pConnectRequest },
    { route, initiate: packet, routeResetToken: token, peerAddress: { address: '192.0.2.1', port: 1 } },
    { Route: route, Initiate: packet, RouteResetToken: token, Address: { Ip: Uint8Array.of(192, 0, 2, 1), Port: 1 } },
  ],
  [
    'bare p2p connect request',
    { encode: control.encodeP2pConnectRequest, decode: control.decodeP2pConnectRequest },
    { route, routeResetToken: token },
    { Route: route, RouteResetToken: token },
  ],
  [
    'p2p connect answer',
    { encode: control.encodeP2pConnectAnswer, decode: control.decodeP2pConnectAnswer },
    { respond: packet },
    { Respond: packet },
  ],
  ['bare p2p connect answer', { encode: control.encodeP2pConnectAnswer, decode: control.decodeP2pConnectAnswer }, {}, {}],
  [
    'error body',
    { encode: control.encodeErrorBody, decode: control.decodeErrorBody },
    { code: 3, message: 'unknown' },
    { Error: { Code: 3, Message: 'unknown' } },
  ],
  [
    'push request',
    { encode: control.encodePushRequest, decode: control.decodePushRequest },
    { projectId: 'my-project', body: '{"message":{}}' },
    { ProjectId: 'my-project', Body: '{"message":{}}' },
  ],
  [
    'push answer',
    { encode: control.encodePushAnswer, decode: control.decodePushAnswer },
    { statusCode: 404, body: '' },
    { StatusCode: 404, Body: '' },
  ],
  [
    'service request',
    { encode: control.encodeServiceRequest, decode: control.decodeServiceRequest },
    { serviceId: 'se-1', message: packet },
    { ServiceId: 'se-1', Message: packet },
  ],
  [
    'service answer',
    { encode: control.encodeServiceAnswer, decode: control.decodeServiceAnswer },
    { statusCode: 200, message: route, messageFormat: 'TEXT' },
    { StatusCode: 200, Message: route, MessageFormat: 2 },
  ],
];

describeBodies(bodies);

/** Fields that PROTOCOL.md §7 marks with `?`: in every body, or in the one that is named. */
const OPTIONAL = new Set([
  ...['Address', 'AppName', 'AppVersion', 'Direct', 'Initiate', 'Jwt', 'KeepAlive', 'MaxTokens', 'MessageFormat', 'Redirected', 'Respond'],
  ...['Sct', 'ServerKey', 'Stun', 'Tokens', 'TokensKnown', 'Wait', 'WallTime', 'DeviceId of join request', 'Message of service answer'],
]);

describe.each(bodies.filter(([, , , wire]) => !Array.isArray(wire)))('%s', (name, codec, __, wire) => {
  test('a field that is not optional is missed with a remote error', () => {
    for (const key of Object.keys(wire as object)) {
      const { [key]: _, ...rest } = wire as Record<string, CborValue>;
      const check = expect(() => codec.decode(encode(rest)), key);
      if (OPTIONAL.has(key) || OPTIONAL.has(`${key} of ${name}`)) check.not.toThrow();
      else check.toThrow(expect.objectContaining({ name: 'RemoteError', code: 'PARSE' }));
    }
  });

  test('a field of another type raises a remote error', () => {
    for (const [key, value] of Object.entries(wire as Record<string, CborValue>)) {
      for (const other of ['text', -1, 1.5, new Uint8Array(3), [], { x: 1 }, true]) {
        if (typeOf(other) === typeOf(value)) continue;
        const decoding = () => codec.decode(encode({ ...(wire as object), [key]: other }));
        expect(decoding, `${key}: ${JSON.stringify(other)}`).toThrow(expect.objectContaining({ name: 'RemoteError', code: 'PARSE' }));
      }
    }
  });
});

function typeOf(value: CborValue): string {
  return Object.prototype.toString.call(value);
}

test.each(bodies)('mutations of %s raise only remote errors', (_, codec, value) => {
  const whole = codec.encode(value as never);
  for (const seed of seeds(1, 2)) {
    const random = seededRandom(seed);
    for (let i = 0; i < 500; i++) {
      const payload = random(8) === 0 ? randomBytes(random, random(60)) : whole.slice();
      for (let j = random(3); j > 0 && payload.length > 0; j--) payload[random(Math.min(payload.length, 120))] = random(256);
      try {
        codec.decode(payload);
      } catch (error) {
        if (!(error instanceof RemoteError)) throw error;
      }
    }
  }
});

describe('limits', () => {
  const attach = { SvcVersion: '0.1.0', ProductId: 'p', DeviceId: 'd' };
  const connect = { ProductId: 'p', DeviceId: 'd' };
  const connected = { Status: 0, Route: route, RouteResetToken: token };
  const to = { Status: 1, Host: 'b', Port: 1, Fingerprint: new Uint8Array(32) };
  test.each<[string, (payload: Uint8Array) => unknown, CborValue]>([
    ['an app name of 33 bytes', control.decodeAttachRequest, { ...attach, AppName: 'x'.repeat(33) }],
    ['an app version of 33 bytes', control.decodeAttachRequest, { ...attach, AppVersion: 'x'.repeat(33) }],
    ['an empty product id', control.decodeAttachRequest, { ...attach, ProductId: '' }],
    ['a device id of 62 bytes', control.decodeAttachRequest, { ...attach, DeviceId: 'x'.repeat(62) }],
    ['a join without a token', control.decodeJoinRequest, { ProductId: 'p' }],
    ['a join with a token of 15 bytes', control.decodeJoinRequest, { ProductId: 'p', Token: new Uint8Array(15) }],
    ['a join with a token of 17 bytes', control.decodeJoinRequest, { ProductId: 'p', Token: new Uint8Array(17) }],
    ['a join with a token as text', control.decodeJoinRequest, { ProductId: 'p', Token: 'x'.repeat(16) }],
    ['a join with an empty device id', control.decodeJoinRequest, { ProductId: 'p', DeviceId: '', Token: token }],
    ['an answer to a join without a device id', control.decodeJoinAnswer, {}],
    ['a digest of 31 bytes', control.decodeAttachRequest, { ...attach, Tokens: new Uint8Array(31) }],
    ['a body that is not a map', control.decodeAttachRequest, []],
    ['an unknown status', control.decodeAttachAnswer, { Status: 2 }],
    [
      'a keep-alive interval of 0',
      control.decodeAttachAnswer,
      { Status: 0, KeepAlive: { Interval: 0, RetryInterval: 1000, MaxRetries: 1 } },
    ],
    [
      'a keep-alive without pause',
      control.decodeAttachAnswer,
      { Status: 0, KeepAlive: { Interval: 1000, RetryInterval: 1, MaxRetries: 1 } },
    ],
    [
      'a keep-alive of a week',
      control.decodeAttachAnswer,
      { Status: 0, KeepAlive: { Interval: 604_800_000, RetryInterval: 1000, MaxRetries: 1 } },
    ],
    ['an address that is text', control.decodeAttachAnswer, { Status: 0, Address: { Ip: '::1', Port: 1 } }],
    ['an address of 5 bytes', control.decodeAttachAnswer, { Status: 0, Address: { Ip: new Uint8Array(5), Port: 1 } }],
    ['an address with port 0', control.decodeAttachAnswer, { Status: 0, Address: { Ip: v6, Port: 0 } }],
    ['STUN at port 0', control.decodeAttachAnswer, { Status: 0, Stun: [{ Port: 0 }] }],
    ['STUN without a port', control.decodeAttachAnswer, { Status: 0, Stun: [{ Ip: v6 }] }],
    ['STUN at an address of 5 bytes', control.decodeAttachAnswer, { Status: 0, Stun: [{ Ip: new Uint8Array(5), Port: 1 }] }],
    ['STUN at a name', control.decodeConnectAnswer, { ...connected, Stun: [{ Ip: 'localhost', Port: 1 }] }],
    ['three STUN entries', control.decodeConnectAnswer, { ...connected, Stun: [{ Port: 1 }, { Port: 2 }, { Port: 3 }] }],
    ['RESPONSE-PORT that is a number', control.decodeAttachAnswer, { Status: 0, Stun: [{ Port: 1, ResponsePort: 1 }] }],
    ['STUN that is not an array', control.decodeConnectAnswer, { ...connected, Stun: { Port: 1 } }],
    ['a STUN entry that is a number', control.decodeAttachAnswer, { Status: 0, Stun: [1] }],
    ['Direct as a number', control.decodeConnectRequest, { ...connect, Direct: 1 }],
    ['a redirect to port 65536', control.decodeAttachAnswer, { ...to, Port: 65_536 }],
    ['a redirect with a short fingerprint', control.decodeAttachAnswer, { ...to, Fingerprint: new Uint8Array(16) }],
    ['a redirect to a URL', control.decodeAttachAnswer, { ...to, Host: 'https://b/' }],
    ['a redirect to a host with control characters', control.decodeAttachAnswer, { ...to, Host: 'b\u001b[2J' }],
    ['a token of 65 bytes', control.decodeTokens, ['x'.repeat(65)]],
    ['an empty token', control.decodeTokens, ['']],
    ['a token that is a number', control.decodeTokens, [1]],
    ['4097 tokens', control.decodeTokens, Array.from({ length: 4097 }, () => 'x')],
    ['tokens in a map', control.decodeTokens, {}],
    ["an app name of 33 bytes in a client's request", control.decodeConnectRequest, { ...connect, AppName: `x${'é'.repeat(16)}` }],
    ["an app version of 33 bytes in a client's request", control.decodeConnectRequest, { ...connect, AppVersion: 'x'.repeat(33) }],
    ['an app name that is a number', control.decodeConnectRequest, { ...connect, AppName: 3 }],
    ['an SCT of 65 bytes', control.decodeConnectRequest, { ...connect, Sct: 'x'.repeat(65) }],
    ['a JWT of 8193 bytes', control.decodeConnectRequest, { ...connect, Jwt: 'x'.repeat(8193) }],
    ['an empty Initiate', control.decodeConnectRequest, { ...connect, Initiate: new Uint8Array(0) }],
    ['an Initiate of 1501 bytes', control.decodeConnectRequest, { ...connect, Initiate: new Uint8Array(1501) }],
    ['a route of 7 bytes', control.decodeConnectAnswer, { ...connected, Route: new Uint8Array(7) }],
    ['a reset token of 17 bytes', control.decodeConnectAnswer, { ...connected, RouteResetToken: new Uint8Array(17) }],
    ['a status of 3', control.decodeConnectAnswer, { Status: 3 }],
    ['a push project of 256 bytes', control.decodePushRequest, { ProjectId: 'x'.repeat(256), Body: '{}' }],
    ['a provider status of 65536', control.decodePushAnswer, { StatusCode: 65_536, Body: '' }],
    ['a service message of 65537 bytes', control.decodeServiceRequest, { ServiceId: 's', Message: new Uint8Array(65_537) }],
    ['a message format of 3', control.decodeServiceAnswer, { StatusCode: 200, MessageFormat: 3 }],
  ])('%s is refused', (_, read, body) => {
    expect(() => read(encode(body))).toThrow(RemoteError);
  });

  test("a provider's answer is cut to 4096 bytes, between two characters", () => {
    const answer = { StatusCode: 200, Body: `a${'€'.repeat(2_000)}` };
    expect(control.decodePushAnswer(encode(answer)).body).toBe(`a${'€'.repeat(1_365)}`);
  });

  test('a service answer without a format is binary, and empty without a message', () => {
    expect(control.decodeServiceAnswer(encode({ StatusCode: 200, Message: route }))).toEqual({
      statusCode: 200,
      message: route,
      messageFormat: 'BINARY',
    });
    expect(control.decodeServiceAnswer(encode({ StatusCode: 204, MessageFormat: 1 }))).toEqual({
      statusCode: 204,
      message: new Uint8Array(0),
      messageFormat: 'NONE',
    });
  });
});

const bare = { kind: 'attached', keepAlive: null, observedAddress: null, wallTime: null, maxTokens: null, tokensKnown: false } as const;

test('further members of a STUN entry are ignored', () => {
  const answer = encode({ Status: 0, Stun: [{ Port: 1, ResponsePort: false, Later: 'x' }] });
  expect(control.decodeAttachAnswer(answer)).toEqual({ ...bare, stun: [{ port: 1 }] });
});

test('no STUN is encoded as no field, and an empty list is decoded as well', () => {
  expect(decode(control.encodeAttachAnswer({ ...bare, stun: [] }))).toEqual({ Status: 0 });
  expect(control.decodeAttachAnswer(encode({ Status: 0, Stun: [] }))).toEqual({ ...bare, stun: [] });
});

test('an address is encoded without its zone, an IPv4-mapped one as IPv4, and a name is refused', () => {
  const through = (address: string) => {
    const answer = control.decodeAttachAnswer(control.encodeAttachAnswer({ ...bare, observedAddress: { address, port: 1 } }));
    return answer.kind === 'attached' && answer.observedAddress?.address;
  };
  expect(['fe80::1%eth0', '::ffff:192.0.2.1', '2001:DB8:0::1', '::'].map(through)).toEqual(['fe80::1', '192.0.2.1', '2001:db8::1', '::']);
  expect(() => through('localhost')).toThrow(LocalError);
});

describe('errors of a base station', () => {
  test.each(Object.entries(StationCode))('%s survives a round trip', (_, code) => {
    const reply = control.stationReply(code);
    const error = control.stationError({ status: reply.status, contentFormat: reply.contentFormat!, payload: reply.payload! });
    expect(error).toBeInstanceOf(RemoteError);
    expect(error.stationCode).toBe(code);
    expect(control.stationReply(code, 'own words').payload).toEqual(encode({ Error: { Code: code, Message: 'own words' } }));
  });

  const response = (status: number, payload: Uint8Array, contentFormat?: number) => ({
    status,
    payload,
    ...(contentFormat === undefined ? {} : { contentFormat }),
  });
  test.each([
    ['an unknown code', response(404, control.encodeErrorBody({ code: 99, message: 'new' }), 60), 'NOT_FOUND', 'refused (4.04): new'],
    ['a text', response(503, new TextEncoder().encode('Out of resources')), 'TOO_MANY_REQUESTS', 'refused (5.03): Out of resources'],
    ['nothing', response(400, new Uint8Array(0)), 'BAD_REQUEST', 'refused (4.00)'],
    ['broken CBOR', response(403, Uint8Array.of(0xff), 60), 'FORBIDDEN', 'refused (4.03)'],
    ['a strange status', response(418, new Uint8Array(0)), 'BAD_RESPONSE', 'refused (4.18)'],
    ['control characters', response(500, new TextEncoder().encode('\u001b[2Jboo\n\u0007')), 'BAD_RESPONSE', 'refused (5.00): [2Jboo'],
  ])('%s', (_, answer, code, message) => {
    const error = control.stationError(answer);
    expect([error.code, error.message]).toEqual([code, `the base station ${message}`]);
  });
});

test('paths are those of the control plane', () => {
  expect([control.DevicePath, control.ClientPath, control.StationPath, control.ConnectionPath]).toEqual([
    {
      ATTACH: '/device/attach',
      JOIN: '/device/join',
      SCT: '/device/sct',
      ROUTE: '/device/route',
      ADDRESS: '/device/address',
      PUSH_SEND: '/device/push/send',
      SERVICE_INVOKE: '/device/service/invoke',
    },
    { CONNECT: '/client/connect', ROUTE: '/client/route', ADDRESS: '/client/address' },
    { P2P_CONNECT: '/p2p/connect' },
    { RENDEZVOUS: '/p2p/rendezvous' },
  ]);
});

test('a connect request is decoded: missing fields are left out, unknown ones are ignored', () => {
  const sent = { ProductId: 'pr-1', DeviceId: 'de-1', ServerKey: 'sk-1' };
  const read = { productId: 'pr-1', deviceId: 'de-1', serverKey: 'sk-1' };
  expect(control.decodeConnectRequest(encode(sent))).toEqual(read);
  expect(control.decodeConnectRequest(encode({ ...sent, Later: { x: [1] } }))).toEqual(read);
});
