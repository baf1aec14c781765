/**
 * Poly1305 at the edges of its number format, compared with the formula of RFC 8439 §2.5 in BigInt.
 *
 * Random inputs practically never carry across a whole limb. Here the accumulator is steered: since (h + m)·r ≡ t has a
 * solution m for any t, blocks can be chosen that bring the accumulator to a wanted value, such as p - 1, all limbs
 * full, or a limb just below its carry.
 */
import { describe, expect, it } from 'vitest';
import { seededBytes } from '../../support/crypto.ts';
import { seeds } from '../../support/tiered.ts';
import { Cipher, hex } from './cipher.ts';

const P = (1n << 130n) - 5n;
const CLAMP = 0x0ffffffc0ffffffc0ffffffc0fffffffn;
const MAX_R = hex('ffffff0ffcffff0ffcffff0ffcffff0f');

const cipher = new Cipher();

/** Accumulators at an edge: of the modulus, of 2^128 … 2^130, and of each limb. */
const edges = [
  0n,
  1n,
  4n,
  5n,
  P - 1n,
  P - 2n,
  P - 5n,
  P - 6n,
  (1n << 128n) - 1n,
  1n << 128n,
  (1n << 129n) - 1n,
  1n << 129n,
  (1n << 32n) - 1n,
  (1n << 64n) - 1n,
  (1n << 96n) - 1n,
  (1n << 130n) - (1n << 96n) - 1n,
  (1n << 130n) - (1n << 64n) - 1n,
  (1n << 130n) - (1n << 32n) - 1n,
  P - (1n << 32n),
  0x3_ffffffff_00000000_ffffffff_00000000n,
  0x3_00000000_ffffffff_00000000_ffffffffn,
];

const keys = [
  { name: 'the largest clamped r', r: MAX_R },
  { name: 'r = 1', r: hex(`01${'00'.repeat(15)}`) },
  { name: 'only the lowest limb of r', r: hex(`ffffff0f${'00'.repeat(12)}`) },
  { name: 'only the highest limb of r', r: hex(`${'00'.repeat(12)}fcffff0f`) },
  { name: 'a random r', r: seededBytes(7)(16) },
];

describe.each(keys)('with $name', ({ r }) => {
  it('blocks of ones, 1 to 200 of them', () => {
    for (let count = 1; count <= 200; count++) agree(key(r, 'ff'.repeat(16)), new Uint8Array(16 * count).fill(0xff));
  });

  it('an accumulator at every edge, alone and followed by blocks of ones', () => {
    for (const seed of seeds(1, 10)) {
      const random = seededBytes(seed);
      for (const edge of edges) {
        const message = steered(r, random, [edge]);
        agree(key(r, '00'.repeat(16)), message);
        agree(key(r, 'ff'.repeat(16)), message);
        agree(key(r, 'ff'.repeat(16)), joined(message, new Uint8Array(16 * 20).fill(0xff)));
      }
    }
  });

  it('accumulators that jump from edge to edge', () => {
    for (const seed of seeds(1, 10)) agree(key(r, 'ff'.repeat(16)), steered(r, seededBytes(seed), edges));
  });
});

it('the bounds of the carries hold in exact arithmetic for the largest possible limbs', () => {
  const [r0, r1, r2, r3] = [0x0fffffffn, 0x0ffffffcn, 0x0ffffffcn, 0x0ffffffcn];
  const [s1, s2, s3] = [r1 + (r1 >> 2n), r2 + (r2 >> 2n), r3 + (r3 >> 2n)];
  const limb = 0xffffffffn;
  let [h0, h1, h2, h3] = [0n, 0n, 0n, 0n];
  let largest = 0n;
  // Each round lets every limb be as large as a mask allows, and adds the largest possible carry back to h0: beyond the
  // true worst case.
  for (let round = 0; round < 100; round++) {
    [h0, h1, h2, h3] = [h0 + limb, h1 + limb, h2 + limb, h3 + limb + (1n << 32n)];
    const d0 = h0 * r0 + h1 * s3 + h2 * s2 + h3 * s1;
    const d1 = h0 * r1 + h1 * r0 + h2 * s3 + h3 * s2 + (d0 >> 32n);
    const d2 = h0 * r2 + h1 * r1 + h2 * r0 + h3 * s3 + (d1 >> 32n);
    const d3 = h0 * r3 + h1 * r2 + h2 * r1 + h3 * r0 + (d2 >> 32n);
    for (const sum of [d0, d1, d2, d3]) largest = sum > largest ? sum : largest;
    [h0, h1, h2, h3] = [limb + (d3 >> 34n) * 5n, limb, limb, 0x3ffffffffn];
  }
  expect(largest).toBeLessThan(1n << 64n);
  expect(Number(largest) / 2 ** 64).toBeCloseTo(0.97, 2);
});

/**
 * A message whose blocks bring the accumulator to each of `targets` in turn, with a random block before each where
 * needed.
 */
function steered(r: Uint8Array, random: (length: number) => Uint8Array, targets: readonly bigint[]): Uint8Array {
  const multiplier = number(r) & CLAMP;
  const inverse = power(multiplier, P - 2n);
  const blocks: Uint8Array[] = [];
  let accumulator = 0n;
  for (const target of targets) {
    for (let attempt = 0; attempt < 200; attempt++) {
      const block = (((target * inverse - accumulator) % P) + P) % P;
      if (block >> 128n === 1n) {
        blocks.push(bytes(block & ((1n << 128n) - 1n)));
        accumulator = target;
        break;
      }
      const filler = random(16);
      blocks.push(filler);
      accumulator = ((accumulator + number(filler) + (1n << 128n)) * multiplier) % P;
    }
  }
  return joined(...blocks);
}

function agree(oneTimeKey: Uint8Array, message: Uint8Array): void {
  const expected = Buffer.from(reference(oneTimeKey, message)).toString('hex');
  const what = `${message.length / 16} blocks ${Buffer.from(message).toString('hex')}`;
  expect(Buffer.from(cipher.poly1305(oneTimeKey, message)).toString('hex'), what).toBe(expected);
  expect(Buffer.from(cipher.poly1305Woven(4, oneTimeKey, message)).toString('hex'), `${what}, among four`).toBe(expected);
  expect(Buffer.from(cipher.poly1305Woven(8, oneTimeKey, message)).toString('hex'), `${what}, among eight`).toBe(expected);
}

/** RFC 8439 §2.5.1, word by word, for whole blocks. */
function reference(oneTimeKey: Uint8Array, message: Uint8Array): Uint8Array {
  const r = number(oneTimeKey.subarray(0, 16)) & CLAMP;
  let accumulator = 0n;
  for (let at = 0; at < message.length; at += 16) {
    accumulator = ((accumulator + number(message.subarray(at, at + 16)) + (1n << 128n)) * r) % P;
  }
  return bytes((accumulator + number(oneTimeKey.subarray(16))) & ((1n << 128n) - 1n));
}

function key(r: Uint8Array, s: string): Uint8Array {
  return joined(r, hex(s));
}

function joined(...parts: Uint8Array[]): Uint8Array {
  return Uint8Array.from(Buffer.concat(parts));
}

function number(littleEndian: Uint8Array): bigint {
  return BigInt(`0x${Buffer.from(littleEndian).reverse().toString('hex')}`);
}

function bytes(value: bigint): Uint8Array {
  return Uint8Array.from(Buffer.from(value.toString(16).padStart(32, '0'), 'hex').reverse());
}

function power(base: bigint, exponent: bigint): bigint {
  let result = 1n;
  for (let square = base % P, rest = exponent; rest > 0n; rest >>= 1n, square = (square * square) % P) {
    if (rest & 1n) result = (result * square) % P;
  }
  return result;
}
