/**
 * Requests of the peer on one channel: from message to `IncomingRequest`, and from the application's reply to messages.
 * Sans-IO; `exchanges.ts` drives it.
 *
 * 1. A message is refused immediately for a critical option that is not accepted (4.00), repeated or of a wrong length
 *    (4.02), for a bad path (4.00) or method (4.04).
 * 2. A payload in blocks (Block1) is reassembled by token: 2.31 after each, 4.08 on a gap or change of target, 4.00 on
 *    a wrong length, 4.13 with Size1 above the limit, 5.03 when too many bodies are in progress here or on the channels
 *    that share the room.
 * 3. A whole request is delivered, or answered 5.03 when too many are open. It is open until the channel takes its last
 *    answer.
 * 4. A reply larger than one message is kept and sent in blocks (Block2, ETag, Size2); the peer requests each with the
 *    request's token and the ETag. `transfers.ts` holds kept and incoming bodies.
 * 5. A reply with `observe: true` keeps the request open for more replies; a request with Observe 1 and the same token
 *    ends it (a GET is then answered as any other, a POST 2.04).
 *
 * Every answer here is small and bounded in number; nothing that arrives makes it throw.
 */
import { BERT, type Block, blockValue } from './block.ts';
import { codeOfStatus, Status } from './codes.ts';
import { type CoapMessage, encodeMessage, MAX_MESSAGE, messageSize, tokenKey } from './message.ts';
import { type CoapOption, OptionNumber, uintOptionOf } from './options.ts';
import type { Outbox } from './outbox.ts';
import { acceptedInRequests, type IncomingRequest, type RequestHead, readRequest } from './request.ts';
import { type CoapReply, replyCode, replyOptions, textReply } from './response.ts';
import type { TransferRefusal, Transfers } from './transfers.ts';

/** An event caused by the peer. */
export type ResponderEvent =
  | { readonly kind: 'request'; readonly exchange: number; readonly request: IncomingRequest }
  /** The peer no longer observes; no reply is wanted. */
  | { readonly kind: 'cancelled'; readonly exchange: number };

export interface ResponderOptions {
  readonly outbox: Outbox;
  /** Open requests of the peer, observations included; beyond it 5.03. Default 64. */
  readonly maxRequests: number;
  readonly transfers: Transfers;
  /** Critical options accepted besides those of PROTOCOL.md §7, e.g. Uri-Query (15). Default none. */
  readonly criticalOptions: readonly number[];
  /** Number of the first request, for an instance that takes over from another. Default 1. */
  readonly firstExchange: number;
  readonly emit: (event: ResponderEvent) => void;
}

interface OpenRequest {
  readonly id: number;
  readonly key: string;
  readonly token: Uint8Array;
  /** Block1 of the last block of its payload: echoed in the answer. */
  readonly block1: Block | undefined;
  /** Size exponent that the peer requests for blocks of the answer. */
  readonly exponent: number;
  readonly observe: boolean;
  sequence: number;
  answered: boolean;
}

const OUT_OF_RESOURCES = textReply(Status.SERVICE_UNAVAILABLE, 'Out of resources');
const REFUSALS: Readonly<Record<Exclude<TransferRefusal, 'size'>, CoapReply>> = {
  gap: textReply(Status.REQUEST_ENTITY_INCOMPLETE, 'A block is missing'),
  length: textReply(Status.BAD_REQUEST, 'A block has a wrong length'),
  room: OUT_OF_RESOURCES,
};

/** The peer's requests on one channel. */
export class Responder {
  /** Requests with the token of an open one. */
  duplicates = 0;
  readonly #options: ResponderOptions;
  readonly #accepted: ReadonlySet<number>;
  readonly #byId = new Map<number, OpenRequest>();
  readonly #byToken = new Map<string, OpenRequest>();
  #nextId: number;

  constructor(options: ResponderOptions) {
    this.#options = options;
    this.#nextId = options.firstExchange;
    this.#accepted = new Set([...acceptedInRequests, ...options.criticalOptions]);
  }

  get open(): number {
    return this.#byId.size;
  }

  /** Number of the peer's next request. */
  get nextExchange(): number {
    return this.#nextId;
  }

  /** Processes a message of the request class. */
  receive(message: CoapMessage, now: number): void {
    const head = readRequest(message, this.#accepted);
    if ('refused' in head) this.#answer(message.token, textReply(head.refused, head.text));
    else if (head.block2 !== undefined && head.block2.number > 0) this.#sendKept(message.token, head.block2, head.etag, now);
    else if (head.block1 !== undefined) this.#uploadBlock(message, head, head.block1, now);
    else this.#handUp(message.token, head, message.payload);
  }

  /**
   * Answers a request of the peer. Further replies are possible after one with `observe: true` to a request that
   * requested observation.
   * @returns false when the request is no longer open
   * @throws LocalError INVALID_ARGUMENT for a reply that cannot be sent; the request stays open
   */
  respond(id: number, reply: CoapReply, now: number): boolean {
    const request = this.#byId.get(id);
    if (request === undefined || request.answered) return false;
    const observing = request.observe && reply.observe === true && reply.status < 300;
    const options = replyOptions(reply);
    if (observing) options.push(uintOptionOf(OptionNumber.OBSERVE, request.sequence));
    if (request.block1 !== undefined) options.push(uintOptionOf(OptionNumber.BLOCK1, blockValue(request.block1)));
    const message = { code: replyCode(reply), token: request.token, options, payload: reply.payload ?? new Uint8Array(0) };
    const bytes = this.#fits(request, message) ? encodeMessage(message) : this.#options.transfers.keep(message, request.exponent, now);
    // A body that cannot be kept is replaced by an error, which ends an observation (RFC 7641 §4.2).
    const isRefused = bytes === 'size' || bytes === 'room';
    const stands = observing && !isRefused;
    const sent = isRefused ? this.#instead(request, bytes) : bytes;
    request.sequence = (request.sequence + 1) & 0xffffff;
    request.answered = !stands;
    if (stands) this.#options.outbox.push(sent, observeKey(request));
    else this.#options.outbox.push(sent, undefined, () => this.#forget(request));
    return true;
  }

  /** Ends everything: call when the channel is gone. */
  close(): void {
    for (const { id, answered } of this.#byId.values()) if (!answered) this.#options.emit({ kind: 'cancelled', exchange: id });
    this.#byId.clear();
    this.#byToken.clear();
  }

  #uploadBlock(message: CoapMessage, head: RequestHead, block: Block, now: number): void {
    const { transfers } = this.#options;
    const result = transfers.receive(message, head, block, now);
    if (result instanceof Uint8Array) this.#handUp(message.token, head, result);
    else if (result === null)
      this.#answer(message.token, { status: Status.CONTINUE }, [uintOptionOf(OptionNumber.BLOCK1, blockValue(block))]);
    else if (result === 'size')
      this.#answer(message.token, { status: Status.REQUEST_ENTITY_TOO_LARGE }, [uintOptionOf(OptionNumber.SIZE1, transfers.maxBody)]);
    else this.#answer(message.token, REFUSALS[result]);
  }

  #handUp(token: Uint8Array, head: RequestHead, payload: Uint8Array): void {
    const key = tokenKey(token);
    const previous = this.#byToken.get(key);
    if (previous !== undefined && !this.#endObservation(previous, head)) return;
    // The end of an observed POST is not a second POST.
    if (head.observe === 1 && head.method !== 'GET') {
      this.#answer(token, { status: Status.CHANGED });
      return;
    }
    if (this.#byId.size >= this.#options.maxRequests) {
      this.#answer(token, OUT_OF_RESOURCES);
      return;
    }
    const { block1, block2, size1: _1, etag: _2, observe, ...request } = head;
    const id = this.#nextId++;
    const open: OpenRequest = {
      id,
      key,
      token,
      block1,
      exponent: block2?.exponent ?? BERT,
      observe: observe === 0,
      sequence: previous?.sequence ?? 0,
      answered: false,
    };
    this.#byId.set(id, open);
    this.#byToken.set(key, open);
    this.#options.emit({ kind: 'request', exchange: id, request: { ...request, exchange: id, payload, observe: observe === 0 } });
  }

  /**
   * A request with Observe and the token of an observation renews or ends it; any other message with an open token is
   * dropped.
   */
  #endObservation(previous: OpenRequest, head: RequestHead): boolean {
    if (!previous.observe || previous.answered || head.observe === undefined) {
      this.duplicates++;
      return false;
    }
    this.#forget(previous);
    this.#options.outbox.drop(observeKey(previous));
    this.#options.emit({ kind: 'cancelled', exchange: previous.id });
    return true;
  }

  #fits(request: OpenRequest, message: CoapMessage): boolean {
    const wanted = request.exponent === BERT ? MAX_MESSAGE : 1 << (request.exponent + 4);
    return message.payload.length <= wanted && messageSize(message) <= MAX_MESSAGE;
  }

  #instead(request: OpenRequest, refusal: 'size' | 'room'): Uint8Array {
    const reply = refusal === 'room' ? OUT_OF_RESOURCES : textReply(Status.INTERNAL_SERVER_ERROR, 'Response too large');
    return encodeMessage({ code: replyCode(reply), token: request.token, options: [], payload: reply.payload! });
  }

  #sendKept(token: Uint8Array, block: Block, etag: Uint8Array | undefined, now: number): void {
    const bytes = this.#options.transfers.fetch(token, block, etag, now);
    if (bytes === 'none') {
      const named = etag === undefined ? [] : [{ number: OptionNumber.ETAG, value: etag }];
      this.#answer(token, textReply(Status.REQUEST_ENTITY_INCOMPLETE, 'There is no such block'), named);
    } else if (bytes !== 'replaced') {
      // A notification that has replaced this one is on its way; an answer could overtake it.
      this.#options.outbox.push(bytes, `block ${tokenKey(token)}`);
    }
  }

  /** Queues an answer that the application does not see. */
  #answer(token: Uint8Array, reply: CoapReply, options: readonly CoapOption[] = []): void {
    const payload = reply.payload ?? new Uint8Array(0);
    this.#options.outbox.pushAutomatic(encodeMessage({ code: codeOfStatus(reply.status)!, token, options, payload }));
  }

  #forget(request: OpenRequest): void {
    this.#byId.delete(request.id);
    if (this.#byToken.get(request.key) === request) this.#byToken.delete(request.key);
  }
}

/** The key for notifications: only one waits at a time. */
function observeKey({ key }: OpenRequest): string {
  return `observe ${key}`;
}
