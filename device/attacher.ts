/**
 * Keeps a device attached to its base station.
 *
 * Steps on each fresh channel: `POST /device/attach`, following a redirect; then the server connect tokens
 * (`token-upload.ts`). The session layer's StationChannel provides the channel: it resolves the host, checks the base
 * station's key and retries with back-off. The base station may request only `/p2p/connect` of a device: it forwards a
 * client's Initiate, and the device answers with its Respond.
 *
 * Reports to the device's listeners: ATTACHED, DETACHED, and why an attach was refused.
 */

import type { Environment } from '../platform/environment.ts';
import { type CoapReply, type CoapResponse, type RoutedRequest, Router, Status, textReply } from '../protocol/coap/index.ts';
import {
  CONTENT_FORMAT_CBOR,
  DevicePath,
  decodeAttachAnswer,
  decodeP2pConnectRequest,
  encodeAttachRequest,
  encodeP2pConnectAnswer,
  StationPath,
  stationError,
} from '../protocol/control/index.ts';
import { LocalError, RemoteError, type SvcError } from '../protocol/errors/index.ts';
import { VERSION } from '../protocol/records/index.ts';
import type { Host, KeepAlive } from '../runtime/host/index.ts';
import type { Session, SessionRequest } from '../runtime/session/index.ts';
import { type AttachVerdict, type ConfiguredStation, releaseRoute, StationChannel } from '../runtime/station/index.ts';
import { type DeviceEvent, eventOf } from './events.ts';
import { TokenUpload } from './token-upload.ts';
import type { ServerConnectTokens } from './tokens.ts';
import { Watchdog } from './watchdog.ts';

export interface AttacherConfig {
  readonly environment: Environment;
  readonly host: Host;
  readonly station: ConfiguredStation;
  readonly tokens: ServerConnectTokens;
  readonly names: {
    readonly productId: string;
    readonly deviceId: string;
    readonly appName: string | null;
    readonly appVersion: string | null;
  };
  readonly onEvent: (event: DeviceEvent, reason: SvcError | null) => void;
  /** Called before ATTACHED. @param keepAlive limits from the base station, an upper bound; null where it sent none */
  readonly onChannel: (channel: Session, keepAlive: KeepAlive | null) => void;
}

/** Seconds after which a client that met too many handshakes under way may retry. */
const BUSY_SECONDS = 1;

export class Attacher {
  readonly #config: AttacherConfig;
  readonly channel: StationChannel;
  readonly #watchdog: Watchdog;
  readonly tokens: TokenUpload;
  #attached = false;
  #running = false;
  /** Keep-alive limits from the latest attach answer. */
  #keepAlive: KeepAlive | null = null;
  /** Code of the latest failure logged since the last attach. */
  #lastFailure: string | null = null;

  constructor(config: AttacherConfig) {
    this.#config = config;
    this.#watchdog = new Watchdog(config.environment.clock, () => config.onEvent('WATCHDOG_FAILURE', null));
    this.tokens = new TokenUpload(config.environment, config.tokens);
    const router = new Router<Session>();
    router.on('POST', StationPath.P2P_CONNECT, (request) => this.#acceptRelayed(request));
    this.channel = new StationChannel({
      host: config.host,
      station: config.station,
      router,
      attach: (session, context) => this.#attach(session, context),
    });
    this.channel.on('connected', (session) => this.#connected(session));
    this.channel.on('disconnected', (reason) => this.#disconnected(reason));
    this.channel.on('failed', ({ error, delay }) => this.#failed(error, delay));
  }

  /** Whether the device is attached. */
  get attached(): boolean {
    return this.#attached;
  }

  /** Sends an application's request to the base station. @throws LocalError NOT_ATTACHED; as `Session.request` */
  async request(request: SessionRequest): Promise<CoapResponse> {
    const { session } = this.channel;
    if (session === null) throw new LocalError('NOT_ATTACHED', 'the device is not attached to the base station');
    return session.request(request);
  }

  /** Starts attaching. Does nothing while it runs. */
  start(): void {
    if (this.#running) return;
    this.#running = true;
    this.#watchdog.restart();
    this.channel.start();
  }

  /** Detaches; `start` attaches again. */
  async stop(): Promise<void> {
    this.#running = false;
    this.#watchdog.stop();
    await this.channel.stop();
  }

  async #attach(session: Session, { redirects }: { redirects: number }): Promise<AttachVerdict> {
    const { productId, deviceId, appName, appVersion } = this.#config.names;
    const shown = this.tokens.show();
    const redirected = redirects > 0;
    const response = await session.request({
      method: 'POST',
      path: DevicePath.ATTACH,
      contentFormat: CONTENT_FORMAT_CBOR,
      payload: encodeAttachRequest({ svcVersion: VERSION, productId, deviceId, appName, appVersion, redirected, tokens: shown.digest }),
    });
    if (response.status >= 300) return refusal(response);
    const answer = decodeAttachAnswer(response.payload);
    if (answer.kind === 'redirect') {
      return { kind: 'redirect', station: { host: answer.host, port: answer.port, fingerprint: answer.fingerprint } };
    }
    await this.tokens.attached(session, shown, answer);
    const { keepAlive, observedAddress, stun } = answer;
    this.#keepAlive = keepAlive;
    return {
      kind: 'attached',
      ...(observedAddress !== null && { observedAddress }),
      ...(stun !== undefined && { stun }),
    };
  }

  /**
   * Accepts a client's Initiate through the base station, or its request to continue over a bare route. The router
   * answers errors.
   */
  #acceptRelayed({ payload, context: channel }: RoutedRequest<Session>): CoapReply {
    const { host } = this.#config;
    const { route, initiate, id, routeResetToken, peerAddress } = decodeP2pConnectRequest(payload);
    if (initiate === undefined && id === undefined) return textReply(Status.NOT_IMPLEMENTED, 'A route needs an Initiate or an Id');
    const options = { resetToken: routeResetToken, onUnused: giveBack, ...(peerAddress !== undefined && { peerAddress }) };
    try {
      if (id !== undefined) host.routes.offer(id, channel, route, options);
      const respond = initiate && host.routes.accept(initiate, host.routes.path(channel, route, options));
      const payload = encodeP2pConnectAnswer(respond === undefined ? {} : { respond });
      return { status: Status.CREATED, contentFormat: CONTENT_FORMAT_CBOR, payload };
    } catch (error) {
      if (!(error instanceof RemoteError) || error.code !== 'TOO_MANY_REQUESTS') throw error;
      return { ...textReply(Status.TOO_MANY_REQUESTS, error.message), maxAge: BUSY_SECONDS };
    }
  }

  #connected(session: Session): void {
    const { environment, station, onChannel } = this.#config;
    environment.log.info('attached', { station: station.host, proved: station.fingerprint === null ? 'by TLS' : 'by its fingerprint' });
    this.#attached = true;
    this.#lastFailure = null;
    this.#watchdog.stop();
    onChannel(session, this.#keepAlive);
    this.#config.onEvent('ATTACHED', null);
  }

  #disconnected(reason: SvcError | null): void {
    this.#attached = false;
    this.tokens.ended();
    if (this.#running) this.#watchdog.restart();
    this.#config.onEvent('DETACHED', reason);
  }

  /**
   * Emits an event for a failure that the application can act on. Logs any other failure, a repeated reason only once.
   */
  #failed(error: SvcError, delay: number): void {
    const event = eventOf(error.code);
    if (event === undefined) {
      const { log } = this.#config.environment;
      const level = error.code === this.#lastFailure ? 'debug' : 'warn';
      this.#lastFailure = error.code;
      log[level]('the device is not attached', {
        reason: error.message,
        code: error.code,
        nextTryMs: Math.round(delay),
      });
      return;
    }
    this.#watchdog.restart();
    this.#config.onEvent(event, error);
  }
}

/** Refusals caused by the device's own identity: an early retry does not help. */
const REFUSALS: readonly string[] = [
  'UNKNOWN_FINGERPRINT',
  'WRONG_PRODUCT_ID',
  'WRONG_DEVICE_ID',
  'UNKNOWN_PRODUCT_ID',
  'UNKNOWN_DEVICE_ID',
  'REPLACED',
];

/** Maps a refused attach to a verdict. */
function refusal(response: CoapResponse): AttachVerdict {
  const error = stationError(response);
  if (REFUSALS.includes(error.code)) return { kind: 'refused', error };
  return { kind: 'retry', error, ...(response.maxAge !== undefined && { after: response.maxAge * 1000 }) };
}

function giveBack(channel: Session, route: Uint8Array): void {
  releaseRoute(channel, DevicePath.ROUTE, route);
}
