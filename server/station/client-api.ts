/**
 * Client → base station: `POST /client/connect`.
 *
 * 1. Rates: by the client's address.
 * 2. Admission: `checks.ts`.
 * 3. The directory is queried for where the device is attached (`lookups.ts`); if nowhere, an observing request with
 *    Wait is put on hold.
 * 4. Rates: by the device and the client's token (`connect-rates.ts`).
 * 5. A route is opened, and the device gets the Initiate, with the client's address if the client requested that
 *    (Direct). Its Respond returns with the client's route id. A device that does not answer in time counts as not
 *    attached.
 *
 * A waiting client passes 4, 2, 3 and 5 when the device attaches. Above the rate it continues to wait: each device has
 * one timer for all its waiting clients.
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
import { checkConnect, type Postponed } from './checks.ts';
import { type Connecting, ConnectRates } from './connect-rates.ts';
import type { DeviceIds, Directory } from './directory.ts';
import { type LookupResult, Lookups } from './lookups.ts';
import { type PendingConnect, PendingConnects } from './pending-connects.ts';
import { deviceName } from './presence.ts';
import { addressKey, BURST_SECONDS, tooMany } from './rates.ts';
import type { Relay } from './relay.ts';
import type { StationSettings } from './settings.ts';
import { Waiters } from './waiters.ts';

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

/** A connect in progress. */
interface Ongoing extends PendingConnect {
  /** Whether the client has cancelled it. */
  cancelled: boolean;
}

/** Serves requests of clients. */
export class ClientApi {
  readonly router: Router<Session>;
  readonly #options: ClientApiOptions;
  readonly #perAddress: Rates;
  readonly #perDevice: ConnectRates;
  readonly #lookups: Lookups;
  readonly #waiters: Waiters;
  readonly #ongoing = new PendingConnects<Ongoing>();
  /** Devices whose waiting clients will be served again soon. */
  readonly #retries = new Set<string>();

  constructor(options: ClientApiOptions) {
    const { environment, settings, directory, tally } = options;
    const { log } = tally;
    const { clock } = environment;
    this.#options = options;
    this.#perAddress = new Rates(settings.connectsPerAddress, BURST_SECONDS * settings.connectsPerAddress);
    this.#perDevice = new ConnectRates(settings.connectsPerDevice);
    const limits = { perKey: settings.lookupsPerAddress, total: settings.lookups };
    this.#lookups = new Lookups({ directory, clock, log, limits, timeout: settings.lookupTimeout });
    this.#waiters = new Waiters(settings);
    this.router = new Router<Session>({ onError: (error) => log.error('client request failed', { error: String(error) }) }).on(
      'POST',
      ClientPath.CONNECT,
      (request) => this.connect(request),
    );
  }

  /** Numbers of clients that wait for a device, and of pending lookups in the directory. */
  stats(): { readonly waiting: number; readonly lookups: number } {
    return { waiting: this.#waiters.size, lookups: this.#lookups.size };
  }

  /** Serves the waiting clients of a device that has attached, after its answer has left. */
  attached(device: DeviceIds): void {
    this.#lookups.attached(device);
    this.#options.environment.clock.defer(() => this.#waiters.serve(device));
  }

  /** Cancels a request, on behalf of its client. */
  cancelled(session: Session, exchange: number): void {
    for (const ongoing of this.#ongoing.ofExchange(session, exchange)) ongoing.cancelled = true;
    this.#lookups.removeExchange(session, exchange);
    this.#waiters.removeExchange(session, exchange);
  }

  /** Ends the requests of an ended session. */
  ended(session: Session): void {
    this.#lookups.removeSession(session);
    this.#waiters.removeSession(session);
  }

  /** Serves a connect, also on a neutral session: with a valid token or key the session becomes a client's. */
  async connect(request: RoutedRequest<Session>): Promise<CoapReply> {
    const session = request.context;
    const wait = this.#perAddress.take(addressKey(session.path), this.#options.environment.clock.now());
    if (wait > 0) return tooMany(wait);
    const connect = decodeConnectRequest(request.payload);
    return this.#during({ device: connect, session, exchange: request.exchange }, (ongoing) => this.#connect(ongoing, request, connect));
  }

  /** Registers the request while it runs, so that the client can cancel it at any step. */
  async #during<T>(pending: PendingConnect, work: (ongoing: Ongoing) => Promise<T>): Promise<T> {
    const ongoing: Ongoing = { ...pending, cancelled: false };
    this.#ongoing.add(ongoing);
    try {
      return await work(ongoing);
    } finally {
      this.#ongoing.remove(ongoing);
    }
  }

  async #connect(ongoing: Ongoing, { observe }: RoutedRequest<Session>, connect: ConnectRequest): Promise<CoapReply> {
    const { environment, onAdmitted } = this.#options;
    const { session } = ongoing;
    const refusal = await this.#refusal(ongoing, connect);
    if (refusal !== null) return refusal;
    if (!onAdmitted(session, connect, credentialOf(connect)))
      return textReply(Status.SERVICE_UNAVAILABLE, 'No room for another connection');
    const located = await this.#locate(ongoing);
    if (isOver(ongoing)) return GIVEN_UP;
    if ('refused' in located) return located.refused;
    if (located.device === null)
      return observe && connect.wait === true ? this.#wait(ongoing, connect) : stationReply(StationCode.NOT_ATTACHED);
    const wait = this.#perDevice.take(connecting(connect, session), environment.clock.now());
    return wait > 0 ? tooMany(wait) : this.#reach(ongoing, located.device, connect);
  }

  /** Returns the refusal for a client without valid admission; null otherwise. */
  async #refusal({ session }: PendingConnect, connect: ConnectRequest): Promise<CoapReply | null> {
    const { store, tally, tokens } = this.#options;
    const device = deviceName(connect);
    const address = addressKey(session.path);
    const checked = await checkConnect(store, connect, (app, token) => tokens.check({ app, token, device, address }));
    if ('device' in checked) return null;
    if ('wait' in checked) return postponed(checked);
    const { refused, message = stationCodeMeaning(refused)?.message } = checked;
    tally.count('connect refused', { device, address: placeOfPeer(session.path), reason: message });
    return stationReply(refused, message);
  }

  #wait(pending: PendingConnect, connect: ConnectRequest): CoapReply {
    if (!this.#await(pending, connect)) return textReply(Status.SERVICE_UNAVAILABLE, 'Too many wait');
    return { ...answer(encodeConnectAnswer({ kind: 'waiting' })), observe: true };
  }

  #await({ session, exchange }: PendingConnect, connect: ConnectRequest): boolean {
    const pending = { device: connect, session, exchange };
    return this.#waiters.add({ ...pending, address: addressKey(session.path), serve: () => void this.#serve(pending, connect) });
  }

  /** Serves a waiting client: the device has attached, or the rate permits another connect. Never rejects. */
  async #serve(pending: PendingConnect, connect: ConnectRequest): Promise<void> {
    const { environment, tally } = this.#options;
    const wait = this.#perDevice.take(connecting(connect, pending.session), environment.clock.now());
    if (wait > 0) return this.#awaitTurn(pending, connect, wait);
    try {
      await this.#during(pending, (ongoing) => this.#serveNow(ongoing, connect));
    } catch (error) {
      tally.log.error('connect after waiting failed', { error: String(error) });
      pending.session.notify(pending.exchange, textReply(Status.INTERNAL_SERVER_ERROR, 'Internal error'));
    }
  }

  /** The device's record may have changed while the client waited, so admission is checked again. */
  async #serveNow(ongoing: Ongoing, connect: ConnectRequest): Promise<void> {
    const { session, exchange } = ongoing;
    const refusal = await this.#refusal(ongoing, connect);
    const located = refusal === null ? await this.#locate(ongoing) : { refused: refusal };
    if (isOver(ongoing)) return;
    if ('refused' in located) {
      if (located.refused.status === Status.TOO_MANY_REQUESTS) this.#awaitTurn(ongoing, connect, BUSY_SECONDS);
      else session.notify(exchange, located.refused);
    } else if (located.device === null) this.#awaitAgain(ongoing, connect);
    else session.notify(exchange, await this.#reach(ongoing, located.device, connect));
  }

  /** Handles a rate limit: the client continues to wait, and all clients of the device are tried again in `seconds`. */
  #awaitTurn(pending: PendingConnect, connect: ConnectRequest, seconds: number): void {
    const name = deviceName(connect);
    if (!this.#awaitAgain(pending, connect) || this.#retries.has(name)) return;
    this.#retries.add(name);
    this.#options.environment.clock.schedule(seconds * 1000, () => {
      this.#retries.delete(name);
      this.#waiters.serve(connect);
    });
  }

  #awaitAgain(pending: PendingConnect, connect: ConnectRequest): boolean {
    const { session, exchange } = pending;
    if (!session.isOpen) return false;
    const waits = this.#await(pending, connect);
    if (!waits) session.notify(exchange, textReply(Status.SERVICE_UNAVAILABLE, 'Too many wait'));
    return waits;
  }

  /** Returns the session of the device, null when it is not attached, or the refusal for the client. */
  async #locate(pending: PendingConnect): Promise<{ device: Session | null } | { refused: CoapReply }> {
    const result = await this.#lookups.locate(pending, addressKey(pending.session.path));
    return 'failure' in result ? { refused: lookupRefusals[result.failure] } : { device: result.location?.session ?? null };
  }

  async #reach(ongoing: Ongoing, device: Session, connect: ConnectRequest): Promise<CoapReply> {
    const { session: client } = ongoing;
    const { environment, relay } = this.#options;
    const end = relay.open(client, device);
    if (end === null) return textReply(Status.SERVICE_UNAVAILABLE, 'Too many routes');
    const refusal = (reply: CoapReply): CoapReply => {
      relay.close(end);
      return reply;
    };
    try {
      const response = await this.#ask(device, end, connect, client);
      if (response.status >= 300) return refusal(passedOn(response, connect.id !== undefined));
      const { respond } = decodeP2pConnectAnswer(response.payload);
      if (isOver(ongoing) || !device.isOpen) return refusal(stationReply(StationCode.NOT_ATTACHED));
      environment.log.debug('client connected', {
        device: deviceName(connect),
        address: placeOfPeer(client.path),
        ...application(connect),
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

  #connected({ path: { kind, address, port } }: Session, end: RouteEnd, respond: Uint8Array | undefined): Uint8Array {
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

/** A placeholder that is never sent. */
const GIVEN_UP = stationReply(StationCode.NOT_ATTACHED);

/** Returns whether the client no longer waits for it. */
function isOver({ cancelled, session }: Ongoing): boolean {
  return cancelled || !session.isOpen;
}

const lookupRefusals: Readonly<Record<Extract<LookupResult, { failure: string }>['failure'], CoapReply>> = {
  busy: tooMany(BUSY_SECONDS),
  unanswered: textReply(Status.SERVICE_UNAVAILABLE, 'The base station cannot find out where the device is'),
  // Never sent: the client is gone, or the base station stops.
  cancelled: textReply(Status.SERVICE_UNAVAILABLE, 'The base station stops'),
};

/** Returns the hash of what admits the client. */
function credentialOf({ sct, jwt, serverKey = '' }: ConnectRequest): string {
  return hashSecret(sct ?? jwt ?? serverKey);
}

/**
 * Returns the client's validated address, never one that it merely claims: the device may send unsolicited packets
 * there.
 */
function validatedAddress({ validatedPath: { kind, address, port } }: Session): SocketAddress | undefined {
  return kind === 'udp' ? { address, port } : undefined;
}

function connecting(connect: ConnectRequest, client: Session): Connecting {
  return { device: deviceName(connect), credential: credentialOf(connect), address: addressKey(client.path) };
}

function postponed({ wait, reason }: Postponed): CoapReply {
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
