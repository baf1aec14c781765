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
 *    request's token and the ETag. Kept and incoming bodies together are limited in number and in time.
 * 5. A reply with `observe: true` keeps the request open for more replies; a request with Observe 1 and the same token
 *    ends it (a GET is then answered as any other, a POST 2.04).
 *
 * Every answer here is small and bounded in number; nothing that arrives makes it throw.
 */
import { BERT, type Block, blockOffset, blockValue } from './block.ts';
import { type BodyRoom, cutBlock, IncomingBody } from './body.ts';
import { codeOfStatus, Status } from './codes.ts';
import { type CoapMessage, encodeMessage, MAX_MESSAGE, messageSize, tokenKey } from './message.ts';
import { type CoapOption, OptionNumber, uintOptionOf, uintValue } from './options.ts';
import type { Outbox } from './outbox.ts';
import { acceptedInRequests, type IncomingRequest, type RequestHead, readRequest } from './request.ts';
import { type CoapReply, replyCode, replyOptions, textReply } from './response.ts';

/** An event caused by the peer. */
export type ResponderEvent =
  | { readonly kind: 'request'; readonly exchange: number; readonly request: IncomingRequest }
  /** The peer no longer observes; no reply is wanted. */
  | { readonly kind: 'cancelled'; readonly exchange: number };

export interface ResponderOptions {
  readonly outbox: Outbox;
  /** Most requests that may be open. */
  readonly maxRequests: number;
  /** Maximum bytes of one body in blocks, in either direction. */
  readonly maxBody: number;
  /** Most bodies in blocks, both directions together. */
  readonly maxTransfers: number;
  /** Memory of those bodies, if other channels share it. */
  readonly room: BodyRoom | undefined;
  /** Milliseconds after the last block until a body is dropped. */
  readonly transferTimeout: number;
  /** Critical options accepted besides those of PROTOCOL.md §7. */
  readonly criticalOptions: readonly number[];
  /** Number of the first request. */
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

interface Upload {
  readonly path: string;
  readonly method: string;
  readonly body: IncomingBody;
  deadline: number;
}

interface KeptBody {
  readonly code: number;
  readonly etag: string;
  readonly options: readonly CoapOption[];
  readonly body: Uint8Array;
  deadline: number;
}

/** The peer's requests on one channel. */
export class Responder {
  /** Requests with the token of an open one. */
  duplicates = 0;
  readonly #options: ResponderOptions;
  readonly #accepted: ReadonlySet<number>;
  readonly #byId = new Map<number, OpenRequest>();
  readonly #byToken = new Map<string, OpenRequest>();
  readonly #uploads = new Map<string, Upload>();
  readonly #kept = new Map<string, KeptBody>();
  #nextId: number;
  #etag = 0;
  /** Time since which the channel has carried nothing, ms; null while it works. */
  #pausedAt: number | null = null;

  constructor(options: ResponderOptions) {
    this.#options = options;
    this.#nextId = options.firstExchange;
    this.#accepted = new Set([...acceptedInRequests, ...options.criticalOptions]);
  }

  get open(): number {
    return this.#byId.size;
  }

  /** True when nothing is open and no body is kept or arriving. */
  get isIdle(): boolean {
    return this.#byId.size === 0 && this.#transfers() === 0;
  }

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
   * Answers a request. Further replies are possible after one with `observe: true` to a request that requested
   * observation.
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
    const fits = this.#fits(request, message);
    const bytes = fits ? encodeMessage(message) : this.#keep(request, message, now);
    // A body that cannot be kept is replaced by an error, which ends an observation (RFC 7641 §4.2).
    const stands = observing && (fits || this.#kept.has(request.key));
    request.sequence = (request.sequence + 1) & 0xffffff;
    request.answered = !stands;
    if (stands) this.#options.outbox.push(bytes, observeKey(request));
    else this.#options.outbox.push(bytes, undefined, () => this.#forget(request));
    return true;
  }

  /** Suspends the expiry of bodies until `resume`. */
  pause(now: number): void {
    this.#pausedAt ??= now;
  }

  /** Resumes the expiry: bodies have as much time left as before the pause. */
  resume(now: number): void {
    if (this.#pausedAt === null) return;
    const paused = now - this.#pausedAt;
    this.#pausedAt = null;
    for (const each of [...this.#uploads.values(), ...this.#kept.values()]) each.deadline += paused;
  }

  /** Returns when to call `handleTimeout`, ms; Infinity for never. Call it again after every other call. */
  nextTimeout(): number {
    if (this.#pausedAt !== null) return Number.POSITIVE_INFINITY;
    let earliest = Number.POSITIVE_INFINITY;
    for (const { deadline } of this.#uploads.values()) earliest = Math.min(earliest, deadline);
    for (const { deadline } of this.#kept.values()) earliest = Math.min(earliest, deadline);
    return earliest;
  }

  /** Drops the expired bodies, partly received or kept. */
  handleTimeout(now: number): void {
    if (this.#pausedAt !== null) return;
    for (const [key, { deadline }] of this.#uploads) if (deadline <= now) this.#dropUpload(key);
    for (const [key, { deadline }] of this.#kept) if (deadline <= now) this.#dropKept(key);
  }

  /** Ends everything: call when the channel is gone. */
  close(): void {
    for (const { id, answered } of this.#byId.values()) if (!answered) this.#options.emit({ kind: 'cancelled', exchange: id });
    for (const key of this.#uploads.keys()) this.#dropUpload(key);
    for (const key of this.#kept.keys()) this.#dropKept(key);
    this.#byId.clear();
    this.#byToken.clear();
  }

  #uploadBlock(message: CoapMessage, head: RequestHead, block: Block, now: number): void {
    const key = tokenKey(message.token);
    const upload = block.number === 0 ? this.#beginUpload(key, head, now) : this.#uploads.get(key);
    if (upload === 'full') this.#answer(message.token, textReply(Status.SERVICE_UNAVAILABLE, 'Out of resources'));
    else if (upload === undefined || upload.path !== head.path || upload.method !== head.method) this.#refuse(message.token, key, 'gap');
    else this.#addBlock(message, head, upload, block, now);
  }

  #beginUpload(key: string, head: RequestHead, now: number): Upload | 'full' {
    this.#dropUpload(key);
    if (this.#transfers() >= this.#options.maxTransfers) return 'full';
    const upload = {
      path: head.path,
      method: head.method,
      body: new IncomingBody(this.#options.maxBody, this.#options.room),
      deadline: now,
    };
    this.#uploads.set(key, upload);
    return upload;
  }

  #addBlock(message: CoapMessage, head: RequestHead, upload: Upload, block: Block, now: number): void {
    const key = tokenKey(message.token);
    upload.deadline = now + this.#options.transferTimeout;
    const added = (head.size1 ?? 0) > this.#options.maxBody ? 'size' : upload.body.add(block, message.payload);
    if (added !== 'ok') {
      this.#refuse(message.token, key, added);
    } else if (block.more) {
      this.#answer(message.token, { status: Status.CONTINUE }, [uintOptionOf(OptionNumber.BLOCK1, blockValue(block))]);
    } else {
      const body = upload.body.join();
      this.#dropUpload(key);
      this.#handUp(message.token, head, body);
    }
  }

  #refuse(token: Uint8Array, key: string, problem: 'gap' | 'length' | 'size' | 'room'): void {
    this.#dropUpload(key);
    if (problem === 'gap') this.#answer(token, textReply(Status.REQUEST_ENTITY_INCOMPLETE, 'A block is missing'));
    else if (problem === 'room') this.#answer(token, textReply(Status.SERVICE_UNAVAILABLE, 'Out of resources'));
    else if (problem === 'length') this.#answer(token, textReply(Status.BAD_REQUEST, 'A block has a wrong length'));
    else this.#answer(token, { status: Status.REQUEST_ENTITY_TOO_LARGE }, [uintOptionOf(OptionNumber.SIZE1, this.#options.maxBody)]);
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
      this.#answer(token, textReply(Status.SERVICE_UNAVAILABLE, 'Out of resources'));
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

  /** Keeps a large reply and returns its first block; if it cannot be kept, returns an error instead. */
  #keep(request: OpenRequest, message: CoapMessage, now: number): Uint8Array {
    this.#dropKept(request.key);
    if (message.payload.length > this.#options.maxBody)
      return this.#instead(request, textReply(Status.INTERNAL_SERVER_ERROR, 'Response too large'));
    const room = this.#transfers() < this.#options.maxTransfers && this.#options.room?.take(message.payload.length) !== false;
    if (!room) return this.#instead(request, textReply(Status.SERVICE_UNAVAILABLE, 'Out of resources'));
    this.#etag = (this.#etag % 0xffffffff) + 1;
    const etag = { number: OptionNumber.ETAG, value: uintValue(this.#etag) };
    const options = [...message.options, etag, uintOptionOf(OptionNumber.SIZE2, message.payload.length)];
    const later = options.filter(({ number }) => number !== OptionNumber.OBSERVE && number !== OptionNumber.BLOCK1);
    const kept = {
      code: message.code,
      etag: tokenKey(etag.value),
      options: later,
      // A copy: the application may reuse, shrink or transfer its bytes.
      body: message.payload.slice(),
      deadline: now + this.#options.transferTimeout,
    };
    this.#kept.set(request.key, kept);
    return blockMessage(request.token, { ...kept, options }, 0, request.exponent).bytes;
  }

  #instead(request: OpenRequest, reply: CoapReply): Uint8Array {
    const payload = reply.payload ?? new Uint8Array(0);
    return encodeMessage({ code: replyCode(reply), token: request.token, options: [], payload });
  }

  #sendKept(token: Uint8Array, block: Block, etag: Uint8Array | undefined, now: number): void {
    const key = tokenKey(token);
    const kept = this.#kept.get(key);
    const offset = blockOffset(block);
    // A newer notification has replaced this one and is on its way; an answer could overtake it.
    if (kept !== undefined && etag !== undefined && tokenKey(etag) !== kept.etag) return;
    if (kept === undefined || offset >= kept.body.length) {
      const named = etag === undefined ? [] : [{ number: OptionNumber.ETAG, value: etag }];
      this.#answer(token, textReply(Status.REQUEST_ENTITY_INCOMPLETE, 'There is no such block'), named);
      return;
    }
    kept.deadline = now + this.#options.transferTimeout;
    const { bytes, last } = blockMessage(token, kept, offset, block.exponent);
    if (last) this.#dropKept(key);
    this.#options.outbox.push(bytes, `block ${key}`);
  }

  /** Queues an answer that the application does not see. */
  #answer(token: Uint8Array, reply: CoapReply, options: readonly CoapOption[] = []): void {
    const payload = reply.payload ?? new Uint8Array(0);
    this.#options.outbox.pushAutomatic(encodeMessage({ code: codeOfStatus(reply.status)!, token, options, payload }));
  }

  #dropUpload(key: string): void {
    this.#uploads.get(key)?.body.free();
    this.#uploads.delete(key);
  }

  #dropKept(key: string): void {
    this.#options.room?.giveBack(this.#kept.get(key)?.body.length ?? 0);
    this.#kept.delete(key);
  }

  #transfers(): number {
    return this.#uploads.size + this.#kept.size;
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

function blockMessage(token: Uint8Array, kept: KeptBody, offset: number, exponent: number): { bytes: Uint8Array; last: boolean } {
  // The head size assumes the largest block number, so that all blocks have the same size.
  const largest = uintOptionOf(OptionNumber.BLOCK2, 0xffffff);
  const headSize = messageSize({ code: kept.code, token, options: [...kept.options, largest], payload: new Uint8Array(0) });
  const { block, payload } = cutBlock(kept.body, offset, exponent, headSize);
  const options = [...kept.options, uintOptionOf(OptionNumber.BLOCK2, blockValue(block))];
  return { bytes: encodeMessage({ code: kept.code, token, options, payload }), last: !block.more };
}
