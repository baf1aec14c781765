/**
 * CBOR for control messages: `decode` reads the bytes as plain values itself (reader.ts); `encode` checks the value, then lets
 * cbor-x write definite lengths. The only importer of cbor-x: `#cbor-x` (package.json) is its build without `eval`, which runs in every
 * host, and in Node its ES modules: importing the CommonJS file costs a device 6 MB more.
 *
 * Plain values are null, booleans, numbers, strings, Uint8Array, arrays and objects with text keys. Lengths and integers are written
 * in their shortest form up to 32 bits, integers up to 2^53 in 9 bytes, other numbers as doubles. Minus zero is written as 0.
 */
import { Encoder } from '#cbor-x';
import { LocalError } from '../errors/index.ts';
import { type CborLimits, MAX_DEPTH, read } from './reader.ts';

/** Value that `encode` takes; entries that are undefined are left out of a map. */
export type CborValue =
  | null
  | boolean
  | number
  | string
  | Uint8Array
  | readonly CborValue[]
  | { readonly [key: string]: CborValue | undefined };

/** Declared here because the published types leave out the second argument. */
const encoder: { encode(value: unknown, mode: number): Uint8Array } = new Encoder({
  useRecords: false,
  variableMapSize: true,
  tagUint8Array: false,
} as ConstructorParameters<typeof Encoder>[0]);

/** cbor-x: begin at the start of its buffer again with the next value. The result is copied before that. */
const RESET_BUFFER_MODE = 1024;

/**
 * The one item that `bytes` holds, as plain values; byte strings are copies.
 * @throws RemoteError PARSE for anything but one well-formed item of the subset within the limits
 */
export function decode(bytes: Uint8Array, limits?: CborLimits): unknown {
  return read(bytes, limits);
}

/**
 * `value` as CBOR with definite lengths.
 * @throws LocalError INVALID_ARGUMENT for a value outside the subset, a lone surrogate, or more than 16 levels
 */
export function encode(value: CborValue): Uint8Array {
  const shared: Uint8Array = encoder.encode(writable(value, 0), RESET_BUFFER_MODE);
  const bytes = new Uint8Array(shared);
  shared.fill(0); // cbor-x keeps its buffer, and messages hold tokens
  return bytes;
}

/** The value as cbor-x writes it as we mean it; entries that are undefined left out. */
function writable(value: CborValue, depth: number): unknown {
  switch (typeof value) {
    case 'boolean':
      return value;
    case 'number':
      return Number.isSafeInteger(value) && Math.abs(value) > 0xffffffff ? BigInt(value) : value;
    case 'string':
      return checkText(value);
    case 'object':
      return value === null ? null : writableObject(value, depth);
    default:
      return unsupported(`a value of type ${typeof value}`);
  }
}

function writableObject(value: object, depth: number): unknown {
  // A subclass, such as Buffer, would get a tag.
  if (value instanceof Uint8Array) return new Uint8Array(value.buffer, value.byteOffset, value.byteLength);
  if (depth >= MAX_DEPTH) return unsupported(`more than ${MAX_DEPTH} levels`);
  if (Array.isArray(value)) return Array.from(value, (entry: CborValue) => writable(entry, depth + 1));
  const prototype: unknown = Object.getPrototypeOf(value);
  if (prototype !== null && Object.getPrototypeOf(prototype) !== null) return unsupported('an object with a class of its own');
  const result: Record<string, unknown> = {};
  for (const [key, entry] of Object.entries(value as Record<string, CborValue | undefined>)) {
    if (key === '__proto__') return unsupported('the key __proto__');
    if (entry !== undefined) result[checkText(key)] = writable(entry, depth + 1);
  }
  return result;
}

function checkText(text: string): string {
  return /\p{Surrogate}/u.test(text) ? unsupported('text with a lone surrogate') : text;
}

function unsupported(what: string): never {
  throw new LocalError('INVALID_ARGUMENT', `CBOR: ${what} cannot be written`);
}
