/** CoAP messages in the form of RFC 8323 §4 without type, message id and length (PROTOCOL.md §7). */
import { demand } from './crypto.ts';

const URI_PATH = 11;
const MARKER = 0xff;

export interface CoapMessage {
  /** As in RFC 7252: `0.02` for POST, `2.05`. */
  readonly code: string;
  readonly token: Buffer;
  readonly options: readonly { readonly number: number; readonly value: Buffer }[];
  readonly payload: Buffer;
}

/** @throws Refused */
export function decodeCoap(message: Uint8Array): CoapMessage {
  const bytes = Buffer.from(message);
  demand(bytes.length >= 2, 'a CoAP message of one byte');
  const tokenLength = bytes[0]!;
  demand(tokenLength <= 8 && bytes.length >= 2 + tokenLength, 'the first byte of a CoAP message');
  const code = `${bytes[1]! >> 5}.${String(bytes[1]! & 31).padStart(2, '0')}`;
  const options: { number: number; value: Buffer }[] = [];
  let at = 2 + tokenLength;
  let number = 0;
  while (at < bytes.length && bytes[at] !== MARKER) {
    const head = bytes[at++]!;
    const [delta, afterDelta] = extended(bytes, at, head >> 4);
    const [length, start] = extended(bytes, afterDelta, head & 15);
    number += delta;
    at = start + length;
    demand(at <= bytes.length, 'an option that does not end');
    options.push({ number, value: bytes.subarray(start, at) });
  }
  demand(at !== bytes.length - 1, 'a payload marker without payload');
  return { code, token: bytes.subarray(2, 2 + tokenLength), options, payload: bytes.subarray(at + 1) };
}

/** Uri-Path of a request, with a slash before each segment. */
export function pathOf({ options }: CoapMessage): string {
  return options.map(({ number, value }) => (number === URI_PATH ? `/${value}` : '')).join('');
}

/** A delta or a length, and where what follows begins (RFC 7252 §3.1). */
function extended(bytes: Buffer, at: number, nibble: number): [number, number] {
  demand(nibble < 15, 'an option nibble of 15');
  if (nibble < 13) return [nibble, at];
  demand(at + nibble - 12 <= bytes.length, 'an option that does not end');
  return nibble === 13 ? [bytes[at]! + 13, at + 1] : [bytes.readUInt16BE(at) + 269, at + 2];
}
