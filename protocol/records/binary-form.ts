/**
 * The short form of a record for links and QR codes (PROTOCOL.md §13.2): `~` and base64url (RFC 4648 §5, no padding) of
 *
 *     version (1) · fields · CRC-16 (2)
 *
 * A field is a tag (1), a length (1) and that many bytes. A reader skips unknown tags, so that a newer writer can add
 * fields; a field that an older reader must not skip requires a new version. The CRC (CRC-16/CCITT-FALSE, big-endian,
 * over all bytes before it) detects truncation and typing errors; it protects against mistakes, not against an
 * attacker.
 */
import { base64urlnopad } from '@scure/base';
import { LocalError } from '../errors/index.ts';
import { orElse } from '../or-else.ts';

/** Prefix of a binary form. */
export const BINARY_MARK = '~';

const CRC_BYTES = 2;
const MAX_FIELD = 255;

/** A tag from 0 to 255 with 0 to 255 bytes. */
export type BinaryField = readonly [tag: number, value: Uint8Array];

/**
 * @param version 0 to 255
 * @throws LocalError INVALID_ARGUMENT for a field of more than 255 bytes
 */
export function encodeBinaryForm(version: number, fields: readonly BinaryField[]): string {
  const bytes = [version];
  for (const [tag, value] of fields) {
    if (value.length > MAX_FIELD) throw new LocalError('INVALID_ARGUMENT', `field ${tag} is longer than ${MAX_FIELD} bytes`);
    bytes.push(tag, value.length, ...value);
  }
  const crc = crc16(Uint8Array.from(bytes));
  bytes.push(crc >> 8, crc & 0xff);
  return BINARY_MARK + base64urlnopad.encode(Uint8Array.from(bytes));
}

/**
 * Returns the fields by tag.
 * @param text a binary form, with its mark
 * @param version the version that this reader knows
 * @param name of the record, for messages: "a pairing link"
 * @throws LocalError INVALID_ARGUMENT that says whether the text is damaged or of a newer version
 */
export function decodeBinaryForm(text: string, version: number, name: string): ReadonlyMap<number, Uint8Array> {
  const damaged = (): never => reject(name, 'it is cut or mistyped; copy the whole of it again');
  if (!text.startsWith(BINARY_MARK)) damaged();
  const bytes = orElse(() => base64urlnopad.decode(text.slice(BINARY_MARK.length)), undefined) ?? damaged();
  const end = bytes.length - CRC_BYTES;
  if (end < 1 || crc16(bytes.subarray(0, end)) !== (((bytes[end] as number) << 8) | (bytes[end + 1] as number))) damaged();
  if (bytes[0] !== version) reject(name, 'it is of a newer version than this svc knows; update svc');
  const fields = new Map<number, Uint8Array>();
  for (let at = 1; at < end; ) {
    const tag = bytes[at] as number;
    const start = at + 2;
    at = start + (bytes[at + 1] ?? 0);
    if (start > end || at > end || fields.has(tag)) damaged();
    fields.set(tag, bytes.subarray(start, at));
  }
  return fields;
}

/** CRC-16/CCITT-FALSE: polynomial 0x1021, initial value 0xffff, nothing reflected. */
export function crc16(bytes: Uint8Array): number {
  let crc = 0xffff;
  for (const byte of bytes) {
    crc ^= byte << 8;
    for (let bit = 0; bit < 8; bit++) crc = crc & 0x8000 ? ((crc << 1) ^ 0x1021) & 0xffff : crc << 1;
  }
  return crc;
}

function reject(name: string, problem: string): never {
  throw new LocalError('INVALID_ARGUMENT', `not ${name}: ${problem}`);
}
