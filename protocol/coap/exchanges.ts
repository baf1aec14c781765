/**
 * CoAP requests and responses in both directions over one reliable channel that carries whole messages in any order.
 * Sans-IO.
 *
 * After `request`, `responder.respond`, `release`, `requester.cancel`, `receive`, `transfers.resume`, `handleTimeout`
 * and `close`: `transmit` until null, `nextEvent` until null, then `nextTimeout`. Time is `now`, monotonic
 * milliseconds.
 *
 * A message that is not a CoAP message raises the event `malformed`: the owner of the channel ends it with BAD_MESSAGE
 * (PROTOCOL.md §7). If it has the token of one of our requests, that request fails first.
 *
 * Not here: routing (`router.ts`), the channel, and authorization.
 */
import { LocalError, RemoteError, type SvcError } from '../errors/index.ts';
import { codeKind, Status } from './codes.ts';
import { type CoapMessage, decodeMessage, leadingToken } from './message.ts';
import { Outbox } from './outbox.ts';
import type { CoapRequest } from './request.ts';
import { Requester, type RequesterEvent, type RequesterOptions } from './requester.ts';
import { Responder, type ResponderEvent, type ResponderOptions } from './responder.ts';
import { textReply } from './response.ts';
import { Transfers, type TransfersOptions } from './transfers.ts';

/** Randomness and limits of one channel. */
export interface ExchangesOptions
  extends Pick<RequesterOptions, 'randomToken'>,
    Partial<Pick<ResponderOptions, 'maxRequests' | 'criticalOptions' | 'firstExchange'>>,
    Partial<TransfersOptions> {}

/** The outcome of one of our requests, a request of the peer, or a violation of the format. */
export type ExchangesEvent = RequesterEvent | ResponderEvent | { readonly kind: 'malformed'; readonly error: RemoteError };

/** Time for a whole exchange, ms (PROTOCOL.md §9). */
export const DEFAULT_TIMEOUT = 120_000;

const MAX_BODY = 1 << 24;
/** Our defaults: `maxBody`, `maxTransfers` and `transferTimeout`. */
export const DEFAULT_BODY = 1 << 20;
export const DEFAULT_TRANSFERS = 8;
export const TRANSFER_TIMEOUT = 30_000;
/** Class of the signal codes (RFC 8323 §5): none are sent, and received ones are ignored. */
const SIGNALS = 7;
const EMPTY_LENGTH = 2;

/** All requests on one channel, our own and the peer's. */
export class Exchanges {
  readonly requester: Requester;
  readonly responder: Responder;
  readonly transfers: Transfers;
  readonly #outbox = new Outbox();
  readonly #events: ExchangesEvent[] = [];
  #closed: SvcError | undefined;

  constructor(options: ExchangesOptions) {
    const emit = (event: ExchangesEvent): void => {
      this.#events.push(event);
    };
    const {
      maxRequests = 64,
      maxBody = DEFAULT_BODY,
      maxTransfers = DEFAULT_TRANSFERS,
      transferTimeout = TRANSFER_TIMEOUT,
      criticalOptions = [],
      firstExchange = 1,
    } = options;
    // Block numbers have 20 bits and the smallest block 16 bytes.
    if (maxBody > MAX_BODY) throw new LocalError('INVALID_ARGUMENT', `maxBody is at most ${MAX_BODY}`);
    const outbox = this.#outbox;
    this.requester = new Requester({ outbox, randomToken: options.randomToken, maxBody, emit });
    this.transfers = new Transfers({ maxBody, maxTransfers, transferTimeout, bodyRoom: options.bodyRoom });
    this.responder = new Responder({ outbox, transfers: this.transfers, maxRequests, criticalOptions, firstExchange, emit });
  }

  /**
   * Sends a request; its response comes as an event with the returned id.
   * @param timeout milliseconds for the whole response, for an observation until its first response; Infinity for none
   * @throws LocalError INVALID_ARGUMENT, or the error given to `close`
   */
  request(request: CoapRequest, now: number, { timeout = DEFAULT_TIMEOUT }: { readonly timeout?: number } = {}): number {
    if (this.#closed !== undefined) throw this.#closed;
    return this.requester.request(request, now, timeout);
  }

  /** Processes a message from the channel. Keeps its bytes where an event refers to them. Never throws. */
  receive(bytes: Uint8Array, now: number): void {
    const message = this.#closed === undefined ? this.#decode(bytes) : undefined;
    if (message === undefined) return;
    const kind = codeKind(message.code);
    if (kind === 'request') this.responder.receive(message, now);
    else if (kind === 'response') this.requester.receive(message, now);
  }

  /** Returns the next message for the channel, at most R bytes; null when none waits. */
  transmit(): Uint8Array | null {
    return this.#outbox.take();
  }

  /** Returns the next event, null when none waits. */
  nextEvent(): ExchangesEvent | null {
    return this.#events.shift() ?? null;
  }

  /** Abandons a request of the peer: it is answered 5.00 "Request unhandled". */
  release(exchange: number, now: number): void {
    this.responder.respond(exchange, textReply(Status.INTERNAL_SERVER_ERROR, 'Request unhandled'), now);
  }

  /**
   * True when nothing is in progress and nothing is remembered: another instance may take over, with
   * `responder.nextExchange` as its first.
   */
  get isIdle(): boolean {
    const isQuiet = this.#events.length === 0 && this.#outbox.isEmpty && this.transfers.isEmpty;
    return isQuiet && this.requester.isIdle && this.responder.open === 0;
  }

  /** Returns when to call `handleTimeout`, ms; Infinity for never. */
  nextTimeout(): number {
    return Math.min(this.requester.nextTimeout(), this.transfers.nextTimeout());
  }

  /** Abandons what has taken too long: our requests, with an event, and bodies in blocks. */
  handleTimeout(now: number): void {
    this.requester.handleTimeout(now);
    this.transfers.handleTimeout(now);
  }

  /**
   * Call when the channel is gone: our requests fail with `error`, the peer's are cancelled, waiting messages are
   * dropped.
   */
  close(error: SvcError): void {
    this.#closed ??= error;
    this.#outbox.clear();
    this.requester.close(error);
    this.responder.close();
    this.transfers.close();
  }

  #decode(bytes: Uint8Array): CoapMessage | undefined {
    try {
      const message = decodeMessage(bytes);
      assertCode(message, bytes.length);
      return message;
    } catch (error) {
      if (!(error instanceof RemoteError)) throw error;
      const token = leadingToken(bytes);
      if (token !== undefined && codeKind(bytes[1]!) !== 'request') this.requester.malformed(token, error);
      this.#events.push({ kind: 'malformed', error });
      return undefined;
    }
  }
}

/**
 * Checks that the code is not of a reserved class and that an Empty message is empty (RFC 7252 §3, §4.1).
 * @throws RemoteError PARSE
 */
function assertCode({ code }: CoapMessage, length: number): void {
  const malformed = code === 0 ? length > EMPTY_LENGTH : codeKind(code) === 'other' && code >> 5 !== SIGNALS;
  if (malformed) throw new RemoteError('PARSE', 'CoAP: a message is malformed in its code');
}
