/**
 * The CoAP requests of one session, both ways: promises over the sans-IO `Exchanges`, its messages over the connection,
 * its timeouts over the clock.
 *
 * Call `service` after anything that may have given Exchanges work. It passes events to their promises and handlers,
 * messages to the connection while it has room (the rest waits for "messages-writable"), and the earliest timeout to
 * the clock.
 */

import type { Clock, Log } from '../../platform/environment.ts';
import {
  type BodyRoom,
  type CoapReply,
  type CoapRequest,
  type CoapResponse,
  Exchanges,
  type ExchangesEvent,
  type IncomingRequest,
  OptionNumber,
} from '../../protocol/coap/index.ts';
import { CloseCode, LocalError, RemoteError, type SvcError } from '../../protocol/errors/index.ts';
import { Alarm } from '../alarm.ts';
import { Deferred } from '../deferred.ts';
import { guarded } from '../emitter.ts';
import type { SessionOwner } from './owner.ts';
import type { RandomPool } from './random-pool.ts';

/** A request, with its timeout and the signal that stops it. */
export interface SessionRequest extends CoapRequest {
  /** ms until TIMEOUT, default 120,000. */
  timeout?: number;
  /** Ends the call with STOPPED when it fires. */
  signal?: AbortSignal;
}

/** An active observation. */
export interface Observation {
  /** Ends the observation; nothing is delivered afterwards. Harmless to call twice. */
  cancel(): void;
}

/** The part of a session that its requests use. */
export interface RequestsOwner extends SessionOwner {
  /** Answers a request of the peer; null: no longer awaited. */
  serve(request: IncomingRequest): Promise<CoapReply | null>;
  /** The peer no longer observes. */
  cancelled(exchange: number): void;
  /** Ends the session, and sends `code` to the peer. */
  end(error: SvcError, code: number, reason: string): void;
}

/** State shared by the requests of all sessions of a host. */
export interface SharedByRequests {
  readonly clock: Clock;
  readonly random: RandomPool;
  readonly log: Log;
  /** Concurrent requests of one peer. */
  readonly maxRequests: number;
  /** Memory for bodies that travel in blocks. */
  readonly bodyRoom: BodyRoom;
}

/** Receives the outcome of one of our requests. */
interface Outcome {
  response(response: CoapResponse, final: boolean): void;
  fail(error: SvcError): void;
}

/** The router refuses queries where they have no effect. */
const QUERIES: readonly number[] = [OptionNumber.URI_QUERY];

/** Requests of one session. */
export class SessionRequests {
  readonly #owner: RequestsOwner;
  readonly #shared: SharedByRequests;
  readonly #exchanges: Exchanges;
  readonly #waiting = new Map<number, Outcome>();
  readonly #alarm: Alarm;
  /** A message from Exchanges that the connection had no room for. */
  #held: Uint8Array | null = null;
  #isResting = false;

  /** @param firstExchange `nextExchange` of the previous instance */
  constructor(owner: RequestsOwner, shared: SharedByRequests, firstExchange: number) {
    const { random, maxRequests, bodyRoom } = shared;
    this.#owner = owner;
    this.#shared = shared;
    const randomToken = (length: number): Uint8Array => random.take(length);
    this.#exchanges = new Exchanges({ randomToken, maxRequests, bodyRoom, firstExchange, criticalOptions: QUERIES });
    this.#alarm = new Alarm(shared.clock, () => {
      this.#exchanges.handleTimeout(shared.clock.now());
      this.service();
    });
  }

  /**
   * Nothing is under way and nothing is remembered: the next request may use a new instance, which continues from
   * `nextExchange`.
   */
  get isIdle(): boolean {
    return this.#held === null && this.#waiting.size === 0 && this.#exchanges.isIdle;
  }

  get nextExchange(): number {
    return this.#exchanges.responder.nextExchange;
  }

  /** Requests open now, ours and the peer's. */
  get count(): number {
    return this.#exchanges.requester.open + this.#exchanges.responder.open;
  }

  async request(request: SessionRequest): Promise<CoapResponse> {
    const { signal } = request;
    if (signal?.aborted === true) throw stopped();
    const result = new Deferred<CoapResponse>();
    const id = this.#send(request, { response: result.resolve, fail: result.reject });
    const abort = (): void => {
      this.#drop(id);
      result.reject(stopped());
    };
    signal?.addEventListener('abort', abort, { once: true });
    try {
      return await result.promise;
    } finally {
      signal?.removeEventListener('abort', abort);
    }
  }

  observe(request: SessionRequest, onResponse: (response: CoapResponse) => void, onEnd?: (error: SvcError | null) => void): Observation {
    const { signal } = request;
    if (signal?.aborted === true) throw stopped();
    const end = (error: SvcError | null): void => {
      signal?.removeEventListener('abort', cancel);
      if (onEnd !== undefined) guarded(this.#shared.log, 'observation end', () => onEnd(error));
    };
    const respond = (response: CoapResponse, final: boolean): void => {
      guarded(this.#shared.log, 'observation', () => onResponse(response));
      if (final) end(null);
    };
    const id = this.#send({ ...request, observe: 0 }, { response: respond, fail: end });
    const cancel = (): void => {
      signal?.removeEventListener('abort', cancel);
      this.#drop(id);
    };
    signal?.addEventListener('abort', cancel, { once: true });
    return { cancel };
  }

  /**
   * Answers a request of the peer, or sends its observer another notification.
   * @returns false when the answer is no longer awaited
   */
  respond(exchange: number, reply: CoapReply): boolean {
    const { clock, log } = this.#shared;
    try {
      return this.#exchanges.responder.respond(exchange, reply, clock.now());
    } catch (error) {
      log.error('a handler returned an answer that cannot be sent', { error: String(error) });
      this.#exchanges.release(exchange, clock.now());
      return false;
    } finally {
      this.service();
    }
  }

  /** Receives a message from the connection; call `service` afterwards. */
  receive(message: Uint8Array): void {
    this.#exchanges.receive(message, this.#shared.clock.now());
  }

  /** Call after anything that may have changed the state here; cheap when nothing did. */
  service(): void {
    this.#noteRest();
    for (let event = this.#exchanges.nextEvent(); event !== null; event = this.#exchanges.nextEvent()) this.#handle(event);
    this.#sendMessages();
    this.#alarm.set(this.#exchanges.nextTimeout());
  }

  /** Stops the timer of an idle instance that is no longer used. */
  stop(): void {
    this.#alarm.clear();
  }

  /** The session ended. */
  fail(error: SvcError): void {
    this.stop();
    this.#held = null;
    this.#exchanges.close(error);
    for (let event = this.#exchanges.nextEvent(); event !== null; event = this.#exchanges.nextEvent()) this.#handle(event);
  }

  #send(request: SessionRequest, outcome: Outcome): number {
    const { timeout, signal: _, ...message } = request;
    const id = this.#exchanges.request(message, this.#shared.clock.now(), timeout === undefined ? {} : { timeout });
    this.#waiting.set(id, outcome);
    this.service();
    return id;
  }

  #drop(id: number): void {
    if (!this.#waiting.delete(id)) return;
    this.#exchanges.requester.cancel(id);
    this.service();
  }

  #handle(event: ExchangesEvent): void {
    if (event.kind === 'request') void this.#serve(event);
    else if (event.kind === 'response') this.#responded(event);
    else if (event.kind === 'timeout') this.#failed(event.id, new LocalError('TIMEOUT', 'no answer within the time allowed'));
    else if (event.kind === 'failed') this.#failed(event.id, event.error);
    else if (event.kind === 'malformed') this.#malformed(event.error);
    else this.#owner.cancelled(event.exchange);
  }

  #responded({ id, response, final }: Extract<ExchangesEvent, { kind: 'response' }>): void {
    const waiting = this.#waiting.get(id);
    if (final) this.#waiting.delete(id);
    waiting?.response(response, final);
  }

  #failed(id: number, error: SvcError): void {
    const waiting = this.#waiting.get(id);
    this.#waiting.delete(id);
    waiting?.fail(error);
  }

  /** The peer broke the format: the session ends, so that callers need not wait for a timeout. */
  #malformed(cause: RemoteError): void {
    const error = new RemoteError('CLOSED', `the peer sent a malformed message: ${cause.message}`, { cause });
    this.#owner.end(error, CloseCode.BAD_MESSAGE, cause.message);
  }

  async #serve({ exchange, request }: Extract<ExchangesEvent, { kind: 'request' }>): Promise<void> {
    const reply = await this.#owner.serve(request);
    if (reply !== null) this.respond(exchange, reply);
  }

  /** While the connection rests, the timers of incoming block-wise transfers are paused. */
  #noteRest(): void {
    const isResting = this.#owner.connection.restReason !== null;
    if (isResting === this.#isResting) return;
    this.#isResting = isResting;
    const now = this.#shared.clock.now();
    if (isResting) this.#exchanges.transfers.pause(now);
    else this.#exchanges.transfers.resume(now);
  }

  #sendMessages(): void {
    const { connection } = this.#owner;
    for (;;) {
      this.#held ??= this.#exchanges.transmit();
      const message = this.#held;
      if (message === null || this.#owner.whileOpen(() => connection.messages.send(message), -1) < 0) return;
      this.#held = null;
    }
  }
}

function stopped(): LocalError {
  return new LocalError('STOPPED', 'the request was stopped');
}
