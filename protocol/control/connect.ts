/**
 * `POST /client/connect`: a client asks the base station for a route to a device; `POST /p2p/connect`: the base station
 * asks the device.
 *
 * Client's request
 * `{ProductId, DeviceId, AppName?, AppVersion?, ServerKey?, Sct?, Jwt?, Initiate? | Id?, Wait?, Redirected?, Direct?}`.
 * Answer 2.01: `{Status: 0, Route, Respond?, RouteResetToken, Address?, Stun?: [{Ip?, Port}]}`, or
 * `{Status: 1, Host, Port, Fingerprint}`, or, to an observing request with Wait, `{Status: 2}` until the device
 * attaches. Request to the device `{Route, Initiate? | Id?, RouteResetToken, Address?}`, answer 2.01 `{Respond?}`. The
 * device learns the client's address only from a request with Direct.
 *
 * Each end gets its own route id and token. Initiate and Respond are whole packets of the handshake. With Id instead
 * the route is bare: a path for an existing connection, which the device knows by this id of its own.
 */
import { bytes, decode, encode, map, optionalBool, optionalBytes, optionalMapField, optionalText, text, uint } from '../cbor/index.ts';
import { defined } from '../defined.ts';
import { RemoteError } from '../errors/index.ts';
import { ID_LENGTH, TOKEN_LENGTH } from '../packet/index.ts';
import { addressMap, readAddress, type SocketAddress } from './address.ts';
import { MAX_APP_TEXT, MAX_ID, MAX_JWT, MAX_PACKET, MAX_SCT, MAX_SERVER_KEY } from './field-bounds.ts';
import { REDIRECT, type Redirect, readRedirect, redirectFields } from './redirect.ts';
import { readStun, type StunServer, stunField } from './stun.ts';

/** The device that a client wants to reach, and the client's means of admission. */
export interface ConnectRequest {
  readonly productId: string;
  readonly deviceId: string;
  /** Name and version of the client's application, for the base station's log. */
  readonly appName?: string;
  readonly appVersion?: string;
  /** Admission: by server key, server connect token or JWT. */
  readonly serverKey?: string;
  readonly sct?: string;
  readonly jwt?: string;
  readonly initiate?: Uint8Array;
  /** Used instead for a bare route: the device's id of the connection to continue, 8 bytes. */
  readonly id?: Uint8Array;
  /** Wait for the device to attach (with Observe). */
  readonly wait?: boolean;
  /** Another base station sent the client here. */
  readonly redirected?: boolean;
  /** A rendezvous may follow: the device may learn the client's address. */
  readonly direct?: boolean;
}

/** There is a route to the device. */
export interface RouteGrant {
  readonly kind: 'connected';
  /** The client's route id, 8 bytes. */
  readonly route: Uint8Array;
  /** Present exactly when the request had an Initiate. */
  readonly respond?: Uint8Array;
  /** Token of a Reset for this route, 16 bytes. */
  readonly routeResetToken: Uint8Array;
  /** The client's address as the base station sees it. */
  readonly observedAddress?: SocketAddress;
  /** The addresses at which the base station answers STUN; absent: none. */
  readonly stun?: readonly StunServer[];
}

/** The device is not attached; more answers follow. */
export interface WaitNotice {
  readonly kind: 'waiting';
}

/** A route, another base station to ask, or a wait. */
export type ConnectAnswer = RouteGrant | Redirect | WaitNotice;

/** The base station's request to the device: a client wants to reach it. */
export interface P2pConnectRequest {
  /** The device's route id, 8 bytes. */
  readonly route: Uint8Array;
  readonly initiate?: Uint8Array;
  /** Used instead for a bare route: the device's id of the connection, 8 bytes. */
  readonly id?: Uint8Array;
  /** Token of a Reset for this route, 16 bytes. */
  readonly routeResetToken: Uint8Array;
  /** The client's address as the base station sees it; only for a client that sent Direct. */
  readonly peerAddress?: SocketAddress;
}

/** The device's answer to it. */
export interface P2pConnectAnswer {
  readonly respond?: Uint8Array;
}

/** Status of an answer that is not a redirect. */
const CONNECTED = 0;
const WAITING = 2;

const packet = { min: 1, max: MAX_PACKET };

/** Checks that a request either begins a connection or continues one. @throws RemoteError PARSE */
function withOneOf<T extends { initiate: Uint8Array | undefined; id: Uint8Array | undefined }>(request: T): ReturnType<typeof defined<T>> {
  if (request.initiate !== undefined && request.id !== undefined) throw new RemoteError('PARSE', 'Initiate and Id exclude each other');
  return defined(request);
}

/** Body of `POST /client/connect`. */
export function encodeConnectRequest(request: ConnectRequest): Uint8Array {
  return encode({
    ProductId: request.productId,
    DeviceId: request.deviceId,
    AppName: request.appName,
    AppVersion: request.appVersion,
    ServerKey: request.serverKey,
    Sct: request.sct,
    Jwt: request.jwt,
    Initiate: request.initiate,
    Id: request.id,
    Wait: request.wait,
    Redirected: request.redirected,
    Direct: request.direct,
  });
}

/** @throws RemoteError PARSE */
export function decodeConnectRequest(payload: Uint8Array): ConnectRequest {
  const body = map(decode(payload));
  return withOneOf({
    productId: text(body, 'ProductId', { min: 1, max: MAX_ID }),
    deviceId: text(body, 'DeviceId', { min: 1, max: MAX_ID }),
    appName: optionalText(body, 'AppName', { max: MAX_APP_TEXT }),
    appVersion: optionalText(body, 'AppVersion', { max: MAX_APP_TEXT }),
    serverKey: optionalText(body, 'ServerKey', { max: MAX_SERVER_KEY }),
    sct: optionalText(body, 'Sct', { max: MAX_SCT }),
    jwt: optionalText(body, 'Jwt', { max: MAX_JWT }),
    initiate: optionalBytes(body, 'Initiate', packet),
    id: optionalBytes(body, 'Id', { exact: ID_LENGTH }),
    wait: optionalBool(body, 'Wait'),
    redirected: optionalBool(body, 'Redirected'),
    direct: optionalBool(body, 'Direct'),
  });
}

/**
 * Body of the 2.01 response.
 * @throws LocalError INVALID_ARGUMENT for a redirect or address that cannot be written
 */
export function encodeConnectAnswer(answer: ConnectAnswer): Uint8Array {
  if (answer.kind === 'redirect') return encode({ Status: REDIRECT, ...redirectFields(answer) });
  if (answer.kind === 'waiting') return encode({ Status: WAITING });
  const { route, respond, routeResetToken, observedAddress, stun } = answer;
  return encode({
    Status: CONNECTED,
    Route: route,
    Respond: respond,
    RouteResetToken: routeResetToken,
    Address: observedAddress === undefined ? undefined : addressMap(observedAddress),
    Stun: stunField(stun),
  });
}

/** @throws RemoteError PARSE */
export function decodeConnectAnswer(payload: Uint8Array): ConnectAnswer {
  const body = map(decode(payload));
  const status = uint(body, 'Status');
  if (status === REDIRECT) return readRedirect(body);
  if (status === WAITING) return { kind: 'waiting' };
  if (status !== CONNECTED) throw new RemoteError('PARSE', `Status ${status} of a connect answer is not known`);
  const observed = optionalMapField(body, 'Address');
  return defined({
    kind: 'connected' as const,
    route: bytes(body, 'Route', { exact: ID_LENGTH }),
    respond: optionalBytes(body, 'Respond', packet),
    routeResetToken: bytes(body, 'RouteResetToken', { exact: TOKEN_LENGTH }),
    observedAddress: observed === undefined ? undefined : readAddress(observed),
    stun: readStun(body),
  });
}

/**
 * Body of `POST /p2p/connect`.
 * @throws LocalError INVALID_ARGUMENT for a peer address that is not numeric
 */
export function encodeP2pConnectRequest(request: P2pConnectRequest): Uint8Array {
  const { route, initiate, id, routeResetToken, peerAddress } = request;
  return encode({
    Route: route,
    Initiate: initiate,
    Id: id,
    RouteResetToken: routeResetToken,
    Address: peerAddress === undefined ? undefined : addressMap(peerAddress),
  });
}

/** @throws RemoteError PARSE */
export function decodeP2pConnectRequest(payload: Uint8Array): P2pConnectRequest {
  const body = map(decode(payload));
  const peer = optionalMapField(body, 'Address');
  return withOneOf({
    route: bytes(body, 'Route', { exact: ID_LENGTH }),
    initiate: optionalBytes(body, 'Initiate', packet),
    id: optionalBytes(body, 'Id', { exact: ID_LENGTH }),
    routeResetToken: bytes(body, 'RouteResetToken', { exact: TOKEN_LENGTH }),
    peerAddress: peer === undefined ? undefined : readAddress(peer),
  });
}

/** Body of the 2.01 response. */
export function encodeP2pConnectAnswer(answer: P2pConnectAnswer): Uint8Array {
  return encode({ Respond: answer.respond });
}

/** @throws RemoteError PARSE */
export function decodeP2pConnectAnswer(payload: Uint8Array): P2pConnectAnswer {
  return defined({ respond: optionalBytes(map(decode(payload)), 'Respond', packet) });
}

/** Body of `DELETE /client/route` and `DELETE /device/route`. @param route the sender's 8-byte id of the route */
export function encodeRouteRelease(route: Uint8Array): Uint8Array {
  return encode({ Route: route });
}

/** @throws RemoteError PARSE */
export function decodeRouteRelease(payload: Uint8Array): Uint8Array {
  return bytes(map(decode(payload)), 'Route', { exact: ID_LENGTH });
}
