/**
 * Device → base station → outside: `POST /device/push/send` and `POST /device/service/invoke`, for attached devices,
 * with limits of rate and concurrency.
 */
import { setMaxListeners } from 'node:events';
import type { Environment } from '../../platform/environment.ts';
import { type CoapReply, type RoutedRequest, type Router, Status, textReply } from '../../protocol/coap/index.ts';
import {
  CONTENT_FORMAT_CBOR,
  DevicePath,
  decodePushRequest,
  decodeServiceRequest,
  encodePushAnswer,
  encodeServiceAnswer,
  stationReply,
} from '../../protocol/control/index.ts';
import { StationCode } from '../../protocol/errors/index.ts';
import { Rates } from '../../protocol/rates.ts';
import type { Session } from '../../runtime/session/index.ts';
import { ConcurrencyLimit } from '../concurrency-limit.ts';
import { type HttpPost, nodePost } from '../outbound/http.ts';
import { type SignAssertion, signAssertion } from '../push/account.ts';
import { type PushEvent, PushRelay } from '../push/relay.ts';
import { ServiceInvoker } from '../services/invoker.ts';
import type { Sealer } from '../storage/sealing.ts';
import type { Store } from '../storage/store.ts';
import { type Attachment, deviceName, type Presence } from './presence.ts';
import { BURST_SECONDS, tooMany } from './rates.ts';
import type { StationSettings } from './settings.ts';

/** Events of the calls to the outside. */
export type OutboundEvent = PushEvent;

export interface OutboundOptions {
  environment: Environment;
  store: Store;
  settings: StationSettings;
  presence: Presence;
  /** Opens the keys of push credentials and services. */
  sealer: Sealer;
  /** Default: Node's HTTP. */
  post?: HttpPost;
  /** Default: RS256 by jose. */
  sign?: SignAssertion;
  onEvent?: (event: OutboundEvent) => void;
}

/**
 * Concurrent calls of one device while half of all are in use: devices with slow services do not hold the slots of the
 * others.
 */
export const CROWDED_PER_DEVICE = 1;
/** s after which a device with too many calls under way may try again. */
const BUSY_SECONDS = 1;

/** Serves the two paths. */
export class OutboundApi {
  readonly #options: OutboundOptions;
  readonly #calls: ConcurrencyLimit;
  readonly #rates: Rates;
  readonly #push: PushRelay;
  readonly #services: ServiceInvoker;
  readonly #stopping = new AbortController();

  constructor(options: OutboundOptions) {
    const { environment, store, sealer, post = nodePost, sign = signAssertion, onEvent = () => {}, settings } = options;
    const { signal } = this.#stopping;
    // Each call listens to this signal; `#calls` bounds their number.
    setMaxListeners(0, signal);
    this.#options = options;
    const { outboundPerDevice: perKey, outbound: total } = settings;
    this.#calls = new ConcurrencyLimit({ perKey, perKeyAboveHalf: CROWDED_PER_DEVICE, total });
    this.#rates = new Rates(settings.outboundRate, BURST_SECONDS * settings.outboundRate);
    this.#push = new PushRelay({ environment, store, sealer, post, sign, signal, onEvent });
    this.#services = new ServiceInvoker({ environment, store, sealer, post, signal });
  }

  /** Number of calls under way. */
  get size(): number {
    return this.#calls.size;
  }

  addTo(router: Router<Session>): void {
    router
      .on('POST', DevicePath.PUSH_SEND, (request) =>
        this.#serve(request, decodePushRequest, async (device, body) => encodePushAnswer(await this.#push.send(device, body))),
      )
      .on('POST', DevicePath.SERVICE_INVOKE, (request) =>
        this.#serve(request, decodeServiceRequest, async (device, body) => encodeServiceAnswer(await this.#services.invoke(device, body))),
      );
  }

  /** Ends all calls under way. */
  stop(): void {
    this.#stopping.abort();
  }

  /** The router answers what `call` throws. */
  async #serve<Request>(
    { payload, context: session }: RoutedRequest<Session>,
    decode: (payload: Uint8Array) => Request,
    call: (device: Attachment, request: Request) => Promise<Uint8Array>,
  ): Promise<CoapReply> {
    const device = this.#options.presence.ofSession(session);
    if (device === null) return stationReply(StationCode.REPLACED);
    const wait = this.#rates.take(deviceName(device), this.#options.environment.clock.now());
    if (wait > 0) return tooMany(wait);
    const request = decode(payload);
    const release = this.#calls.acquire(deviceName(device));
    if (release === null) return tooMany(BUSY_SECONDS);
    try {
      return { status: Status.CREATED, contentFormat: CONTENT_FORMAT_CBOR, payload: await call(device, request) };
    } catch (error) {
      if (this.#stopping.signal.aborted) return textReply(Status.SERVICE_UNAVAILABLE, 'The base station stops');
      throw error;
    } finally {
      release();
    }
  }
}
