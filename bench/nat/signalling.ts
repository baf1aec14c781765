/**
 * The two ends of a relayed connection as the rendezvous sees them, without a core. Requests, replies and notifications
 * arrive unchanged and in order, after a delay. A challenge over the plain socket tests a path.
 */

import type { Clock, Log } from '../../platform/environment.ts';
import type { CoapReply, CoapResponse, RoutedRequest } from '../../protocol/coap/index.ts';
import { LocalError, RemoteError } from '../../protocol/errors/index.ts';
import type { Path } from '../../protocol/path.ts';
import { Emitter } from '../../runtime/emitter.ts';
import type { MigratingSession, RendezvousResponder, ServingSession } from '../../runtime/rendezvous/index.ts';
import type { Observation, SessionEvents, SessionRequest } from '../../runtime/session/index.ts';
import type { PlainHost } from './plain-host.ts';

/** ms after which a challenge is repeated; after the last, the path has failed. */
const CHALLENGES: readonly number[] = [300, 600, 1_200];
/** The relay path of both ends. */
const ROUTE: Path = { kind: 'route', key: 'route', address: '203.0.113.1', port: 1, socket: 0, local: false };
const NOTHING = new Uint8Array(0);
const BAD_REQUEST = 400;

export interface SignallingOptions {
  readonly client: PlainHost;
  readonly clock: Clock;
  readonly log: Log;
  /** ms from end to end through the relay. */
  readonly delay: number;
}

interface Waiting {
  respond(reply: CoapReply): void;
}

/** The device's end. */
export class DeviceEnd implements ServingSession {
  readonly peer = { fingerprint: 'client' };
  readonly isOpen = true;
  readonly paths: ServingSession['paths'];
  readonly #events: Emitter<SessionEvents>;
  readonly #send: (exchange: number, reply: CoapReply) => void;
  readonly observed = new Set<number>();

  constructor(log: Log, send: (exchange: number, reply: CoapReply) => void, rtt: number | null = null) {
    this.#events = new Emitter(log);
    this.paths = { type: 'RELAY', all: [], rtt };
    this.#send = send;
  }

  on<K extends keyof SessionEvents>(event: K, listener: (value: SessionEvents[K]) => void): () => void {
    return this.#events.on(event, listener);
  }

  notify(exchange: number, reply: CoapReply): boolean {
    if (!this.observed.has(exchange)) return false;
    this.#send(exchange, reply);
    return true;
  }

  /** The connection has ended. */
  end(): void {
    for (const exchange of [...this.observed]) this.cancel(exchange);
    this.#events.emit('closed', null);
  }

  cancel(exchange: number): void {
    if (this.observed.delete(exchange)) this.#events.emit('cancelled', exchange);
  }
}

/** The client's end of the relayed connection. */
export class Signalling implements MigratingSession {
  readonly peer = { fingerprint: 'device', verified: 'pinned' as const };
  readonly isOpen = true;
  readonly restReason = null;
  readonly rtt: number;
  /** Bytes that the rendezvous has sent over the relay, in both directions. */
  bytes = 0;
  readonly device: DeviceEnd;
  active: Path = ROUTE;
  readonly #options: SignallingOptions;
  readonly #events: Emitter<SessionEvents>;
  readonly #waiting = new Map<number, Waiting>();
  #known: readonly Path[] = [ROUTE];
  #responder: RendezvousResponder<ServingSession> | null = null;
  #exchanges = 0;
  #trying: Path | null = null;

  constructor(options: SignallingOptions) {
    const { client, clock, log, delay } = options;
    this.#options = options;
    this.#events = new Emitter(log);
    this.rtt = 2 * delay;
    const reply = (exchange: number, answer: CoapReply): void => this.#waiting.get(exchange)?.respond(this.#count(answer));
    this.device = new DeviceEnd(log, (exchange, answer) => clock.schedule(delay, () => reply(exchange, answer)), this.rtt);
    client.onResponse = (path) => this.#answered(path);
  }

  /** The session is its own paths. */
  get paths(): this {
    return this;
  }

  get type(): 'RELAY' | 'DIRECT' {
    return this.active.kind === 'route' ? 'RELAY' : 'DIRECT';
  }

  get all(): readonly Path[] {
    return this.#known;
  }

  /** Sets the responder of the device. */
  serve(responder: RendezvousResponder<ServingSession>): void {
    this.#responder = responder;
  }

  on<K extends keyof SessionEvents>(event: K, listener: (value: SessionEvents[K]) => void): () => void {
    return this.#events.on(event, listener);
  }

  request({ signal, ...request }: SessionRequest): Promise<CoapResponse> {
    return new Promise((resolve, reject) => {
      const exchange = this.#ask(request, false, { respond: (reply) => resolve(responseOf(reply)) });
      const stop = (): void => {
        this.#waiting.delete(exchange);
        reject(new LocalError('STOPPED', 'the request was stopped'));
      };
      signal?.addEventListener('abort', stop, { once: true });
    });
  }

  observe(request: SessionRequest, onResponse: (response: CoapResponse) => void, onEnd?: (error: null) => void): Observation {
    const respond = (reply: CoapReply): void => {
      onResponse(responseOf(reply));
      if (reply.observe !== true) onEnd?.(null);
    };
    const exchange = this.#ask(request, true, { respond });
    const { clock, delay } = this.#options;
    return {
      cancel: () => {
        if (this.#waiting.delete(exchange)) clock.schedule(delay, () => this.device.cancel(exchange));
      },
    };
  }

  migrate(path: Path): boolean {
    this.#known = [...new Set([...this.#known, path])];
    this.#trying = path;
    this.#challenge(path, 0);
    return true;
  }

  remove(path: Path): void {
    if (path !== this.active) this.#known = this.#known.filter((each) => each !== path);
  }

  keep(): boolean {
    return true;
  }

  supplyIds(): void {}

  stats(): null {
    return null;
  }

  /** Removes the direct path and returns the connection to the relay. */
  loseDirect(): void {
    this.active = ROUTE;
    this.#known = [ROUTE];
    this.#events.emit('path', { path: this.active, reason: 'failed-over' });
  }

  #challenge(path: Path, tries: number): void {
    if (this.#trying !== path || !this.#known.includes(path)) return;
    const wait = CHALLENGES[tries];
    if (wait === undefined) {
      this.#trying = null;
      this.#events.emit('probed', { path, answered: false, forgotten: false });
      return;
    }
    this.#options.client.challenge(path);
    this.#options.clock.schedule(wait, () => this.#challenge(path, tries + 1));
  }

  #answered(path: Path): void {
    if (path !== this.#trying) return;
    this.#trying = null;
    this.active = path;
    this.#events.emit('probed', { path, answered: true, forgotten: false });
    this.#events.emit('path', { path, reason: 'migrated' });
  }

  #ask({ method, path, payload = NOTHING }: SessionRequest, observe: boolean, waiting: Waiting): number {
    const { clock, delay } = this.#options;
    const exchange = ++this.#exchanges;
    this.bytes += payload.length;
    this.#waiting.set(exchange, waiting);
    if (observe) this.device.observed.add(exchange);
    const request = { exchange, method, path, payload, observe, segments: [], query: [], parameters: {}, context: this.device };
    clock.schedule(delay, () => {
      const reply = this.#serve(request);
      if (reply.observe !== true) this.device.observed.delete(exchange);
      clock.schedule(delay, () => this.#waiting.get(exchange)?.respond(this.#count(reply)));
    });
    return exchange;
  }

  #serve(request: RoutedRequest<ServingSession>): CoapReply {
    const responder = this.#responder;
    if (responder === null) return { status: 404 };
    try {
      return request.method === 'POST' ? responder.begin(request) : responder.update(request);
    } catch (error) {
      if (!(error instanceof RemoteError)) throw error;
      return { status: BAD_REQUEST };
    }
  }

  #count(reply: CoapReply): CoapReply {
    this.bytes += reply.payload?.length ?? 0;
    return reply;
  }
}

function responseOf({ status, payload = NOTHING, maxAge }: CoapReply): CoapResponse {
  return { status, payload, ...(maxAge !== undefined && { maxAge }) };
}
