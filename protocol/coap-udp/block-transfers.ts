/**
 * Block-wise transfer over UDP (RFC 7959), server side. Requests are reassembled before they are delivered; replies are
 * split and kept for the requests for their further blocks. Sans-IO.
 *
 * Unlike in our own channels, peer, method and target identify a transfer and not its token, which may change from
 * block to block (§2.2); and blocks have 16 to 1,024 bytes. Memory and the number of transfers are bounded, and a
 * transfer without a message for a minute is dropped.
 */
import { BERT, type Block, blockOffset, blockUnit, blockValue } from '../coap/block.ts';
import { BodyRoom, IncomingBody } from '../coap/body.ts';
import { codeOfStatus, MethodCode, Status } from '../coap/codes.ts';
import type { CoapMessage } from '../coap/message.ts';
import { type CoapOption, OptionNumber, type SortedOptions, sortOptions, uintOption, uintOptionOf, uintValue } from '../coap/options.ts';
import { blockOption } from '../coap/request.ts';
import { type CoapReply, replyCode, replyOptions, textReply } from '../coap/response.ts';

/** A request with its whole payload, or the message that answers it immediately. */
export type BlockOutcome = { readonly request: WholeRequest } | { readonly answer: CoapMessage };

/** A request, with the data that its reply needs. */
export interface WholeRequest {
  readonly message: CoapMessage;
  readonly block1: Block | undefined;
  readonly block2: Block | undefined;
  /** Peer, method and target, under which its reply is kept. */
  readonly key: string;
}

/** Maximum bytes of one body. */
export const MAX_BODY = 1 << 20;
/** Maximum bytes of all bodies. */
export const ROOM = 16 << 20;
export const MAX_TRANSFERS = 64;
/** ms */
export const TRANSFER_TIMEOUT = 60_000;
/** 1,024 bytes: the largest block over UDP, which fits the packets of any link (RFC 7252 §4.6). */
const LARGEST_EXPONENT = 6;

const EMPTY = new Uint8Array(0);
const known: ReadonlySet<number> = new Set(Object.values(OptionNumber));

interface Upload {
  readonly body: IncomingBody;
  deadline: number;
}

interface ReplyEntry {
  readonly reply: CoapReply;
  readonly body: Uint8Array;
  readonly etag: CoapOption;
  deadline: number;
}

/** The transfers of one socket. */
export class BlockTransfers {
  readonly #room = new BodyRoom(ROOM);
  readonly #uploads = new Map<string, Upload>();
  readonly #kept = new Map<string, ReplyEntry>();
  #etag: number;

  /** @param random uniform in [0, 1): where ETags begin, so that those of an earlier run do not recur */
  constructor(random: () => number) {
    this.#etag = Math.floor(random() * 2 ** 40);
  }

  /** Takes a request of a peer. Returns it when it is whole and its answer is not available here. */
  take(peer: string, message: CoapMessage, now: number): BlockOutcome {
    const options = sortOptions(message.options, known);
    const block1 = blockOption(options, OptionNumber.BLOCK1);
    const block2 = blockOption(options, OptionNumber.BLOCK2);
    const request = { message, block1, block2, key: targetKey(peer, message) };
    // §2.2: 7 is reserved over UDP.
    if (block1?.exponent === BERT || block2?.exponent === BERT)
      return { answer: this.#error(message, Status.BAD_REQUEST, 'The block size is reserved') };
    if (block1 !== undefined) {
      const tooLarge = (uintOption(options, OptionNumber.SIZE1) ?? 0) > MAX_BODY;
      return tooLarge
        ? { answer: this.#refusal(message, 'size') }
        : this.#upload(`${request.key} ${bodyKey(options)}`, request, block1, now);
    }
    if (block2 === undefined || block2.number === 0) return { request };
    const kept = this.#kept.get(request.key);
    if (kept === undefined) {
      // The kept reply may have been dropped. A GET can be delivered again and split again; any other method would be
      // executed twice.
      return message.code === MethodCode.GET ? { request } : { answer: this.#refusal(message, 'gap') };
    }
    kept.deadline = now + TRANSFER_TIMEOUT;
    return { answer: blockMessage(request, kept, undefined) };
  }

  /**
   * Returns the message that answers a request: the whole reply, or the requested block, with the rest kept.
   * @param observe sequence number of a notification
   */
  reply(request: WholeRequest, reply: CoapReply, now: number, observe?: number): CoapMessage {
    const body = reply.payload ?? EMPTY;
    const fits = body.length <= blockUnit(wantedExponent(request));
    // A refusal that fits is sent whichever block was requested.
    if (fits && (reply.status >= 300 || (request.block2?.number ?? 0) === 0)) return wholeMessage(request, reply, observe);
    this.#drop(request.key);
    if (body.length > MAX_BODY || !this.#makeRoom(body.length))
      return this.#error(request.message, Status.SERVICE_UNAVAILABLE, 'Out of resources');
    this.#etag++;
    const kept = { reply, body, etag: { number: OptionNumber.ETAG, value: uintValue(this.#etag) }, deadline: now + TRANSFER_TIMEOUT };
    this.#kept.set(request.key, kept);
    return blockMessage(request, kept, observe);
  }

  /** Returns when to call `handleTimeout`, ms; Infinity for never. Call it again after every other call. */
  nextTimeout(): number {
    let earliest = Number.POSITIVE_INFINITY;
    for (const { deadline } of this.#uploads.values()) earliest = Math.min(earliest, deadline);
    for (const { deadline } of this.#kept.values()) earliest = Math.min(earliest, deadline);
    return earliest;
  }

  /** Drops the bodies whose next block is late. */
  handleTimeout(now: number): void {
    for (const [key, { deadline }] of this.#uploads) if (deadline <= now) this.#dropUpload(key);
    for (const [key, { deadline }] of this.#kept) if (deadline <= now) this.#drop(key);
  }

  #upload(key: string, request: WholeRequest, block: Block, now: number): BlockOutcome {
    const { message } = request;
    if (block.number === 0) this.#dropUpload(key);
    const upload = this.#uploads.get(key) ?? (block.number === 0 ? this.#begin(key) : 'gap');
    const added = typeof upload === 'string' ? upload : this.#add(upload, block, message.payload);
    if (typeof upload === 'string' || added !== 'ok') {
      this.#dropUpload(key);
      return { answer: this.#refusal(message, added) };
    }
    upload.deadline = now + TRANSFER_TIMEOUT;
    if (block.more) return { answer: wholeMessage(request, { status: Status.CONTINUE }) };
    const payload = upload.body.join();
    this.#dropUpload(key);
    return { request: { ...request, message: { ...message, payload } } };
  }

  /** Drops the oldest kept bodies until there is room. */
  #makeRoom(bytes: number): boolean {
    do {
      if (this.#uploads.size + this.#kept.size < MAX_TRANSFERS && this.#room.take(bytes)) return true;
    } while (this.#dropOldest());
    return false;
  }

  /**
   * Drops the oldest kept body; it is generated again for a peer that still wants it.
   * @returns false when nothing is kept
   */
  #dropOldest(): boolean {
    for (const key of this.#kept.keys()) {
      this.#drop(key);
      return true;
    }
    return false;
  }

  #add({ body }: Upload, block: Block, payload: Uint8Array): ReturnType<IncomingBody['add']> {
    let added = body.add(block, payload);
    while (added === 'room' && this.#dropOldest()) added = body.add(block, payload);
    return added;
  }

  #begin(key: string): Upload | 'room' {
    if (!this.#makeRoom(0)) return 'room';
    const upload = { body: new IncomingBody(MAX_BODY, this.#room), deadline: 0 };
    this.#uploads.set(key, upload);
    return upload;
  }

  #refusal(message: CoapMessage, problem: 'ok' | 'gap' | 'length' | 'size' | 'room'): CoapMessage {
    if (problem === 'gap') return this.#error(message, Status.REQUEST_ENTITY_INCOMPLETE, 'A block is missing');
    if (problem === 'length') return this.#error(message, Status.BAD_REQUEST, 'A block has a wrong length');
    if (problem === 'room') return this.#error(message, Status.SERVICE_UNAVAILABLE, 'Out of resources');
    const options = [uintOptionOf(OptionNumber.SIZE1, MAX_BODY)];
    return { code: codeOfStatus(Status.REQUEST_ENTITY_TOO_LARGE)!, token: message.token, options, payload: EMPTY };
  }

  #error({ token }: CoapMessage, status: number, text: string): CoapMessage {
    return { code: codeOfStatus(status)!, token, options: [], payload: textReply(status, text).payload! };
  }

  #dropUpload(key: string): void {
    this.#uploads.get(key)?.body.free();
    this.#uploads.delete(key);
  }

  #drop(key: string): void {
    this.#room.giveBack(this.#kept.get(key)?.body.length ?? 0);
    this.#kept.delete(key);
  }
}

/** Returns the size exponent of the blocks of a reply: the requested one, at most 1,024 bytes. */
function wantedExponent({ block2 }: WholeRequest): number {
  return Math.min(block2?.exponent ?? LARGEST_EXPONENT, LARGEST_EXPONENT);
}

function wholeMessage(request: WholeRequest, reply: CoapReply, observe?: number): CoapMessage {
  const options = responseOptions(request, reply, observe);
  return { code: replyCode(reply), token: request.message.token, options, payload: reply.payload ?? EMPTY };
}

function blockMessage(request: WholeRequest, { reply, body, etag }: ReplyEntry, observe: number | undefined): CoapMessage {
  const exponent = wantedExponent(request);
  const unit = blockUnit(exponent);
  const offset = request.block2 === undefined ? 0 : blockOffset(request.block2);
  if (offset > 0 && offset >= body.length) return wholeMessage(request, textReply(Status.BAD_REQUEST, 'There is no such block'));
  const block2 = uintOptionOf(OptionNumber.BLOCK2, blockValue({ number: offset / unit, more: offset + unit < body.length, exponent }));
  const options = [...responseOptions(request, reply, observe), etag, block2, uintOptionOf(OptionNumber.SIZE2, body.length)];
  return { code: replyCode(reply), token: request.message.token, options, payload: body.subarray(offset, offset + unit) };
}

function responseOptions({ block1 }: WholeRequest, reply: CoapReply, observe: number | undefined): CoapOption[] {
  const options = replyOptions(reply);
  if (observe !== undefined) options.push(uintOptionOf(OptionNumber.OBSERVE, observe));
  if (block1 !== undefined) options.push(uintOptionOf(OptionNumber.BLOCK1, blockValue(block1)));
  return options;
}

/**
 * Returns peer, method and target, the same for every block: options that only some blocks of a transfer carry are left
 * out.
 */
function targetKey(peer: string, message: CoapMessage): string {
  const target = message.options.filter(({ number }) => number === OptionNumber.URI_PATH || number === OptionNumber.URI_QUERY);
  return `${peer} ${message.code} ${text(target)}`;
}

/** Identifies one of several bodies of a peer for one target (RFC 9175 §3.2), with its content format. */
function bodyKey({ known }: SortedOptions): string {
  const numbers = [OptionNumber.CONTENT_FORMAT, OptionNumber.REQUEST_TAG];
  return text(numbers.flatMap((number) => (known.get(number) ?? []).map((value) => ({ number, value }))));
}

function text(options: readonly CoapOption[]): string {
  return options.map(({ number, value }) => `${number}:${value.join('.')}`).join(' ');
}
