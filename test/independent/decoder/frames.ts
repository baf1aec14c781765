/** The frames of a packet (RFC 9000 §19, RFC 9221), those that PROTOCOL.md §5 names; any other type is refused. */
import { demand, Refused } from './crypto.ts';

export type Frame =
  | { readonly type: 'PADDING' | 'PING' }
  | {
      readonly type: 'ACK';
      readonly largest: number;
      readonly delay: number;
      readonly ranges: readonly (readonly [from: number, to: number])[];
    }
  | { readonly type: 'STREAM'; readonly id: number; readonly offset: number; readonly data: Buffer; readonly fin: boolean }
  | {
      readonly type: 'NEW_CONNECTION_ID';
      readonly sequence: number;
      readonly retirePriorTo: number;
      readonly id: Buffer;
      readonly token: Buffer;
    }
  | { readonly type: 'PATH_CHALLENGE' | 'PATH_RESPONSE'; readonly data: Buffer }
  | { readonly type: 'CONNECTION_CLOSE'; readonly application: boolean; readonly code: number; readonly reason: string }
  | { readonly type: 'DATAGRAM'; readonly data: Buffer }
  /** Frames of integers alone, in their order. */
  | { readonly type: IntegerFrame; readonly values: readonly number[] };

type IntegerFrame = (typeof INTEGERS)[number][0];

/** Type, name and number of integers. */
const INTEGERS = [
  ['RESET_STREAM', 0x04, 3],
  ['STOP_SENDING', 0x05, 2],
  ['MAX_DATA', 0x10, 1],
  ['MAX_STREAM_DATA', 0x11, 2],
  ['MAX_STREAMS', 0x12, 1],
  ['MAX_STREAMS_UNIDIRECTIONAL', 0x13, 1],
  ['DATA_BLOCKED', 0x14, 1],
  ['STREAM_DATA_BLOCKED', 0x15, 2],
  ['STREAMS_BLOCKED', 0x16, 1],
  ['STREAMS_BLOCKED_UNIDIRECTIONAL', 0x17, 1],
  ['RETIRE_CONNECTION_ID', 0x19, 1],
] as const;

const ID = 8;
const TOKEN = 16;
const CHALLENGE = 8;

/**
 * All frames but padding. @throws Refused for what RFC 9000 calls FRAME_ENCODING_ERROR, and for a packet without frames
 */
export function decodeFrames(text: Buffer): Frame[] {
  demand(text.length > 0, 'a packet without frames');
  const reader = new Reader(text);
  const frames: Frame[] = [];
  while (!reader.isAtEnd) frames.push(decodeFrame(reader));
  return frames.filter(({ type }) => type !== 'PADDING');
}

function decodeFrame(reader: Reader): Frame {
  const type = reader.integer();
  const ofIntegers = INTEGERS.find(([, number]) => number === type);
  if (ofIntegers) return { type: ofIntegers[0], values: Array.from({ length: ofIntegers[2] }, () => reader.integer()) };
  if (type >= 0x08 && type <= 0x0f) return stream(reader, type);
  switch (type) {
    case 0x00:
      return { type: 'PADDING' };
    case 0x01:
      return { type: 'PING' };
    case 0x02:
    case 0x03:
      return acknowledgement(reader, type === 0x03);
    case 0x18:
      return newConnectionId(reader);
    case 0x1a:
    case 0x1b:
      return { type: type === 0x1a ? 'PATH_CHALLENGE' : 'PATH_RESPONSE', data: reader.take(CHALLENGE) };
    case 0x1c:
    case 0x1d:
      return close(reader, type === 0x1d);
    case 0x30:
    case 0x31:
      return { type: 'DATAGRAM', data: type === 0x31 ? reader.take(reader.integer()) : reader.rest() };
    default:
      throw new Refused(`the frame type ${type}`);
  }
}

/** Bits of the type: 4 an offset, 2 a length, 1 the end. */
function stream(reader: Reader, type: number): Frame {
  const id = reader.integer();
  const offset = type & 4 ? reader.integer() : 0;
  const data = type & 2 ? reader.take(reader.integer()) : reader.rest();
  return { type: 'STREAM', id, offset, data, fin: (type & 1) === 1 };
}

function acknowledgement(reader: Reader, hasCounts: boolean): Frame {
  const largest = reader.integer();
  const delay = reader.integer();
  const more = reader.integer();
  const ranges: [number, number][] = [[largest - reader.integer(), largest]];
  for (let index = 0; index < more; index++) {
    const to = ranges.at(-1)![0] - reader.integer() - 2;
    ranges.push([to - reader.integer(), to]);
  }
  demand(
    ranges.every(([from]) => from >= 0),
    'an ACK range below 0',
  );
  if (hasCounts) for (let index = 0; index < 3; index++) reader.integer();
  return { type: 'ACK', largest, delay, ranges };
}

function newConnectionId(reader: Reader): Frame {
  const [sequence, retirePriorTo] = [reader.integer(), reader.integer()];
  demand(reader.take(1)[0] === ID, 'a connection id of another length');
  return { type: 'NEW_CONNECTION_ID', sequence, retirePriorTo, id: reader.take(ID), token: reader.take(TOKEN) };
}

function close(reader: Reader, application: boolean): Frame {
  const code = reader.integer();
  if (!application) reader.integer();
  return { type: 'CONNECTION_CLOSE', application, code, reason: reader.take(reader.integer()).toString('utf8') };
}

export class Reader {
  readonly #bytes: Buffer;
  #at = 0;

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
  }

  get isAtEnd(): boolean {
    return this.#at === this.#bytes.length;
  }

  /** RFC 9000 §16. */
  integer(): number {
    const first = this.take(1)[0]!;
    let value = first & 0x3f;
    for (const byte of this.take((1 << (first >> 6)) - 1)) value = value * 256 + byte;
    demand(Number.isSafeInteger(value), 'an integer above 2^53');
    return value;
  }

  take(length: number): Buffer {
    demand(this.#at + length <= this.#bytes.length, 'a frame that does not end');
    this.#at += length;
    return this.#bytes.subarray(this.#at - length, this.#at);
  }

  rest(): Buffer {
    return this.take(this.#bytes.length - this.#at);
  }
}
