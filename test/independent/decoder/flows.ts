/** Datagrams of flows (PROTOCOL.md §12). */
import { demand } from './crypto.ts';
import { Reader } from './frames.ts';

/** The content of a DATAGRAM frame where both ends announced FlowParts. */
export type FlowContent =
  | { readonly flow: number; readonly number: 0; readonly payload: Buffer }
  | { readonly flow: number; readonly number: number; readonly index: number; readonly count: number; readonly payload: Buffer };

/** @throws Error for anything else */
export function decodeFlowContent(content: Uint8Array): FlowContent {
  const reader = new Reader(Buffer.from(content));
  const [flow, number] = [reader.integer(), reader.integer()];
  if (number === 0) return { flow, number, payload: reader.rest() };
  const [index, count] = reader.take(2) as unknown as [number, number];
  const payload = reader.rest();
  demand(count > 1 && count <= 64 && index < count && payload.length > 0, 'no part of a datagram');
  return { flow, number, index, count, payload };
}
