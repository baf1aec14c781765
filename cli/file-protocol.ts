/**
 * Files over a byte stream, between `svc stream` and `svc device`: what both ends speak on FILE_PORT.
 *
 *     client → device   {"op":"put","name":N,"size":S}\n  S bytes            device → client   {"size":S,"sha256":H}\n
 *     client → device   {"op":"get","name":N}\n                              device → client   {"size":S}\n  S bytes  {"sha256":H}\n
 *
 * A refusal is {"error":"…"}\n in place of the first answer line. Lines are JSON of at most 1024 bytes. Each direction ends after what is shown.
 */
import { SvcError } from '../protocol/errors/index.ts';

/** Stream port of the file service. */
export const FILE_PORT = 2001;

/** Bytes moved per step. */
export const CHUNK = 256 * 1024;

const MAX_LINE = 1024;
const LINE_FEED = 0x0a;

/** What reading needs of a stream; the client's and the device's have it. */
export interface ByteSource {
  readSome(max?: number): Promise<Uint8Array>;
}

export type FileRequest = { op: 'put'; name: string; size: number } | { op: 'get'; name: string };

/** The other end did not keep to the protocol above, or refused. The message is for a person. */
export class FileTransferError extends Error {}

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
      return await this.#source.readSome(Math.min(max, CHUNK));
    } catch (error) {
      if (error instanceof SvcError && error.code === 'END_OF_FILE') throw new FileTransferError('the other end stopped in the middle');
      throw error;
    }
  }
}

/** A line to send. */
export function encodeLine(value: Record<string, unknown>): Uint8Array {
  return new TextEncoder().encode(`${JSON.stringify(value)}\n`);
}

/** @throws FileTransferError when it is none */
export function readRequest(line: Record<string, unknown>): FileRequest {
  const { op, name, size } = line;
  if (typeof name !== 'string' || !isFileName(name))
    throw new FileTransferError('a file name has 1 to 128 letters, digits, ".", "-" or "_" and does not begin with "."');
  if (op === 'get') return { op, name };
  if (op === 'put' && isSize(size)) return { op, name, size };
  throw new FileTransferError('the request is neither put nor get');
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
