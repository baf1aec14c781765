/**
 * Makes `toEqual` and `toStrictEqual` compare equal bytes at once; by default the test runner compares each byte
 * separately, a microsecond for each.
 */
import { expect } from 'vitest';

// Files of a worker share the testers as they share this module, so each is added once.
expect.addEqualityTesters([equalBytes]);

/** True for arrays of one kind with the same bytes. The runner compares and shows unequal ones. */
export function equalBytes(one: unknown, other: unknown): true | undefined {
  if (!(one instanceof Uint8Array && other instanceof Uint8Array)) return undefined;
  if (Object.getPrototypeOf(one) !== Object.getPrototypeOf(other) || one.length !== other.length) return undefined;
  return Buffer.compare(one, other) === 0 ? true : undefined;
}
