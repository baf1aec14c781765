/**
 * CoAP options: the table of known options with their formats (RFC 7252 §5.10, RFC 7641 §2, RFC 7959 §2.1 and §4, RFC
 * 7967 §2, RFC 9175 §3.2), and accessors.
 *
 * An odd number is critical: a receiver that does not know it must refuse the message (RFC 7252 §5.4.1). An option
 * whose length is outside its range, or that is repeated although it must not be, counts as unknown (§5.4.3, §5.4.5):
 * an elective one is ignored, a critical one refused.
 */

/** One option of a message; options of the same number keep their order. */
export interface CoapOption {
  readonly number: number;
  readonly value: Uint8Array;
}

/** The definition of an option in the standards. */
export interface OptionDefinition {
  readonly number: number;
  readonly format: 'empty' | 'opaque' | 'uint' | 'string';
  readonly repeatable: boolean;
  /** Length in bytes. */
  readonly min: number;
  readonly max: number;
}

/** Numbers of the known options. */
export const OptionNumber = {
  IF_MATCH: 1,
  URI_HOST: 3,
  ETAG: 4,
  IF_NONE_MATCH: 5,
  OBSERVE: 6,
  URI_PORT: 7,
  LOCATION_PATH: 8,
  URI_PATH: 11,
  CONTENT_FORMAT: 12,
  MAX_AGE: 14,
  URI_QUERY: 15,
  ACCEPT: 17,
  LOCATION_QUERY: 20,
  BLOCK2: 23,
  BLOCK1: 27,
  SIZE2: 28,
  PROXY_URI: 35,
  PROXY_SCHEME: 39,
  SIZE1: 60,
  NO_RESPONSE: 258,
  REQUEST_TAG: 292,
} as const;

/** The known options; any other is skipped when elective and refused when critical. */
export const optionTable: readonly OptionDefinition[] = [
  { number: 1, format: 'opaque', repeatable: true, min: 0, max: 8 },
  { number: 3, format: 'string', repeatable: false, min: 1, max: 255 },
  { number: 4, format: 'opaque', repeatable: true, min: 1, max: 8 },
  { number: 5, format: 'empty', repeatable: false, min: 0, max: 0 },
  { number: 6, format: 'uint', repeatable: false, min: 0, max: 3 },
  { number: 7, format: 'uint', repeatable: false, min: 0, max: 2 },
  { number: 8, format: 'string', repeatable: true, min: 0, max: 255 },
  { number: 11, format: 'string', repeatable: true, min: 0, max: 255 },
  { number: 12, format: 'uint', repeatable: false, min: 0, max: 2 },
  { number: 14, format: 'uint', repeatable: false, min: 0, max: 4 },
  { number: 15, format: 'string', repeatable: true, min: 0, max: 255 },
  { number: 17, format: 'uint', repeatable: false, min: 0, max: 2 },
  { number: 20, format: 'string', repeatable: true, min: 0, max: 255 },
  { number: 23, format: 'uint', repeatable: false, min: 0, max: 3 },
  { number: 27, format: 'uint', repeatable: false, min: 0, max: 3 },
  { number: 28, format: 'uint', repeatable: false, min: 0, max: 4 },
  { number: 35, format: 'string', repeatable: false, min: 1, max: 1034 },
  { number: 39, format: 'string', repeatable: false, min: 1, max: 255 },
  { number: 60, format: 'uint', repeatable: false, min: 0, max: 4 },
  { number: 258, format: 'uint', repeatable: false, min: 0, max: 1 },
  { number: 292, format: 'opaque', repeatable: true, min: 0, max: 8 },
];

const definitions: ReadonlyMap<number, OptionDefinition> = new Map(optionTable.map((definition) => [definition.number, definition]));

/**
 * The known and valid options of a message; `refused` is the first critical one that is invalid or not in `accepted`.
 */
export interface SortedOptions {
  readonly known: ReadonlyMap<number, readonly Uint8Array[]>;
  readonly refused: RefusedOption | undefined;
}

/** A critical option that counts as unrecognized. */
export interface RefusedOption {
  readonly number: number;
  /** `unsupported`: because of its number alone; otherwise because of this occurrence of an accepted option. */
  readonly problem: 'unsupported' | 'length' | 'repeated';
}

/** @param accepted numbers of the critical options that the caller handles */
export function sortOptions(options: readonly CoapOption[], accepted: ReadonlySet<number>): SortedOptions {
  const known = new Map<number, Uint8Array[]>();
  let refused: RefusedOption | undefined;
  for (const { number, value } of options) {
    const values = known.get(number) ?? [];
    const problem = isCritical(number) && !accepted.has(number) ? 'unsupported' : problemOf(number, value, values.length);
    if (problem === undefined) known.set(number, [...values, value]);
    else if (isCritical(number)) refused ??= { number, problem };
  }
  return { known, refused };
}

/** Returns why an option is refused, as a clause for an error text. */
export function refusalText({ number, problem }: RefusedOption): string {
  return `option ${number} ${problems[problem]}`;
}

/** Returns whether an option is critical: the odd numbers. */
export function isCritical(number: number): boolean {
  return (number & 1) === 1;
}

/** Returns the first value of an option as a number, undefined when it is absent. */
export function uintOption(options: SortedOptions, number: number): number | undefined {
  const value = options.known.get(number)?.[0];
  return value === undefined ? undefined : readUint(value);
}

/** Encodes an unsigned integer in its shortest form (RFC 7252 §3.2): 0 is the empty value. */
export function uintValue(value: number): Uint8Array {
  const bytes: number[] = [];
  for (let rest = value; rest > 0; rest = Math.floor(rest / 256)) bytes.unshift(rest % 256);
  return Uint8Array.from(bytes);
}

/** Returns an option with an unsigned integer of at most 32 bits. */
export function uintOptionOf(number: number, value: number): CoapOption {
  return { number, value: uintValue(value) };
}

/** Decodes an unsigned integer; leading zeros are allowed. */
export function readUint(value: Uint8Array): number {
  return value.reduce((sum, byte) => sum * 256 + byte, 0);
}

const problems: Readonly<Record<RefusedOption['problem'], string>> = {
  unsupported: 'is not supported',
  length: 'has a wrong length',
  repeated: 'is repeated',
};

/** @param before valid occurrences before this one */
function problemOf(number: number, value: Uint8Array, before: number): RefusedOption['problem'] | undefined {
  const definition = definitions.get(number);
  if (definition === undefined) return 'unsupported';
  if (value.length < definition.min || value.length > definition.max) return 'length';
  return before === 0 || definition.repeatable ? undefined : 'repeated';
}
