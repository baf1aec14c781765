/**
 * CBOR for control messages. `decode` turns bytes into plain values (reader.ts); `encode` checks such a value and
 * writes it with definite lengths (writer.ts).
 *
 * Plain values are null, booleans, numbers, strings, Uint8Array, arrays and objects with text keys. Lengths and
 * integers are written in their shortest form, other numbers as doubles. Minus zero is written as 0.
 */
import { LocalError } from '../errors/index.ts';
import { MAX_DEPTH } from './reader.ts';
import { CborWriter, FALSE, MajorType, NULL, TRUE } from './writer.ts';

/** A value that `encode` takes; a map omits entries that are undefined. */
export type CborValue =
  | null
  | boolean
  | number
  | string
  | Uint8Array
  | readonly CborValue[]
  | { readonly [key: string]: CborValue | undefined };

/**
 * Encodes `value` as CBOR with definite lengths.
 * @throws LocalError INVALID_ARGUMENT for a value outside the subset, a lone surrogate, or more than 16 levels
 */
export function encode(value: CborValue): Uint8Array {
  const writer = new CborWriter();
  write(writer, value, 0);
  return writer.finish();
}

function write(writer: CborWriter, value: CborValue | undefined, depth: number): void {
  if (typeof value === 'boolean') writer.simple(value ? TRUE : FALSE);
  else if (typeof value === 'number') writeNumber(writer, value);
  else if (typeof value === 'string') writer.text(checkText(value));
  else if (value === null) writer.simple(NULL);
  else if (value instanceof Uint8Array) writer.bytes(value);
  else if (typeof value === 'object') writeContainer(writer, value, depth);
  else unsupported(`a value of type ${typeof value}`);
}

function writeNumber(writer: CborWriter, value: number): void {
  if (!Number.isSafeInteger(value)) writer.double(value);
  else if (value < 0) writer.head(MajorType.negative, -1 - value);
  else writer.head(MajorType.unsigned, value);
}

function writeContainer(writer: CborWriter, value: object, depth: number): void {
  if (depth >= MAX_DEPTH) unsupported(`more than ${MAX_DEPTH} levels`);
  if (Array.isArray(value)) {
    writer.head(MajorType.array, value.length);
    // Not forEach, which skips holes.
    for (const entry of value) write(writer, entry, depth + 1);
    return;
  }
  const prototype: unknown = Object.getPrototypeOf(value);
  if (prototype !== null && Object.getPrototypeOf(prototype) !== null) unsupported('an object with a class of its own');
  writeMap(writer, value as Record<string, CborValue | undefined>, depth);
}

/** Omits entries that are undefined. */
function writeMap(writer: CborWriter, map: Readonly<Record<string, CborValue | undefined>>, depth: number): void {
  const entries = Object.entries(map).filter(([, entry]) => entry !== undefined);
  writer.head(MajorType.map, entries.length);
  for (const [key, entry] of entries) {
    if (key === '__proto__') unsupported('the key __proto__');
    writer.text(checkText(key));
    write(writer, entry, depth + 1);
  }
}

function checkText(text: string): string {
  return /\p{Surrogate}/u.test(text) ? unsupported('text with a lone surrogate') : text;
}

function unsupported(what: string): never {
  throw new LocalError('INVALID_ARGUMENT', `CBOR: ${what} cannot be written`);
}
