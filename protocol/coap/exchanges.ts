/**
 * CoAP requests and answers, both ways, over one reliable channel that carries whole messages in any order. Sans-IO.
 *
 * After `request`, `respond`, `release`, `cancel`, `receive`, `resume`, `handleTimeout` and `close`: `transmit` until null, `nextEvent` until null, then
 * `nextTimeout`. Time is `now`, monotonic milliseconds.
 *
 * A message that is no CoAP message at all is an event, `malformed`: whoever owns the channel ends it with BAD_MESSAGE (PROTOCOL.md §7). Its token, when it
 * has one, may be that of a request of ours, which fails first.
 *
 * What is not here: routing (`router.ts`), the channel, and who may ask what.
 */
import { LocalError, RemoteError, type SvcError } from '../errors/index.ts';
import type { BodyRoom } from './body.ts';
import { codeKind, Status } from './codes.ts';
import { type CoapMessage, decodeMessage, leadingToken } from './message.ts';
import { Outbox } from './outbox.ts';
import type { CoapRequest } from './request.ts';
import { Requester, type RequesterEvent } from './requester.ts';
import { Responder, type ResponderEvent } from './responder.ts';
import { type CoapReply, textReply } from './response.ts';

/** Randomness and limits of one channel. */
export interface ExchangesOptions {
  /** That many random bytes; a token is 8 of them. */
  readonly randomToken: (length: number) => Uint8Array;
  /** Open requests of the other end, observations included; above it 5.03. Default 64. */
  readonly maxRequests?: number;
  /** Bytes of one body that travels in blocks, either way. Default 1 MiB, at most 16 MiB. */
  readonly maxBody?: number;
  /** Bodies of the other end's requests and of our replies that travel in blocks at the same time. Default 8. */
  readonly maxTransfers?: number;
  /** Memory of those bodies when several channels share it; default each its own, as much as the limits above allow. */
  readonly bodyRoom?: BodyRoom;
  /** Milliseconds after its last block until such a body is given up. Default 30,000. */
  readonly transferTimeout?: number;
  /** Number of the first request of the other end, for one who takes over from another. Default 1. */
  readonly firstExchange?: number;
  /** Critical options taken in requests besides those of the reference, e.g. Uri-Query (15). Default none. */
  readonly criticalOptions?: readonly number[];
}

/** What became of a request of ours, or what the other end asks, or that it broke the format. */
export type ExchangesEvent = RequesterEvent | ResponderEvent | { readonly kind: 'malformed'; readonly error: RemoteError };

/** Whole-exchange time of the reference. */
export const DEFAULT_TIMEOUT = 120_000;

const MAX_BODY = 1 << 24;
/** Class of the codes of signals (RFC 8323 §5): there are none here, and what others send is ignored. */
const SIGNALS = 7;
const EMPTY_LENGTH = 2;

/** All requests on one channel, ours and the other end's. */
export class Exchanges {
  /** Messages that do not decode, or whose code is none. */
  #malformed = 0;
  /** Empty messages and signals. */
  #ignored = 0;
  readonly #outbox = new Outbox();
  readonly #requester: Requester;
  readonly #responder: Responder;
  readonly #events: ExchangesEvent[] = [];
  #closed: SvcError | undefined;

  constructor(options: ExchangesOptions) {
    const emit = (event: ExchangesEvent): void => {
      this.#events.push(event);
    };
    const {
      maxRequests = 64,
      maxBody = 1 << 20,
      maxTransfers = 8,
      transferTimeout = 30_000,
      criticalOptions = [],
      firstExchange = 1,
    } = options;
    // Block numbers have 20 bits and the smallest block 16 bytes.
    if (maxBody > MAX_BODY) throw new LocalError('INVALID_ARGUMENT', `maxBody is at most ${MAX_BODY}`);
    const outbox = this.#outbox;
    this.#requester = new Requester({ outbox, randomToken: options.randomToken, maxBody, emit });
    this.#responder = new Responder({
      outbox,
      maxRequests,
      maxBody,
      maxTransfers,
      transferTimeout,
      criticalOptions,
      firstExchange,
      room: options.bodyRoom,
      emit,
    });
  }

  /**
   * Sends a request; its answer comes as an event with the returned id.
   * @param timeout milliseconds for the whole answer, of an observation for its first answer; Infinity for none
   * @throws LocalError INVALID_ARGUMENT, or the error given to `close`
   */
  request(request: CoapRequest, now: number, { timeout = DEFAULT_TIMEOUT }: { readonly timeout?: number } = {}): number {
    if (this.#closed !== undefined) throw this.#closed;
    return this.#requester.request(request, now, timeout);
  }

  /** Gives a request of ours up without an event, and ends an observation at the other end. */
  cancel(id: number): void {
    this.#requester.cancel(id);
  }

  /** A message from the channel. Its bytes are kept where an event refers to them. Never throws. */
  receive(bytes: Uint8Array, now: number): void {
    const message = this.#closed === undefined ? this.#decode(bytes) : undefined;
    if (message === undefined) return;
    const kind = codeKind(message.code);
    if (kind === 'request') this.#responder.receive(message, now);
    else if (kind === 'response') this.#requester.receive(message, now);
    else this.#ignored++;
  }

  /** The next message for the channel, at most R bytes; null when none waits. */
  transmit(): Uint8Array | null {
    return this.#outbox.take();
  }

  /** The next event, null when none waits. */
  nextEvent(): ExchangesEvent | null {
    return this.#events.shift() ?? null;
  }

  /**
   * Answers a request of the other end; repeatedly, if the request has `observe` and the reply too.
   * @returns false when nobody waits for it any more
   * @throws LocalError INVALID_ARGUMENT for a reply that cannot be sent; the request stays open
   */
  respond(exchange: number, reply: CoapReply, now: number): boolean {
    return this.#responder.respond(exchange, reply, now);
  }

  /** Gives a request of the other end up: it is answered 5.00 "Request unhandled". */
  release(exchange: number, now: number): void {
    this.#responder.respond(exchange, textReply(Status.INTERNAL_SERVER_ERROR, 'Request unhandled'), now);
  }

  /** Changes the limit of open requests of the other end. */
  limitRequests(maxRequests: number): void {
    this.#responder.limit(maxRequests);
  }

  /** Nothing is under way and nothing is remembered: another may take over, with `nextExchange` as its first. */
  get isIdle(): boolean {
    return this.#events.length === 0 && this.#outbox.isEmpty && this.#requester.isIdle && this.#responder.isIdle;
  }

  /** Number of the next request of the other end. */
  get nextExchange(): number {
    return this.#responder.nextExchange;
  }

  /** When to call `handleTimeout`, ms; Infinity for never. */
  nextTimeout(): number {
    return Math.min(this.#requester.nextTimeout(), this.#responder.nextTimeout());
  }

  /** Gives up what has taken too long: our requests, with an event, and bodies in blocks. */
  handleTimeout(now: number): void {
    this.#requester.handleTimeout(now);
    this.#responder.handleTimeout(now);
  }

  /** The channel carries nothing for a while: bodies in blocks that the other end sends or fetches wait. Our requests keep their time. */
  pause(now: number): void {
    this.#responder.pause(now);
  }

  /** The channel carries messages again. */
  resume(now: number): void {
    this.#responder.resume(now);
  }

  /** The channel is gone: our requests fail with `error`, those of the other end are cancelled, waiting messages are dropped. */
  close(error: SvcError): void {
    this.#closed ??= error;
    this.#outbox.clear();
    this.#requester.close(error);
    this.#responder.close();
  }

  /** Counters since the beginning, and what is open now. */
  stats(): ExchangesStats {
    return {
      malformed: this.#malformed,
      ignored: this.#ignored,
      unmatched: this.#requester.unmatched,
      duplicates: this.#responder.duplicates,
      dropped: this.#outbox.dropped,
      requests: this.#requester.open,
      incoming: this.#responder.open,
    };
  }

  #decode(bytes: Uint8Array): CoapMessage | undefined {
    try {
      const message = decodeMessage(bytes);
      assertCode(message, bytes.length);
      return message;
    } catch (error) {
      if (!(error instanceof RemoteError)) throw error;
      this.#malformed++;
      const token = leadingToken(bytes);
      if (token !== undefined && codeKind(bytes[1]!) !== 'request') this.#requester.malformed(token, error);
      this.#events.push({ kind: 'malformed', error });
      return undefined;
    }
  }
}

/** A code of a reserved class, or an Empty message that is not empty, is a format error (RFC 7252 §3, §4.1). @throws RemoteError PARSE */
function assertCode({ code }: CoapMessage, length: number): void {
  const malformed = code === 0 ? length > EMPTY_LENGTH : codeKind(code) === 'other' && code >> 5 !== SIGNALS;
  if (malformed) throw new RemoteError('PARSE', 'CoAP: a message is malformed in its code');
}

/** Counters since the beginning, and what is open now. */
export interface ExchangesStats {
  /** Messages that do not decode, or whose code is none. */
  readonly malformed: number;
  /** Empty messages and signals. */
  readonly ignored: number;
  /** Responses and blocks nobody waits for. */
  readonly unmatched: number;
  /** Requests with the token of an open one. */
  readonly duplicates: number;
  /** Automatic answers for which no room was left. */
  readonly dropped: number;
  /** Our open requests. */
  readonly requests: number;
  /** Open requests of the other end. */
  readonly incoming: number;
}
