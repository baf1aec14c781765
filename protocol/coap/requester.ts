/**
 * Our own requests on one channel: from `request` to the whole response. Sans-IO; `exchanges.ts` drives it.
 *
 * 1. A request that fits one message is sent immediately. A larger one is sent in BERT blocks, Block1, the next after
 *    each 2.31.
 * 2. A response is matched by its token. One in blocks (Block2) is fetched block by block: same method, path and token,
 *    its ETag, no payload, no Observe. Blocks belong together by their ETag. One that does not continue the current
 *    body fails the request, and is ignored once there were notifications.
 * 3. A registered observation (RFC 7641) stays open after the first response. Messages of the channel may overtake each
 *    other, so older notifications are dropped by sequence number, unlike in RFC 8323, where the transport keeps the
 *    order.
 * 4. Every exchange has a deadline for its first whole response and for each later one that comes in blocks.
 *
 * One token serves an exchange for all its blocks; it is random, 8 bytes, and not shared by two open exchanges.
 */
import { LocalError, RemoteError, type SvcError } from '../errors/index.ts';
import { BERT, type Block, blockOffset, blockUnit, blockValue } from './block.ts';
import { cutBlock, IncomingBody } from './body.ts';
import { MethodCode, Status } from './codes.ts';
import { type CoapMessage, encodeMessage, MAX_MESSAGE, messageSize, tokenKey } from './message.ts';
import { type CoapOption, OptionNumber, uintOptionOf } from './options.ts';
import type { Outbox } from './outbox.ts';
import { type CoapRequest, requestOptions } from './request.ts';
import { type CoapResponse, type ResponseHead, readResponse, wholeResponse } from './response.ts';

/** The outcome of a request. */
export type RequesterEvent =
  /** `final` is false while an observation is open. */
  | { readonly kind: 'response'; readonly id: number; readonly response: CoapResponse; readonly final: boolean }
  | { readonly kind: 'timeout'; readonly id: number }
  | { readonly kind: 'failed'; readonly id: number; readonly error: SvcError };

export interface RequesterOptions {
  readonly outbox: Outbox;
  /** Returns `length` random bytes; a token has 8. */
  readonly randomToken: (length: number) => Uint8Array;
  /** Maximum bytes of a reassembled body. */
  readonly maxBody: number;
  readonly emit: (event: RequesterEvent) => void;
}

interface Download {
  readonly head: ResponseHead;
  readonly body: IncomingBody;
}

interface Exchange {
  readonly id: number;
  readonly token: Uint8Array;
  readonly code: number;
  /** Options of every message of the exchange; Observe and Content-Format are only in the first. */
  readonly target: readonly CoapOption[];
  readonly timeout: number;
  deadline: number;
  /** Present while our payload is sent in blocks. */
  upload: { readonly options: readonly CoapOption[]; readonly payload: Uint8Array; block: Block; sent: number } | undefined;
  /** Present while a response arrives in blocks. */
  download: Download | undefined;
  /** Sequence number of the newest notification; undefined when nothing is observed. */
  observed: { sequence: number | undefined } | undefined;
}

const TOKEN_LENGTH = 8;
const MAX_ENDED = 64;
/** Block numbers have 20 bits and count kilobytes. */
const MAX_UPLOAD = 2 ** 30;

/** Our requests on one channel. */
export class Requester {
  /** Responses that match no open exchange or no expected block. */
  unmatched = 0;
  readonly #options: RequesterOptions;
  readonly #byToken = new Map<string, Exchange>();
  readonly #byId = new Map<number, Exchange>();
  /** The latest observations that were ended before the peer was known to have begun them. */
  readonly #ended = new Map<string, Exchange>();
  #nextId = 1;

  constructor(options: RequesterOptions) {
    this.#options = options;
  }

  get open(): number {
    return this.#byId.size;
  }

  /** True when nothing is open and no ended observation is remembered. */
  get isIdle(): boolean {
    return this.#byId.size === 0 && this.#ended.size === 0;
  }

  /** @throws LocalError INVALID_ARGUMENT */
  request(request: CoapRequest, now: number, timeout: number): number {
    const options = requestOptions(request);
    const payload = request.payload ?? new Uint8Array(0);
    const exchange: Exchange = {
      id: this.#nextId,
      token: this.#freshToken(),
      code: MethodCode[request.method],
      target: options.filter(({ number }) => number === OptionNumber.URI_PATH || number === OptionNumber.URI_QUERY),
      timeout,
      deadline: now + timeout,
      upload: undefined,
      download: undefined,
      observed: request.observe === 0 ? { sequence: undefined } : undefined,
    };
    const message = { code: exchange.code, token: exchange.token, options, payload };
    if (messageSize(message) <= MAX_MESSAGE) this.#options.outbox.push(encodeMessage(message));
    else this.#beginUpload(exchange, options, payload);
    this.#byToken.set(tokenKey(exchange.token), exchange);
    this.#byId.set(exchange.id, exchange);
    return this.#nextId++;
  }

  /** Forgets an exchange without an event; an observation is also ended at the peer. */
  cancel(id: number): void {
    const exchange = this.#byId.get(id);
    if (exchange === undefined) return;
    this.#forget(exchange);
    if (exchange.observed !== undefined) this.#endObservation(exchange);
  }

  /** Processes a message of a response class. */
  receive(message: CoapMessage, now: number): void {
    const exchange = this.#byToken.get(tokenKey(message.token));
    if (exchange === undefined) {
      this.#unmatchedResponse(message);
      return;
    }
    const head = readResponse(message);
    if ('rejected' in head) this.#fail(exchange, `the response is rejected: ${head.rejected}`);
    else if (head.status === Status.CONTINUE) this.#continueUpload(exchange, head);
    else if (head.status === Status.REQUEST_ENTITY_INCOMPLETE && head.etag !== undefined) this.#bodyGone(exchange, head.etag);
    else if (head.block2 !== undefined && (head.block2.more || head.block2.number > 0))
      this.#block(exchange, head, head.block2, message.payload, now);
    else if (this.#isFresh(exchange, head)) this.#complete(exchange, head, message.payload);
  }

  /** Call when a message with this token was malformed: the request that it answers, if there is one, fails. */
  malformed(token: Uint8Array, cause: RemoteError): void {
    const exchange = this.#byToken.get(tokenKey(token));
    if (exchange !== undefined) this.#failWith(exchange, new RemoteError('BAD_RESPONSE', cause.message, { cause }));
  }

  /** Returns when to call `handleTimeout`, ms; Infinity for never. Call it again after every other call. */
  nextTimeout(): number {
    let earliest = Number.POSITIVE_INFINITY;
    for (const { deadline } of this.#byId.values()) earliest = Math.min(earliest, deadline);
    return earliest;
  }

  /** Abandons the requests past their deadline: `timeout` is emitted for each. */
  handleTimeout(now: number): void {
    for (const exchange of [...this.#byId.values()]) {
      if (exchange.deadline > now) continue;
      this.cancel(exchange.id);
      this.#options.emit({ kind: 'timeout', id: exchange.id });
    }
  }

  /** Ends everything: the channel is gone. */
  close(error: SvcError): void {
    for (const { id } of this.#byId.values()) this.#options.emit({ kind: 'failed', id, error });
    this.#byId.clear();
    this.#byToken.clear();
    this.#ended.clear();
  }

  /**
   * The end of an observation may overtake its beginning: a notification that still arrives is answered by sending the
   * end once more.
   */
  #unmatchedResponse(message: CoapMessage): void {
    this.unmatched++;
    const exchange = this.#ended.get(tokenKey(message.token));
    if (exchange === undefined || !message.options.some(({ number }) => number === OptionNumber.OBSERVE)) return;
    this.#ended.delete(tokenKey(message.token));
    this.#sendEnd(exchange);
  }

  #endObservation(exchange: Exchange): void {
    // If notifications have arrived, the peer has received the beginning, so the end cannot overtake it.
    if (exchange.observed?.sequence === undefined) this.#rememberEnd(exchange);
    this.#sendEnd(exchange);
  }

  #rememberEnd(exchange: Exchange): void {
    const oldest = this.#ended.keys().next().value;
    if (this.#ended.size >= MAX_ENDED && oldest !== undefined) this.#ended.delete(oldest);
    this.#ended.set(tokenKey(exchange.token), exchange);
  }

  #sendEnd(exchange: Exchange): void {
    exchange.download = undefined;
    this.#send(exchange, [...exchange.target, uintOptionOf(OptionNumber.OBSERVE, 1)]);
  }

  #beginUpload(exchange: Exchange, options: readonly CoapOption[], payload: Uint8Array): void {
    if (payload.length > MAX_UPLOAD) throw new LocalError('INVALID_ARGUMENT', `CoAP: a payload of ${payload.length} bytes cannot be sent`);
    // A copy: the caller may reuse, shrink or transfer its bytes.
    exchange.upload = { options, payload: payload.slice(), block: { number: 0, more: true, exponent: BERT }, sent: 0 };
    this.#sendUpload(exchange, 0);
  }

  /** 2.31: the block arrived, so the next is sent (RFC 7959 §2.3, RFC 8323 §6). */
  #continueUpload(exchange: Exchange, { block1 }: ResponseHead): void {
    const { upload } = exchange;
    const expected = upload?.block.more && block1?.number === upload.block.number && block1.exponent === BERT;
    if (expected) this.#sendUpload(exchange, upload.sent);
    else this.#fail(exchange, 'a 2.31 that continues nothing');
  }

  #sendUpload(exchange: Exchange, offset: number): void {
    const upload = exchange.upload!;
    const { block, payload } = cutBlock(upload.payload, offset, BERT, this.#uploadHeadSize(exchange));
    upload.block = block;
    upload.sent = offset + payload.length;
    this.#send(exchange, this.#uploadOptions(exchange, block), payload);
  }

  #uploadOptions(exchange: Exchange, block: Block): CoapOption[] {
    const { options, payload } = exchange.upload!;
    const blockOption = uintOptionOf(OptionNumber.BLOCK1, blockValue(block));
    return [...options, blockOption, uintOptionOf(OptionNumber.SIZE1, payload.length)];
  }

  /**
   * Returns the size of the largest head that a block of the upload can have, so that all blocks have the same size.
   */
  #uploadHeadSize(exchange: Exchange): number {
    const options = this.#uploadOptions(exchange, { number: 0xfffff, more: true, exponent: BERT });
    return messageSize({ code: exchange.code, token: exchange.token, options, payload: new Uint8Array(0) });
  }

  #block(exchange: Exchange, head: ResponseHead, block: Block, payload: Uint8Array, now: number): void {
    if (block.number === 0) {
      if (!this.#isFresh(exchange, head)) return;
      exchange.download = { head, body: new IncomingBody(this.#options.maxBody) };
      exchange.deadline = Math.min(exchange.deadline, now + exchange.timeout);
    }
    const { download } = exchange;
    const belongs = download !== undefined && sameTag(download.head.etag, head.etag) && blockOffset(block) === download.body.length;
    if (belongs) this.#addBlock(exchange, download, block, payload);
    else this.#stray(exchange, 'a block of the response continues nothing');
  }

  /**
   * Handles a block that does not continue the current body. It may be the rest of a notification that a newer one
   * replaced; without notifications it is an error.
   */
  #stray(exchange: Exchange, problem: string): void {
    if (exchange.observed?.sequence === undefined) this.#fail(exchange, problem);
    else this.unmatched++;
  }

  #addBlock(exchange: Exchange, { head, body }: Download, block: Block, payload: Uint8Array): void {
    const tooLarge = (head.size2 ?? 0) > this.#options.maxBody;
    const added = tooLarge ? 'size' : body.add(block, payload);
    if (added === 'size') this.#fail(exchange, `the response is larger than ${this.#options.maxBody} bytes`);
    else if (added !== 'ok') this.#fail(exchange, 'a block of the response does not fit its number');
    else if (block.more)
      this.#askBlock(exchange, head, { number: body.length / blockUnit(block.exponent), more: false, exponent: block.exponent });
    else this.#complete(exchange, head, body.join());
  }

  #askBlock(exchange: Exchange, { etag }: ResponseHead, block: Block): void {
    const options = [...exchange.target, uintOptionOf(OptionNumber.BLOCK2, blockValue(block))];
    if (etag !== undefined) options.push({ number: OptionNumber.ETAG, value: etag });
    // Only one waits at a time: a peer that restarts its response repeatedly and reads nothing cannot pile them up.
    const message = { code: exchange.code, token: exchange.token, options, payload: new Uint8Array(0) };
    this.#options.outbox.push(encodeMessage(message), `ask ${tokenKey(exchange.token)}`);
  }

  #bodyGone(exchange: Exchange, etag: Uint8Array): void {
    const problem = 'the rest of the response is gone';
    if (sameTag(exchange.download?.head.etag, etag)) this.#fail(exchange, problem);
    else this.#stray(exchange, problem);
  }

  #complete(exchange: Exchange, head: ResponseHead, payload: Uint8Array): void {
    exchange.upload = undefined;
    exchange.download = undefined;
    exchange.deadline = Number.POSITIVE_INFINITY;
    const final = exchange.observed === undefined || head.observe === undefined || head.status >= 300;
    if (final) this.#forget(exchange);
    this.#options.emit({ kind: 'response', id: exchange.id, response: wholeResponse(head, payload), final });
  }

  /** RFC 7641 §3.4 without its clock: a notification is old when its sequence number went back, modulo 2^24. */
  #isFresh(exchange: Exchange, head: ResponseHead): boolean {
    const { observed } = exchange;
    if (observed === undefined || head.observe === undefined) return true;
    const ahead = observed.sequence === undefined ? 0 : (head.observe - observed.sequence) & 0xffffff;
    if (ahead >= 0x800000) return false;
    observed.sequence = head.observe;
    return true;
  }

  #send(exchange: Exchange, options: readonly CoapOption[], payload: Uint8Array = new Uint8Array(0)): void {
    this.#options.outbox.push(encodeMessage({ code: exchange.code, token: exchange.token, options, payload }));
  }

  #fail(exchange: Exchange, problem: string): void {
    this.#failWith(exchange, new RemoteError('BAD_RESPONSE', `CoAP: ${problem}`));
  }

  #failWith(exchange: Exchange, error: RemoteError): void {
    this.cancel(exchange.id);
    this.#options.emit({ kind: 'failed', id: exchange.id, error });
  }

  #forget(exchange: Exchange): void {
    this.#byId.delete(exchange.id);
    this.#byToken.delete(tokenKey(exchange.token));
  }

  #freshToken(): Uint8Array {
    for (;;) {
      const token = this.#options.randomToken(TOKEN_LENGTH);
      if (!this.#byToken.has(tokenKey(token)) && !this.#ended.has(tokenKey(token))) return token;
    }
  }
}

function sameTag(a: Uint8Array | undefined, b: Uint8Array | undefined): boolean {
  return (a === undefined ? '' : tokenKey(a)) === (b === undefined ? '' : tokenKey(b));
}
