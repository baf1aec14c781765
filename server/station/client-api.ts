/**
 * Client → base station: `POST /client/connect`.
 *
 * 1. Rates: by the client's address. 2. Admission: `checks.ts`. 3. The device must be attached; an observing request with Wait is told
 * to wait, and goes on here when the device attaches. 4. At most five connects a second to one device. 5. A route is made and the device asked
 * with the Initiate; its Respond travels back with the client's route id. A device that does not answer in time counts as not attached.
 */
import { type CoapReply, type CoapResponse, type RoutedRequest, Router, Status, textReply } from '../../protocol/coap/index.ts';
import {
  ClientPath,
  CONTENT_FORMAT_CBOR,
  type ConnectRequest,
  decodeConnectRequest,
  decodeP2pConnectAnswer,
  encodeConnectAnswer,
  encodeP2pConnectRequest,
  StationPath,
  stationReply,
} from '../../protocol/control/index.ts';
import { LocalError, RemoteError, StationCode, stationCodeMeaning } from '../../protocol/errors/index.ts';
import type { RouteEnd } from '../../protocol/relay/index.ts';
import type { Environment } from '../../transport/environment.ts';
import type { Session } from '../../transport/session/index.ts';
import type { Store } from '../storage/store.ts';
import { checkConnect } from './checks.ts';
import { type Attached, deviceName, type Presence } from './presence.ts';
import { addressKey, BURST_SECONDS, Rates, tooMany } from './rates.ts';
import type { Relay } from './relay.ts';
import type { StationSettings } from './settings.ts';
import type { Waiters } from './waiters.ts';

export interface ClientApiOptions {
  environment: Environment;
  store: Store;
  settings: StationSettings;
  presence: Presence;
  waiters: Waiters;
  relay: Relay;
}

/** What clients may ask. */
export class ClientApi {
  readonly router: Router<Session>;
  readonly #options: ClientApiOptions;
  readonly #perAddress: Rates;
  readonly #perDevice: Rates;

  constructor(options: ClientApiOptions) {
    const { environment, settings } = options;
    this.#options = options;
    this.#perAddress = new Rates(settings.connectsPerAddress, BURST_SECONDS * settings.connectsPerAddress);
    this.#perDevice = new Rates(settings.connectsPerDevice, settings.connectsPerDevice);
    this.router = new Router<Session>({ onError: (error) => environment.log.error('client request failed', { error: String(error) }) }).on(
      'POST',
      ClientPath.CONNECT,
      (request) => this.connect(request),
    );
  }

  /** Also served to sessions that have not said what they are: this one then is a client. */
  async connect(request: RoutedRequest<Session>): Promise<CoapReply> {
    const { environment, presence, store } = this.#options;
    const session = request.context;
    session.router = this.router;
    const wait = this.#perAddress.take(addressKey(session.path), environment.clock.now());
    if (wait > 0) return tooMany(wait);
    const connect = decodeConnectRequest(request.payload);
    const checked = await checkConnect(store, connect);
    if ('refused' in checked) {
      environment.log.debug('connect refused', { device: deviceName(connect), reason: stationCodeMeaning(checked.refused)?.message });
      return stationReply(checked.refused);
    }
    const attached = presence.find(connect);
    if (attached !== null) return this.#reach(session, attached, connect);
    return request.observe && connect.wait === true ? this.#wait(request, connect) : stationReply(StationCode.NOT_ATTACHED);
  }

  #wait({ context: session, exchange }: RoutedRequest<Session>, connect: ConnectRequest): CoapReply {
    if (!this.#await(session, exchange, connect)) return textReply(Status.SERVICE_UNAVAILABLE, 'Too many wait');
    return { ...answer(encodeConnectAnswer({ kind: 'waiting' })), observe: true };
  }

  #await(session: Session, exchange: number, connect: ConnectRequest): boolean {
    return this.#options.waiters.add(connect, { session, exchange, serve: () => void this.#serve(session, exchange, connect) });
  }

  /** The device has attached. Its record may have changed meanwhile, so admission is asked again. */
  async #serve(session: Session, exchange: number, connect: ConnectRequest): Promise<void> {
    const { environment, presence, store } = this.#options;
    try {
      const checked = await checkConnect(store, connect);
      const attached = presence.find(connect);
      if ('refused' in checked) session.notify(exchange, stationReply(checked.refused));
      else if (attached === null) this.#awaitAgain(session, exchange, connect);
      else this.#served(session, exchange, connect, await this.#reach(session, attached, connect));
    } catch (error) {
      environment.log.error('connect after waiting failed', { error: String(error) });
      session.notify(exchange, textReply(Status.INTERNAL_SERVER_ERROR, 'Internal error'));
    }
  }

  /** Many may have waited for one device: who comes too early waits on, and is tried again. */
  #served(session: Session, exchange: number, connect: ConnectRequest, reply: CoapReply): void {
    const { environment, waiters } = this.#options;
    if (reply.status !== Status.TOO_MANY_REQUESTS) session.notify(exchange, reply);
    else if (this.#awaitAgain(session, exchange, connect)) {
      environment.clock.schedule((reply.maxAge ?? 1) * 1000, () => waiters.serve(connect));
    }
  }

  #awaitAgain(session: Session, exchange: number, connect: ConnectRequest): boolean {
    if (!session.isOpen) return false;
    const waits = this.#await(session, exchange, connect);
    if (!waits) session.notify(exchange, textReply(Status.SERVICE_UNAVAILABLE, 'Too many wait'));
    return waits;
  }

  async #reach(client: Session, device: Attached, { initiate }: ConnectRequest): Promise<CoapReply> {
    const { environment, relay } = this.#options;
    const wait = this.#perDevice.take(deviceName(device), environment.clock.now());
    if (wait > 0) return tooMany(wait);
    const end = relay.open(client, device.session);
    if (end === null) return textReply(Status.SERVICE_UNAVAILABLE, 'Too many routes');
    const refusal = (reply: CoapReply): CoapReply => {
      relay.close(end);
      return reply;
    };
    try {
      const response = await this.#ask(device, end, initiate);
      if (response.status >= 300) return refusal(passedOn(response));
      const { respond } = decodeP2pConnectAnswer(response.payload);
      if (!client.isOpen || !device.session.isOpen) return refusal(stationReply(StationCode.NOT_ATTACHED));
      environment.log.debug('client connected', { device: deviceName(device), address: client.path.key });
      return answer(this.#connected(client, end, respond));
    } catch (error) {
      if (error instanceof RemoteError && (error.code === 'PARSE' || error.code === 'BAD_RESPONSE')) {
        return refusal(textReply(Status.BAD_GATEWAY, 'The device gave no proper answer'));
      }
      if (error instanceof LocalError || error instanceof RemoteError) return refusal(stationReply(StationCode.NOT_ATTACHED));
      relay.close(end);
      throw error;
    }
  }

  #ask({ session }: Attached, { other }: RouteEnd, initiate: Uint8Array | undefined): Promise<CoapResponse> {
    const body = { route: other.id, routeResetToken: other.resetToken, ...(initiate === undefined ? {} : { initiate }) };
    return session.request({
      method: 'POST',
      path: StationPath.P2P_CONNECT,
      contentFormat: CONTENT_FORMAT_CBOR,
      payload: encodeP2pConnectRequest(body),
      timeout: this.#options.settings.answerTimeout,
    });
  }

  #connected({ path: { address, port } }: Session, end: RouteEnd, respond: Uint8Array | undefined): Uint8Array {
    return encodeConnectAnswer({
      kind: 'connected',
      route: end.id,
      routeResetToken: end.resetToken,
      observedAddress: { address, port },
      ...(respond === undefined ? {} : { respond }),
    });
  }
}

function answer(payload: Uint8Array): CoapReply {
  return { status: Status.CREATED, contentFormat: CONTENT_FORMAT_CBOR, payload };
}

/** Seconds: a device that asks for more is asked again all the same. */
const MAX_BUSY = 60;

/** "Busy" of a device is passed on, any other refusal says nothing to the client. */
function passedOn({ status, maxAge }: CoapResponse): CoapReply {
  if (status !== Status.TOO_MANY_REQUESTS && status !== Status.SERVICE_UNAVAILABLE) {
    return textReply(Status.BAD_GATEWAY, 'The device refused the connection');
  }
  return { ...textReply(status, 'The device is busy'), ...(maxAge === undefined ? {} : { maxAge: Math.min(maxAge, MAX_BUSY) }) };
}
