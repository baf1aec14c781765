/** Hostile input for parsers: noise, and damaged valid input. */
import type { Random } from '../../testing/random.ts';

const INTERESTING = [
  0x00, 0x01, 0x17, 0x18, 0x19, 0x1a, 0x1b, 0x1f, 0x3f, 0x40, 0x5f, 0x7f, 0x80, 0x9f, 0xbf, 0xf6, 0xf9, 0xfb, 0xfe, 0xff,
];

/** A number from 0 up to but not including `limit`. */
export function below(random: Random, limit: number): number {
  return random.u32() % Math.max(1, limit);
}

export function pick<T>(random: Random, values: readonly T[]): T {
  return values[below(random, values.length)] as T;
}

export function chance(random: Random, probability: number): boolean {
  return random.fraction() < probability;
}

/** Sometimes noise, mostly one of the samples with one to four changes, seldom an unchanged one. */
export function hostile(random: Random, samples: readonly Uint8Array[]): Uint8Array {
  if (samples.length === 0 || chance(random, 0.1)) return random.bytes(below(random, pick(random, [4, 40, 400])));
  let bytes: Uint8Array = pick(random, samples).slice();
  for (let changes = below(random, 5); changes > 0; changes--) bytes = mutated(random, bytes, samples);
  return bytes;
}

/** One change. */
export function mutated(random: Random, bytes: Uint8Array, samples: readonly Uint8Array[] = [bytes]): Uint8Array {
  const at = below(random, bytes.length);
  switch (below(random, 8)) {
    case 0:
      return bytes.subarray(0, at);
    case 1:
      return joined(bytes.subarray(0, at), random.bytes(1 + below(random, 8)), bytes.subarray(at));
    case 2: {
      // repeats a piece, sometimes many times
      const piece = bytes.subarray(at, at + 1 + below(random, 16));
      return joined(bytes.subarray(0, at), ...new Array<Uint8Array>(chance(random, 0.1) ? 100 : 1).fill(piece), bytes.subarray(at));
    }
    case 3: {
      const other = pick(random, samples);
      return joined(bytes.subarray(0, at), other.subarray(below(random, other.length)));
    }
    case 4:
      return joined(bytes.subarray(0, at), bytes.subarray(at + 1 + below(random, 8)));
    case 5:
      return changed(bytes, at, (byte) => byte ^ (1 << below(random, 8)));
    case 6:
      return changed(bytes, at, () => pick(random, INTERESTING));
    default:
      return changed(bytes, at, (byte) => (byte + pick(random, [1, 255])) & 0xff);
  }
}

export function joined(...parts: readonly Uint8Array[]): Uint8Array {
  const whole = new Uint8Array(parts.reduce((length, part) => length + part.length, 0));
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}

function changed(bytes: Uint8Array, at: number, change: (byte: number) => number): Uint8Array {
  const copy = bytes.slice();
  if (at < copy.length) copy[at] = change(copy[at]!);
  return copy;
}
