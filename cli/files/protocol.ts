/**
 * Files over a byte stream, between `svc stream` and `svc device`: the protocol of FILE_PORT, one request per stream.
 * Lines are JSON of at most 1024 bytes, each with a line feed at its end; O, S and n are numbers of bytes, H, W and F
 * are SHA-256 in hex.
 *
 * To the device. W is of the whole file. The device compares before it renames the file, and answers once that is on
 * disk:
 *
 *     client → device   {"op":"send","name":N,"size":S,"replace":true}\n
 *     device → client   {"offset":O,"sha256":H}\n           its part of an interrupted attempt; H is of these O bytes
 *     client → device   {"offset":O}\n                      the file begins with these; {"offset":0} is always allowed
 *                       {"bytes":n}\n  n bytes …           the rest, in pieces
 *                       {"sha256":W}\n
 *     device → client   {"size":S,"sha256":W}\n
 *
 * Without `size` it is known only at the end, and an interrupted transfer is not kept. Without `replace` an existing
 * file is not replaced.
 *
 * From the device. F is always of the whole file:
 *
 *     client → device   {"op":"get","name":N,"offset":O,"sha256":H}\n       what the client has
 *     device → client   {"size":S,"offset":O}\n  S − O bytes  {"sha256":F}\n
 *                       offset 0 where the file does not begin with these bytes
 *
 * The list, sorted by name; the time is that of the last change, in ms since 1970:
 *
 *     client → device   {"op":"list"}\n
 *     device → client   {"files":count}\n  {"name":N,"size":S,"time":T}\n …
 *
 * A refusal is {"error":"…","code":"…"}\n instead of any line of the device. Each direction ends after the lines shown.
 */
import { SvcError } from '../../protocol/errors/index.ts';

/** Stream port of the file service. */
export const FILE_PORT = 2001;

/** Bytes moved per step. */
export const CHUNK = 256 * 1024;

const MAX_LINE = 1024;
const LINE_FEED = 0x0a;

/** The part of a stream that reading uses; the client's and the device's have it. */
export interface ByteSource {
  read(max?: number): Promise<Uint8Array>;
}

/** Bytes that one end already has, and their SHA-256. */
export interface Prefix {
  readonly offset: number;
  /** Hex; optional for zero bytes. */
  readonly sha256?: string;
}

export interface SendRequest {
  op: 'send';
  name: string;
  /** Undefined if known only at the end. */
  size?: number;
  replace: boolean;
}

export type FileRequest = SendRequest | ({ op: 'get'; name: string } & Prefix) | { op: 'list' };

/** A file in the list. */
export interface ListedFile {
  readonly name: string;
  readonly size: number;
  /** Time of the last change, ms since 1970. */
  readonly time: number;
}

/** Reasons of refusals. */
export type RefusalCode =
  /** The request, or what follows it, does not match the protocol. */
  | 'INVALID'
  | 'NO_SUCH_FILE'
  | 'EXISTS'
  | 'NO_ROOM'
  /** The content received differs from that sent. */
  | 'MISMATCH'
  /** The same client has sent a later request for the same name. */
  | 'SUPERSEDED'
  | 'FAILED';

/** The peer violated the protocol above, or refused. The message is for a person. */
export class FileTransferError extends Error {
  readonly code: RefusalCode;

  constructor(message: string, code: RefusalCode = 'INVALID') {
    super(message);
    this.code = code;
  }
}

/** Reads lines and counted bytes from a stream. */
export class FileReader {
  readonly #source: ByteSource;
  #rest: Uint8Array = new Uint8Array();

  constructor(source: ByteSource) {
    this.#source = source;
  }

  /** The next line as JSON. @throws FileTransferError */
  async readLine(): Promise<Record<string, unknown>> {
    const line = new Uint8Array(MAX_LINE);
    let length = 0;
    for (;;) {
      const data = await this.#next(MAX_LINE);
      const end = data.indexOf(LINE_FEED);
      const part = end < 0 ? data : data.subarray(0, end);
      if (length + part.length > MAX_LINE) throw new FileTransferError('the line is too long');
      line.set(part, length);
      length += part.length;
      if (end >= 0) {
        this.#rest = data.subarray(end + 1);
        return parseLine(line.subarray(0, length));
      }
    }
  }

  /** Exactly `size` bytes, in pieces. @throws FileTransferError when the stream ends before */
  async *bytes(size: number): AsyncGenerator<Uint8Array> {
    for (let left = size; left > 0; ) {
      const data = await this.#next(left);
      this.#rest = data.subarray(left);
      const piece = data.subarray(0, left);
      left -= piece.length;
      yield piece;
    }
  }

  async #next(max: number): Promise<Uint8Array> {
    if (this.#rest.length > 0) {
      const data = this.#rest;
      this.#rest = new Uint8Array();
      return data;
    }
    try {
      return await this.#source.read(Math.min(max, CHUNK));
    } catch (error) {
      if (error instanceof SvcError && error.code === 'END_OF_FILE') throw new FileTransferError('the peer stopped in the middle');
      throw error;
    }
  }
}

/** Encodes a line. */
export function encodeLine(value: Record<string, unknown>): Uint8Array {
  return new TextEncoder().encode(`${JSON.stringify(value)}\n`);
}

/** @throws FileTransferError when it is not a request */
export function readRequest(line: Record<string, unknown>): FileRequest {
  const { op, name, size, offset = 0, sha256, replace = false } = line;
  if (op === 'list') return { op };
  if (typeof name !== 'string' || !isFileName(name))
    throw new FileTransferError('a file name has 1 to 128 letters, digits, ".", "-" or "_" and does not begin with "."');
  if (op === 'get' && isPrefix({ offset, sha256 })) return { op, name, ...readPrefix({ offset, sha256 }) };
  if (op === 'send' && (size === undefined || isSize(size)) && typeof replace === 'boolean')
    return { op, name, ...(size !== undefined && { size }), replace };
  throw new FileTransferError('the request is not send, get or list, or is incomplete');
}

/** The peer's content so far. @throws FileTransferError when the line does not state it */
export function readPrefix({ offset, sha256 }: Record<string, unknown>): Prefix {
  if (!isPrefix({ offset, sha256 })) throw new FileTransferError('the line does not state the existing content');
  return { offset: offset as number, ...(typeof sha256 === 'string' && { sha256 }) };
}

function isPrefix({ offset, sha256 }: Record<string, unknown>): boolean {
  return isSize(offset) && (sha256 === undefined ? offset === 0 : typeof sha256 === 'string' && /^[0-9a-f]{64}$/.test(sha256));
}

/** True for 1 to 128 letters, digits, `.`, `-` or `_` that do not begin with `.`: a name, never a path. */
export function isFileName(name: string): boolean {
  return /^[A-Za-z0-9_-][A-Za-z0-9._-]{0,127}$/.test(name);
}

/** True for a number of bytes. */
export function isSize(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0;
}

function parseLine(bytes: Uint8Array): Record<string, unknown> {
  let value: unknown;
  try {
    value = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes));
  } catch {
    throw new FileTransferError('the line is not JSON');
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw new FileTransferError('the line is not a JSON object');
  return value as Record<string, unknown>;
}
