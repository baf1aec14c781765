/**
 * Client → base station: `POST /client/connect`.
 *
 * 1. Rates: by the client's address.
 * 2. Admission: `checks.ts`.
 * 3. The directory is queried for where the device is attached (`lookups.ts`); if nowhere, an observing request with
 *    Wait is put on hold.
 * 4. Rates: by the device and the client's token (`rates.ts`).
 * 5. A route is opened, and the device gets the Initiate, with the client's address if the client requested that
 *    (Direct). Its Respond returns with the client's route id. A device that does not answer in time counts as not
 *    attached.
 *
 * A waiting client passes 4, 2, 3 and 5 when the device attaches. Above the rate it continues to wait: each device has
 * one timer for all its waiting clients. `connects.ts` has the states of a connect.
 */

import type { Environment } from '../../platform/environment.ts';
import { type CoapReply, type CoapResponse, type RoutedRequest, Router, Status, textReply } from '../../protocol/coap/index.ts';
import {
  ClientPath,
  CONTENT_FORMAT_CBOR,
  type ConnectRequest,
  decodeConnectRequest,
  decodeP2pConnectAnswer,
  encodeConnectAnswer,
  encodeP2pConnectRequest,
  type SocketAddress,
  StationPath,
  type StunServer,
  stationReply,
} from '../../protocol/control/index.ts';
import { LocalError, RemoteError, StationCode, stationCodeMeaning } from '../../protocol/errors/index.ts';
import { placeOfPeer } from '../../protocol/path.ts';
import { Rates } from '../../protocol/rates.ts';
import type { RouteEnd } from '../../protocol/relay/index.ts';
import type { LogTally } from '../../runtime/log-tally.ts';
import type { Session } from '../../runtime/session/index.ts';
import type { TokenVerifier } from '../jwt/verifier.ts';
import { hashSecret } from '../storage/secrets.ts';
import type { Store } from '../storage/store.ts';
import { checkConnect, type Postponement } from './checks.ts';
import { type Connect, Connects } from './connects.ts';
import type { DeviceIds, Directory } from './directory.ts';
import { Lookups } from './lookups.ts';
import { addressKey, BURST_SECONDS, ConnectRates, tooMany } from './rates.ts';
import type { Relay } from './relay.ts';
import type { StationSettings } from './settings.ts';

export interface ClientApiOptions {
  environment: Environment;
  store: Store;
  settings: StationSettings;
  directory: Directory;
  relay: Relay;
  tally: LogTally;
  /** The STUN ports of this base station. */
  stun: readonly StunServer[];
  /** Checks tokens of issuers. */
  tokens: TokenVerifier;
  /**
   * Called when the session has shown a valid token or key: it is a client's. Returns false if there is no room: it is
   * being closed.
   */
  onAdmitted: (session: Session, device: DeviceIds, credential: string) => boolean;
}

/** Serves requests of clients. */
export class ClientApi {
  readonly router: Router<Session>;
  readonly connects: Connects;
  readonly #options: ClientApiOptions;
  readonly #perAddress: Rates;
  readonly #perDevice: ConnectRates;
  readonly #lookups: Lookups;

  constructor(options: ClientApiOptions) {
    const { environment, settings, directory, tally } = options;
    const { log } = tally;
    const { clock } = environment;
    this.#options = options;
    this.#perAddress = new Rates(settings.connectsPerAddress, BURST_SECONDS * settings.connectsPerAddress);
    this.#perDevice = new ConnectRates(settings.connectsPerDevice);
    const limits = { perKey: settings.lookupsPerAddress, total: settings.lookups };
    this.#lookups = new Lookups({ directory, clock, log, limits, timeout: settings.lookupTimeout });
    this.connects = new Connects(settings);
    this.router = new Router<Session>({ onError: (error) => log.error('client request failed', { error: String(error) }) }).on(
      'POST',
      ClientPath.CONNECT,
      (request) => this.connect(request),
    );
  }

  /** Numbers of clients that wait for a device, and of pending lookups in the directory. */
  stats(): { readonly waiting: number; readonly lookups: number } {
    return { waiting: this.connects.waiting, lookups: this.#lookups.size };
  }

  /** Serves the waiting clients of a device that has attached, after its answer has left. */
  attached(device: DeviceIds): void {
    this.connects.attached(device);
    this.#options.environment.clock.defer(() => this.#serveAll(device));
  }

  /** Serves a connect, also on a neutral session: with a valid token or key the session becomes a client's. */
  async connect({ context: session, exchange, observe, payload }: RoutedRequest<Session>): Promise<CoapReply> {
    const wait = this.#perAddress.take(addressKey(session.paths.active), this.#options.environment.clock.now());
    if (wait > 0) return tooMany(wait);
    const request = decodeConnectRequest(payload);
    const connect = this.connects.begin({ session, exchange, request, mayWait: observe && request.wait === true });
    return (await this.#serve(connect)) ?? WAITING;
  }

  /** Serves the waiting clients of a device; those above the rate continue to wait. */
  #serveAll(device: DeviceIds): void {
    for (const connect of this.connects.ofDevice(device)?.waiting ?? []) {
      const wait = this.#takeTurn(connect);
      if (wait > 0) this.#retryIn(wait, connect);
      else void this.#notify(connect);
    }
  }

  #retryIn(seconds: number, { device, request }: Connect): void {
    device.cancelRetry ??= this.#options.environment.clock.schedule(seconds * 1000, () => {
      device.cancelRetry = null;
      this.#serveAll(request);
    });
  }

  /** Serves a waiting client. Never rejects. */
  async #notify(connect: Connect): Promise<void> {
    const { session, exchange } = connect;
    this.connects.move(connect, 'checking');
    try {
      const reply = await this.#serve(connect);
      if (reply !== null) session.notify(exchange, reply);
    } catch (error) {
      this.#options.tally.log.error('connect after waiting failed', { error: String(error) });
      session.notify(exchange, textReply(Status.INTERNAL_SERVER_ERROR, 'Internal error'));
    }
  }

  /** Serves a connect from its check on. @returns its answer; null: none, the client waits or is gone */
  async #serve(connect: Connect): Promise<CoapReply | null> {
    let reply: CoapReply | null | undefined;
    try {
      reply = await this.#answer(connect);
      return reply;
    } finally {
      if (reply !== null) this.connects.end(connect);
    }
  }

  async #answer(connect: Connect): Promise<CoapReply | null> {
    const { session, request, waitedAt } = connect;
    const refusal = await this.#refusal(connect);
    if (refusal === null && waitedAt === null && !this.#options.onAdmitted(session, request, credentialOf(request)))
      return textReply(Status.SERVICE_UNAVAILABLE, 'No room for another connection');
    if (isDone(connect)) return null;
    if (refusal !== null) return this.#refuse(connect, refusal);
    this.connects.move(connect, 'locating');
    const located = await this.#lookups.locate(connect);
    if (isDone(connect)) return null;
    if ('failure' in located) return this.#refuse(connect, lookupRefusals[located.failure]);
    if (located.location === null) return connect.mayWait ? this.#wait(connect) : stationReply(StationCode.NOT_ATTACHED);
    // A client that has waited took its turn before.
    const wait = waitedAt === null ? this.#takeTurn(connect) : 0;
    if (wait > 0) return tooMany(wait);
    this.connects.move(connect, 'reaching');
    return this.#reach(connect, located.location.session);
  }

  /** Returns the refusal for a client without valid admission; null otherwise. */
  async #refusal({ session, request, device: { name: device } }: Connect): Promise<CoapReply | null> {
    const { store, tally, tokens } = this.#options;
    const address = addressKey(session.paths.active);
    const checked = await checkConnect(store, request, (app, token) => tokens.check({ app, token, device, address }));
    if ('device' in checked) return null;
    if ('wait' in checked) return postponed(checked);
    const { refused, message = stationCodeMeaning(refused)?.message } = checked;
    tally.count('connect refused', { device, address: placeOfPeer(session.paths.active), reason: message });
    return stationReply(refused, message);
  }

  /** Takes one connect from the rates. @returns 0, or the seconds to wait */
  #takeTurn({ session, request, device }: Connect): number {
    const connecting = { device: device.name, credential: credentialOf(request), address: addressKey(session.paths.active) };
    return this.#perDevice.take(connecting, this.#options.environment.clock.now());
  }

  /** Refuses a connect; one that has waited continues to wait where there are too many requests. */
  #refuse(connect: Connect, refusal: CoapReply): CoapReply | null {
    if (connect.waitedAt === null || refusal.status !== Status.TOO_MANY_REQUESTS) return refusal;
    const reply = this.#wait(connect);
    if (reply === null) this.#retryIn(BUSY_SECONDS, connect);
    return reply;
  }

  #wait(connect: Connect): CoapReply | null {
    return this.connects.wait(connect) ? null : textReply(Status.SERVICE_UNAVAILABLE, 'Too many wait');
  }

  async #reach(connect: Connect, device: Session): Promise<CoapReply> {
    const { session: client, request } = connect;
    const { environment, relay } = this.#options;
    const end = relay.open(client, device);
    if (end === null) return textReply(Status.SERVICE_UNAVAILABLE, 'Too many routes');
    const refusal = (reply: CoapReply): CoapReply => {
      relay.close(end);
      return reply;
    };
    try {
      const response = await this.#ask(device, end, request, client);
      if (response.status >= 300) return refusal(passedOn(response, request.id !== undefined));
      const { respond } = decodeP2pConnectAnswer(response.payload);
      if (isDone(connect) || !device.isOpen) return refusal(stationReply(StationCode.NOT_ATTACHED));
      environment.log.debug('client connected', {
        device: connect.device.name,
        address: placeOfPeer(client.paths.active),
        ...application(request),
      });
      return answer(this.#connected(client, end, respond));
    } catch (error) {
      if (error instanceof RemoteError && (error.code === 'PARSE' || error.code === 'BAD_RESPONSE')) {
        return refusal(textReply(Status.BAD_GATEWAY, 'The device returned an invalid answer'));
      }
      if (error instanceof LocalError || error instanceof RemoteError) return refusal(stationReply(StationCode.NOT_ATTACHED));
      relay.close(end);
      throw error;
    }
  }

  #ask(device: Session, { other }: RouteEnd, connect: ConnectRequest, client: Session): Promise<CoapResponse> {
    const { initiate, id } = connect;
    const peerAddress = connect.direct === true ? validatedAddress(client) : undefined;
    const body = {
      route: other.id,
      routeResetToken: other.resetToken,
      ...(initiate !== undefined && { initiate }),
      ...(id !== undefined && { id }),
      ...(peerAddress !== undefined && { peerAddress }),
    };
    return device.request({
      method: 'POST',
      path: StationPath.P2P_CONNECT,
      contentFormat: CONTENT_FORMAT_CBOR,
      payload: encodeP2pConnectRequest(body),
      timeout: this.#options.settings.answerTimeout,
    });
  }

  #connected({ paths }: Session, end: RouteEnd, respond: Uint8Array | undefined): Uint8Array {
    const { kind, address, port } = paths.active;
    return encodeConnectAnswer({
      kind: 'connected',
      route: end.id,
      routeResetToken: end.resetToken,
      // The port of a WebSocket is no candidate for UDP.
      ...(kind === 'udp' && { observedAddress: { address, port } }),
      stun: this.#options.stun,
      ...(respond === undefined ? {} : { respond }),
    });
  }
}

/** s after which a client may try again when there are too many requests. */
const BUSY_SECONDS = 1;

/** Returns whether the client no longer waits for it. */
function isDone({ state }: Connect): boolean {
  return state === 'done';
}

const lookupRefusals = {
  busy: tooMany(BUSY_SECONDS),
  unanswered: textReply(Status.SERVICE_UNAVAILABLE, 'The base station cannot find out where the device is'),
};

/** Returns the hash of what admits the client. */
function credentialOf({ sct, jwt, serverKey = '' }: ConnectRequest): string {
  return hashSecret(sct ?? jwt ?? serverKey);
}

/**
 * Returns the client's validated address, never one that it merely claims: the device may send unsolicited packets
 * there.
 */
function validatedAddress({ paths }: Session): SocketAddress | undefined {
  const { kind, address, port } = paths.validated;
  return kind === 'udp' ? { address, port } : undefined;
}

function postponed({ wait, reason }: Postponement): CoapReply {
  if (reason === 'rate') return tooMany(wait);
  return { ...textReply(Status.SERVICE_UNAVAILABLE, 'The keys of the issuer are unavailable'), maxAge: wait };
}

/** Returns the log fields with the application that the client names. */
function application({ appName, appVersion }: ConnectRequest): { app?: string; version?: string } {
  return { ...(appName !== undefined && { app: appName }), ...(appVersion !== undefined && { version: appVersion }) };
}

function answer(payload: Uint8Array): CoapReply {
  return { status: Status.CREATED, contentFormat: CONTENT_FORMAT_CBOR, payload };
}

const WAITING: CoapReply = { ...answer(encodeConnectAnswer({ kind: 'waiting' })), observe: true };

/** Most seconds that a device may ask a client to wait. */
const MAX_BUSY = 60;

/**
 * Passes on two refusals of a device: that it is busy, and that it does not know the connection. The client learns
 * nothing of any other.
 * @param bare whether a bare route was requested
 */
function passedOn({ status, maxAge }: CoapResponse, bare: boolean): CoapReply {
  if (bare && status === Status.NOT_FOUND) return textReply(status, 'The device does not know the connection');
  if (status !== Status.TOO_MANY_REQUESTS && status !== Status.SERVICE_UNAVAILABLE) {
    return textReply(Status.BAD_GATEWAY, 'The device refused the connection');
  }
  return {
    ...textReply(status, 'The device is busy'),
    ...(maxAge === undefined ? {} : { maxAge: Math.min(Math.max(BUSY_SECONDS, maxAge), MAX_BUSY) }),
  };
}
