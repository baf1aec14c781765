/**
 * Bodies in blocks of the peer's requests on one channel (RFC 7959): payloads that arrive (Block1), by token, and
 * replies that the peer fetches (Block2, ETag, Size2). Together they are limited in number, bytes and time.
 */
import { type Block, blockOffset, blockValue } from './block.ts';
import { type BodyRoom, cutBlock, IncomingBody } from './body.ts';
import { type CoapMessage, encodeMessage, messageSize, tokenKey } from './message.ts';
import { type CoapOption, OptionNumber, uintOptionOf, uintValue } from './options.ts';
import type { RequestHead } from './request.ts';

export interface TransfersOptions {
  /** Bytes of one body, in either direction. Default 1 MiB, at most 16 MiB. */
  readonly maxBody: number;
  /** Bodies at the same time, of the peer's requests and of our replies. Default 8. */
  readonly maxTransfers: number;
  /** Memory of the bodies when several channels share it; by default each has its own, up to the limits above. */
  readonly bodyRoom: BodyRoom | undefined;
  /** Milliseconds after its last block until a body is dropped. Default 30,000. */
  readonly transferTimeout: number;
}

/** `room`: too many bodies, here or on the channels that share the room. The others: see `IncomingBody.add`. */
export type TransferRefusal = 'gap' | 'length' | 'size' | 'room';

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

/** The bodies in blocks of one channel. */
export class Transfers {
  readonly maxBody: number;
  readonly #options: TransfersOptions;
  readonly #uploads = new Map<string, Upload>();
  readonly #kept = new Map<string, KeptBody>();
  #etag = 0;
  /** Time since which the channel has carried nothing, ms; null while it works. */
  #pausedAt: number | null = null;

  constructor(options: TransfersOptions) {
    this.#options = options;
    this.maxBody = options.maxBody;
  }

  get isEmpty(): boolean {
    return this.#uploads.size + this.#kept.size === 0;
  }

  /**
   * Adds a block to the payload of a request.
   * @returns the payload after its last block, null before; or why the block is refused: then the payload is dropped
   */
  receive({ token, payload }: CoapMessage, head: RequestHead, block: Block, now: number): Uint8Array | TransferRefusal | null {
    const key = tokenKey(token);
    const upload = block.number === 0 ? this.#beginUpload(key, head) : this.#uploads.get(key);
    if (upload === 'room') return upload;
    let outcome: Uint8Array | TransferRefusal = 'gap';
    if (upload?.path === head.path && upload.method === head.method) {
      const added = (head.size1 ?? 0) > this.maxBody ? 'size' : upload.body.add(block, payload);
      if (added === 'ok' && block.more) {
        upload.deadline = now + this.#options.transferTimeout;
        return null;
      }
      outcome = added === 'ok' ? upload.body.join() : added;
    }
    this.#dropUpload(key);
    return outcome;
  }

  /**
   * Keeps a large reply, in place of one that was kept for the same token.
   * @param exponent size exponent of its blocks
   * @returns its first block, or why it cannot be kept
   */
  keep({ code, token, options, payload }: CoapMessage, exponent: number, now: number): Uint8Array | 'size' | 'room' {
    const key = tokenKey(token);
    this.#dropKept(key);
    if (payload.length > this.maxBody) return 'size';
    if (this.#isFull || this.#options.bodyRoom?.take(payload.length) === false) return 'room';
    this.#etag = (this.#etag % 0xffffffff) + 1;
    const etag = { number: OptionNumber.ETAG, value: uintValue(this.#etag) };
    const all = [...options, etag, uintOptionOf(OptionNumber.SIZE2, payload.length)];
    const kept = {
      code,
      etag: tokenKey(etag.value),
      options: all.filter(({ number }) => number !== OptionNumber.OBSERVE && number !== OptionNumber.BLOCK1),
      // A copy: the application may reuse, shrink or transfer its bytes.
      body: payload.slice(),
      deadline: now + this.#options.transferTimeout,
    };
    this.#kept.set(key, kept);
    return blockMessage(token, { ...kept, options: all }, 0, exponent).bytes;
  }

  /**
   * Returns a block of a kept reply; `none` when there is no such block, `replaced` when a newer reply has another
   * ETag.
   */
  fetch(token: Uint8Array, block: Block, etag: Uint8Array | undefined, now: number): Uint8Array | 'none' | 'replaced' {
    const key = tokenKey(token);
    const kept = this.#kept.get(key);
    const offset = blockOffset(block);
    if (kept !== undefined && etag !== undefined && tokenKey(etag) !== kept.etag) return 'replaced';
    if (kept === undefined || offset >= kept.body.length) return 'none';
    kept.deadline = now + this.#options.transferTimeout;
    const { bytes, last } = blockMessage(token, kept, offset, block.exponent);
    if (last) this.#dropKept(key);
    return bytes;
  }

  /** Call when the channel carries nothing for a while: bodies do not expire until `resume`. */
  pause(now: number): void {
    this.#pausedAt ??= now;
  }

  /** Call when the channel carries messages again: bodies have as much time left as before the pause. */
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

  /** Drops everything: call when the channel is gone. */
  close(): void {
    for (const key of this.#uploads.keys()) this.#dropUpload(key);
    for (const key of this.#kept.keys()) this.#dropKept(key);
  }

  get #isFull(): boolean {
    return this.#uploads.size + this.#kept.size >= this.#options.maxTransfers;
  }

  #beginUpload(key: string, { path, method }: RequestHead): Upload | 'room' {
    this.#dropUpload(key);
    if (this.#isFull) return 'room';
    const upload = { path, method, body: new IncomingBody(this.maxBody, this.#options.bodyRoom), deadline: Number.POSITIVE_INFINITY };
    this.#uploads.set(key, upload);
    return upload;
  }

  #dropUpload(key: string): void {
    this.#uploads.get(key)?.body.free();
    this.#uploads.delete(key);
  }

  #dropKept(key: string): void {
    this.#options.bodyRoom?.giveBack(this.#kept.get(key)?.body.length ?? 0);
    this.#kept.delete(key);
  }
}

function blockMessage(token: Uint8Array, kept: KeptBody, offset: number, exponent: number): { bytes: Uint8Array; last: boolean } {
  // The head size assumes the largest block number, so that all blocks have the same size.
  const largest = uintOptionOf(OptionNumber.BLOCK2, 0xffffff);
  const headSize = messageSize({ code: kept.code, token, options: [...kept.options, largest], payload: new Uint8Array(0) });
  const { block, payload } = cutBlock(kept.body, offset, exponent, headSize);
  const options = [...kept.options, uintOptionOf(OptionNumber.BLOCK2, blockValue(block))];
  return { bytes: encodeMessage({ code: kept.code, token, options, payload }), last: !block.more };
}
