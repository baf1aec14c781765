/**
 * A datagram of a flow (PROTOCOL.md §12): the flow's number as a variable-length integer (RFC 9000 §16), then the
 * payload, which may be empty.
 *
 * The flow's number is its stream's id divided by four (RFC 9297 §2.1, Quarter Stream ID), so that both ends know it
 * without negotiation.
 */

export interface FlowDatagram {
  readonly flow: number;
  /** A view. */
  readonly payload: Uint8Array;
}

/** Largest values of 1, 2 and 4 bytes. Larger values take 8 bytes, of which a JavaScript number holds 53 bits. */
const MOST_1 = 0x3f;
const MOST_2 = 0x3fff;
const MOST_4 = 0x3fff_ffff;

/** Returns the flow number of a byte stream that the initiator opened; no other streams have flows. */
export function flowOf(streamId: number): number {
  return streamId / 4;
}

/** @param flow a whole number from 0 to 2^53 - 1 */
export function encodeFlowDatagram(flow: number, payload: Uint8Array): Uint8Array {
  const prefix = prefixLength(flow);
  const datagram = new Uint8Array(prefix + payload.length);
  const view = new DataView(datagram.buffer);
  if (prefix === 1) view.setUint8(0, flow);
  else if (prefix === 2) view.setUint16(0, 0x4000 | flow);
  else if (prefix === 4) view.setUint32(0, 0x8000_0000 + flow);
  else view.setBigUint64(0, 0xc000_0000_0000_0000n + BigInt(flow));
  datagram.set(payload, prefix);
  return datagram;
}

/**
 * Returns null for bytes that are not a datagram of a flow: the leading integer is incomplete or larger than any stream
 * has here.
 */
export function decodeFlowDatagram(datagram: Uint8Array): FlowDatagram | null {
  const first = datagram[0];
  if (first === undefined) return null;
  const prefix = 1 << (first >> 6);
  if (datagram.length < prefix) return null;
  let flow = first & MOST_1;
  for (let at = 1; at < prefix; at++) flow = flow * 256 + datagram[at]!;
  return flow > Number.MAX_SAFE_INTEGER ? null : { flow, payload: datagram.subarray(prefix) };
}

function prefixLength(flow: number): number {
  if (flow <= MOST_1) return 1;
  if (flow <= MOST_2) return 2;
  return flow <= MOST_4 ? 4 : 8;
}
