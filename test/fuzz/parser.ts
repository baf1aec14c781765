/**
 * A parser of bytes or text from outside receives damaged forms of valid input. It may return a value, return null, or
 * throw a RemoteError (or a LocalError with `raises: 'local'`, where the input comes from a person or a file). A value
 * that it accepted must survive encoding and decoding, where there is an encoder.
 */
import { isDeepStrictEqual } from 'node:util';
import { LocalError, RemoteError } from '../../protocol/errors/index.ts';
import { hostile } from './mutate.ts';
import type { Target } from './target.ts';

/** Inputs in one iteration. */
const INPUTS = 50;

interface Parser<T> {
  readonly name: string;
  /** Valid input. */
  readonly samples: readonly Uint8Array[];
  readonly parse: (bytes: Uint8Array) => T;
  /** Encodes to input that parses to the same value. */
  readonly encode?: (value: NonNullable<T>) => Uint8Array;
  readonly raises?: 'remote' | 'local';
}

export function parser<T>({ name, samples, parse, encode: encoder, raises = 'remote' }: Parser<T>): Target {
  return {
    name,
    iterate(random) {
      for (let i = 0; i < INPUTS; i++) {
        const input = hostile(random, samples);
        const copy = input.slice();
        try {
          const value = parse(input);
          if (value !== null && value !== undefined && encoder !== undefined) survives(value, encoder, parse);
        } catch (error) {
          if (error instanceof RemoteError || (raises === 'local' && error instanceof LocalError)) continue;
          throw new Error(`input ${hex(copy)}`, { cause: error });
        }
      }
    },
  };
}

/** The parser of what `encode` makes of these values and of others. */
export function codec<T, V extends NonNullable<T>>(
  name: string,
  parse: (bytes: Uint8Array) => T,
  encode: (value: V | NonNullable<T>) => Uint8Array,
  ...values: (V | NonNullable<T>)[]
): Target {
  return parser({ name, samples: values.map(encode), parse, encode });
}

function survives<T>(value: NonNullable<T>, encoder: (value: NonNullable<T>) => Uint8Array, parse: (bytes: Uint8Array) => T): void {
  let again: T;
  try {
    again = parse(encoder(value));
  } catch (error) {
    // a parser may accept what our encoder refuses
    if (error instanceof LocalError && error.code === 'INVALID_ARGUMENT') return;
    throw new Error('a parsed value does not survive encoding', { cause: error });
  }
  if (!isDeepStrictEqual(again, value)) throw new Error('a parsed value differs after encoding');
}

export function hex(input: Uint8Array): string {
  return Buffer.from(input).toString('hex');
}
