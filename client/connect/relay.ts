/**
 * The remote channel: one request to the base station carries our Initiate to the device and its Respond back, then
 * data flows on the route.
 *
 * Steps: check that an admission option is set; use the client's channel to that base station (opened or reused,
 * redirects followed); send `POST /client/connect`; finish the handshake with the answer. The base station's refusals
 * become the channel's errors. With IgnoreDeviceNotAttached it waits for a device that is not attached (`waiting.ts`).
 */

import type { Environment } from '../../platform/environment.ts';
import {
  ClientPath,
  CONTENT_FORMAT_CBOR,
  type ConnectAnswer,
  type ConnectRequest,
  encodeConnectRequest,
  type RouteGrant,
} from '../../protocol/control/index.ts';
import { asSvcError, LocalError, RemoteError, SvcError } from '../../protocol/errors/index.ts';
import type { Path } from '../../protocol/path.ts';
import type { ConnectTarget, Host } from '../../runtime/host/index.ts';
import type { Session } from '../../runtime/session/index.ts';
import { type ConfiguredStation, Redirect, releaseRoute, type StationConnector } from '../../runtime/station/index.ts';
import { unlessAborted } from '../../runtime/unless-aborted.ts';
import { currentJwt, type EffectiveOptions, serverAddress } from '../options.ts';
import { answerAfterWait, answerOf, whileNotAttached } from './waiting.ts';

/**
 * Returns the base station of the options, pinned or to be authenticated by TLS.
 * @throws LocalError INVALID_STATE when its address is missing, or its pin where the platform has no https
 */
export function configuredStation(options: EffectiveOptions, { getHttps }: Pick<Environment, 'getHttps'>): ConfiguredStation {
  const { ServerUrl, ServerFingerprint = null, RootCerts, ServerWebSocketUrl, ServerWebSocketVerify } = options;
  if (ServerUrl === undefined) throw new LocalError('INVALID_STATE', 'the connection option ServerUrl is missing');
  if (ServerFingerprint === null && getHttps === undefined)
    throw new LocalError(
      'INVALID_STATE',
      'the connection option ServerFingerprint is missing: this platform has no https to authenticate the base station',
    );
  const webSocket = { verifyCertificate: ServerWebSocketVerify, ...(ServerWebSocketUrl !== undefined && { url: ServerWebSocketUrl }) };
  return {
    ...serverAddress(ServerUrl),
    fingerprint: ServerFingerprint,
    webSocket,
    ...(RootCerts !== undefined && { rootCerts: RootCerts }),
  };
}

/** The target of a remote connect. `waits` is called when the device is not attached; null: the connect fails then. */
type RemoteTarget = ConnectTarget & { readonly signal: AbortSignal; readonly waits: (() => void) | null };

/**
 * Connects through the base station.
 * @param onWaiting called once, when it waits for a device that is not attached
 * @throws the channel's error
 */
export async function connectRemote(
  host: Host,
  connector: StationConnector,
  options: EffectiveOptions,
  target: ConnectTarget & { signal: AbortSignal },
  onWaiting: () => void,
): Promise<Session> {
  requireAdmission(options);
  const connect = (waits: (() => void) | null): Promise<Session> => connectOnce(host, connector, options, { ...target, waits });
  if (!options.IgnoreDeviceNotAttached) return connect(null);
  return whileNotAttached(host.environment, connect, { signal: target.signal, onWaiting });
}

function requireAdmission({ ServerKey, ServerConnectToken, ServerJwtToken }: EffectiveOptions): void {
  if (ServerKey !== undefined || ServerConnectToken !== undefined) return;
  const missing = ServerJwtToken === undefined ? 'ServerConnectToken or ServerKey' : 'ServerKey, which belongs to ServerJwtToken,';
  throw new LocalError('INVALID_STATE', `the connection option ${missing} is missing`);
}

async function connectOnce(host: Host, connector: StationConnector, options: EffectiveOptions, target: RemoteTarget): Promise<Session> {
  let reached = false;
  try {
    return await connector.use(
      (channel, { redirects }) => {
        reached = true;
        return connectOver(host, channel, options, target, redirects > 0);
      },
      { signal: target.signal, timeout: options.DtlsHelloTimeout },
    );
  } catch (error) {
    if (reached) throw error;
    throw error instanceof SvcError && error.code === 'FINGERPRINT_MISMATCH' ? new StationMismatch(error, options) : stationFull(error);
  }
}

/** The base station is not the trusted one. Implies nothing about the device. */
export class StationMismatch extends RemoteError {
  override name = 'StationMismatch';
  constructor(cause: SvcError, { ServerFingerprint }: EffectiveOptions) {
    const expected = ServerFingerprint === undefined ? 'that it announces by https' : 'of ServerFingerprint';
    super('FINGERPRINT_MISMATCH', `the base station has another key than the one ${expected}`, { cause });
  }
}

async function connectOver(
  host: Host,
  channel: Session,
  options: EffectiveOptions,
  target: RemoteTarget,
  redirected: boolean,
): Promise<Session | Redirect> {
  // While the connect waits for the device, its answer may come at any time until the connect ends.
  const prepared = host.dials.prepare(target.waits === null ? target : { ...target, timeout: options.ConnectTimeout });
  try {
    const jwt = await unlessAborted(jwtOf(options), target.signal);
    const asked = askStation(channel, { ...options, jwt, redirected }, { initiate: prepared.initiate }, target);
    const answer = await unlessAborted(asked, target.signal).catch((error: unknown) => {
      if (target.signal.aborted) giveBackLate(channel, asked);
      throw error;
    });
    if (answer.kind === 'redirect') return new Redirect(answer);
    if (answer.kind === 'connected') noteSeen(channel, answer);
    if (answer.kind === 'waiting' || answer.respond === undefined)
      throw new RemoteError('BAD_RESPONSE', "the base station did not return the device's answer");
    const { route, routeResetToken: resetToken } = answer;
    return await prepared.establish(answer.respond, host.routes.path(channel, route, { resetToken, onUnused: giveBack }));
  } finally {
    prepared.cancel();
  }
}

/** The base station's answer to a request for a bare route. */
export type BareRoute = { readonly path: Path } | { readonly refused: SvcError };

/**
 * Asks for a bare route to the device, for an open connection (PROTOCOL.md §6). `refused`: NOT_FOUND when the device
 * does not know the connection, BAD_RESPONSE for an unexpected answer; else the base station's refusal.
 * @param id the device's id of the connection
 * @param signal ends the wait for a device that is not attached
 * @throws the error that kept the request from the base station
 */
export async function askBareRoute(
  host: Host,
  connector: StationConnector,
  options: EffectiveOptions,
  id: Uint8Array,
  signal: AbortSignal,
): Promise<BareRoute> {
  return connector.use<BareRoute>(
    async (channel, { redirects }) => {
      const jwt = await unlessAborted(jwtOf(options), signal);
      try {
        const request = { ...options, jwt, redirected: redirects > 0 };
        const answer = await askStation(channel, request, { id }, { signal, waits: () => {} });
        if (answer.kind === 'redirect') return new Redirect(answer);
        if (answer.kind === 'waiting')
          return { refused: new RemoteError('BAD_RESPONSE', "the base station did not return the device's answer") };
        noteSeen(channel, answer);
        return { path: host.routes.path(channel, answer.route, { resetToken: answer.routeResetToken, onUnused: giveBack }) };
      } catch (error) {
        if (!channel.isOpen) throw error;
        return { refused: asSvcError(error) };
      }
    },
    { signal, timeout: options.DtlsHelloTimeout },
  );
}

/** Whether a connection with these options can get another route. */
export function canAskAgain(options: EffectiveOptions, { getHttps }: Pick<Environment, 'getHttps'>): boolean {
  const { ProductId, DeviceId, Remote, ServerUrl, ServerFingerprint, ServerKey, ServerConnectToken } = options;
  if (!Remote || ServerUrl === undefined || ProductId === undefined || DeviceId === undefined) return false;
  return (ServerKey !== undefined || ServerConnectToken !== undefined) && (ServerFingerprint !== undefined || getHttps !== undefined);
}

function giveBack(channel: Session, route: Uint8Array): void {
  releaseRoute(channel, ClientPath.ROUTE, route);
}

/** Passes on the address that the base station observed, and its STUN servers. */
function noteSeen(channel: Session, { observedAddress, stun = [] }: RouteGrant): void {
  if (observedAddress !== undefined) channel.noteObservedAddress(observedAddress);
  channel.noteStun(stun);
}

/** Maps DEVICE_INTERNAL_ERROR of the base station: its own limit is reached, not the device's. */
function stationFull(error: unknown): unknown {
  if (!(error instanceof SvcError) || error.code !== 'DEVICE_INTERNAL_ERROR') return error;
  return new RemoteError('CONNECTION_REFUSED', 'the base station has no room for another connection', { cause: error });
}

/** Returns the token; calls its function only where the base station uses it. @throws as currentJwt */
async function jwtOf({ ServerConnectToken, ServerJwtToken }: EffectiveOptions): Promise<string | undefined> {
  return ServerConnectToken === undefined && ServerJwtToken !== undefined ? currentJwt(ServerJwtToken) : undefined;
}

/**
 * Asks for a route, with our Initiate or for an open connection.
 * @throws RemoteError with the code of the base station's refusal
 */
async function askStation(
  channel: Session,
  options: EffectiveOptions & { readonly jwt: string | undefined; readonly redirected: boolean },
  purpose: Pick<ConnectRequest, 'initiate'> | Pick<ConnectRequest, 'id'>,
  { waits, signal }: Pick<RemoteTarget, 'waits' | 'signal'>,
): Promise<ConnectAnswer> {
  const { ProductId = '', DeviceId = '', AppName, AppVersion, ServerKey, ServerConnectToken, Rendezvous, jwt, redirected } = options;
  const payload = encodeConnectRequest({
    productId: ProductId,
    deviceId: DeviceId,
    ...(AppName !== undefined && { appName: AppName }),
    ...(AppVersion !== undefined && { appVersion: AppVersion }),
    ...(ServerKey !== undefined && { serverKey: ServerKey }),
    ...(ServerConnectToken !== undefined && { sct: ServerConnectToken }),
    ...(jwt !== undefined && { jwt }),
    ...purpose,
    redirected,
    ...(Rendezvous === true && { direct: true }),
    ...(waits !== null && { wait: true }),
  });
  const request = {
    method: 'POST',
    path: ClientPath.CONNECT,
    contentFormat: CONTENT_FORMAT_CBOR,
    payload,
    timeout: options.DtlsHelloTimeout,
  } as const;
  const answered = waits === null ? channel.request(request).then(answerOf) : answerAfterWait(channel, request, { signal, waits });
  return answered.catch((error: unknown) => {
    throw stationFull(error);
  });
}

/** Releases a route that the base station creates after the connect was stopped. */
function giveBackLate(channel: Session, asked: Promise<ConnectAnswer>): void {
  const giveBack = (answer: ConnectAnswer): void => {
    if (answer.kind === 'connected' && channel.isOpen) releaseRoute(channel, ClientPath.ROUTE, answer.route);
  };
  asked.then(giveBack, () => {});
}
