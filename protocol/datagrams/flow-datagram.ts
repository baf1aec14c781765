/**
 * A datagram of a flow (PROTOCOL.md §12), as the content of one DATAGRAM frame: the flow's number, and then
 *
 *   the payload                             where an end does not announce FlowParts
 *   0, the payload                          else, when it fits into one packet
 *   number, index, count, a part of it      else: the number of the datagram, from 1; index and count are a byte each
 *
 * Numbers are variable-length integers (RFC 9000 §16). The flow's number is its stream's id divided by four (RFC 9297
 * §2.1, Quarter Stream ID), so that both ends know it without negotiation.
 */

export interface FlowDatagram {
  readonly flow: number;
  /** May be empty; when decoded, a view. */
  readonly payload: Uint8Array;
}

/** One of several parts of a datagram, or, with `number` 0, a whole one. */
export interface FlowPart extends FlowDatagram {
  readonly number: number;
  readonly index: number;
  readonly count: number;
}

/** Largest values of 1, 2 and 4 bytes. Larger values take 8 bytes, of which a JavaScript number holds 53 bits. */
const MOST_1 = 0x3f;
const MOST_2 = 0x3fff;
const MOST_4 = 0x3fff_ffff;

/** Returns the flow number of a byte stream that the initiator opened; no other streams have flows. */
export function flowOf(streamId: number): number {
  return streamId / 4;
}

/** The form without parts. @param flow a whole number from 0 to 2^53 - 1 */
export function encodeFlowDatagram(flow: number, payload: Uint8Array): Uint8Array {
  return contentOf([flow], [], payload);
}

/** The form with parts. @param part its flow and number are whole numbers from 0 to 2^53 - 1 */
export function encodeFlowPart({ flow, number, index, count, payload }: FlowPart): Uint8Array {
  return contentOf([flow, number], number === 0 ? [] : [index, count], payload);
}

/**
 * Decodes the form without parts. Returns null for bytes that are not a datagram of a flow: the leading integer is
 * incomplete or larger than any stream has here.
 */
export function decodeFlowDatagram(content: Uint8Array): FlowDatagram | null {
  const at = { offset: 0 };
  const flow = readVarint(content, at);
  return flow === null ? null : { flow, payload: content.subarray(at.offset) };
}

/**
 * Decodes the form with parts. Returns null for bytes that are not a datagram of a flow: besides the above, an
 * incomplete head, fewer than two parts, an index that is none of them, or an empty part.
 * @param most parts of a datagram
 */
export function decodeFlowPart(content: Uint8Array, most: number): FlowPart | null {
  const at = { offset: 0 };
  const flow = readVarint(content, at);
  const number = flow === null ? null : readVarint(content, at);
  if (flow === null || number === null) return null;
  if (number === 0) return { flow, number, index: 0, count: 1, payload: content.subarray(at.offset) };
  const [index = 0, count = 0] = content.subarray(at.offset, at.offset + 2);
  const payload = content.subarray(at.offset + 2);
  const isPart = count >= 2 && count <= most && index < count && payload.length > 0;
  return isPart ? { flow, number, index, count, payload } : null;
}

/** Returns null when the bytes end before the number does, or it is larger than 2^53 - 1. */
function readVarint(bytes: Uint8Array, at: { offset: number }): number | null {
  const first = bytes[at.offset];
  if (first === undefined) return null;
  const end = at.offset + (1 << (first >> 6));
  if (bytes.length < end) return null;
  let value = first & MOST_1;
  for (at.offset++; at.offset < end; at.offset++) value = value * 256 + bytes[at.offset]!;
  return value > Number.MAX_SAFE_INTEGER ? null : value;
}

function contentOf(numbers: readonly number[], bytes: readonly number[], payload: Uint8Array): Uint8Array {
  const head = numbers.reduce((sum, number) => sum + varintLength(number), 0) + bytes.length;
  const content = new Uint8Array(head + payload.length);
  const view = new DataView(content.buffer);
  let at = 0;
  for (const number of numbers) at = writeVarint(view, at, number);
  content.set(bytes, at);
  content.set(payload, head);
  return content;
}

/** @returns the offset behind it */
function writeVarint(view: DataView, at: number, value: number): number {
  const length = varintLength(value);
  if (length === 1) view.setUint8(at, value);
  else if (length === 2) view.setUint16(at, 0x4000 | value);
  else if (length === 4) view.setUint32(at, 0x8000_0000 + value);
  else view.setBigUint64(at, 0xc000_0000_0000_0000n + BigInt(value));
  return at + length;
}

function varintLength(value: number): number {
  if (value <= MOST_1) return 1;
  if (value <= MOST_2) return 2;
  return value <= MOST_4 ? 4 : 8;
}
