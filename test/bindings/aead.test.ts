/**
 * The cipher's JavaScript interface: vectors, nonces as counters, calls without allocation, and errors for invalid
 * arguments.
 */
import { describe, expect, it } from 'vitest';
import { Core, LocalError } from '../../bindings/index.ts';
import { aeads } from '../core-as/aead/rfc8439.ts';
import { seededBytes } from '../support/crypto.ts';

const { aead } = Core.create();
const random = seededBytes(8439);
const [key, ad, plaintext] = [random(32), random(13), random(300)];

describe('vectors of RFC 8439', () => {
  it.each(aeads)('$name', ({ key, nonce, ad, plaintext, ciphertext, tag }) => {
    const sealed = Uint8Array.from([...ciphertext, ...tag]);
    expect(aead.seal(key, nonce, ad, plaintext)).toEqual(sealed);
    expect(aead.open(key, nonce, ad, sealed)).toEqual(plaintext);
  });
});

describe('a counter as nonce', () => {
  it.each([0, 1, 255, 2 ** 31, 2 ** 32 - 1, 2 ** 32, 2 ** 32 + 7, 2 ** 53 - 1])('%d is 4 zero bytes and a little-endian u64', (counter) => {
    const nonce = new Uint8Array(12);
    new DataView(nonce.buffer).setBigUint64(4, BigInt(counter), true);
    expect(aead.seal(key, counter, ad, plaintext)).toEqual(aead.seal(key, nonce, ad, plaintext));
  });

  it.each([-1, 0.5, 2 ** 53, Number.NaN, Number.POSITIVE_INFINITY])('refuses counter %d', (counter) => {
    expect(() => aead.seal(key, counter, ad, plaintext)).toThrow(LocalError);
  });
});

describe('without allocation', () => {
  it('seals and opens in place, and into a larger target', () => {
    const target = new Uint8Array(400);
    target.set(plaintext);
    expect(aead.sealInto(target, key, 1, ad, target.subarray(0, 300))).toBe(316);
    expect(target.subarray(0, 316)).toEqual(aead.seal(key, 1, ad, plaintext));
    expect(target.subarray(316)).toEqual(new Uint8Array(84));
    expect(aead.openInto(target, key, 1, ad, target.subarray(0, 316))).toBe(300);
    expect(target.subarray(0, 300)).toEqual(plaintext);
  });

  it('leaves the target unchanged when the tag is wrong', () => {
    const sealed = aead.seal(key, 1, ad, plaintext);
    const target = new Uint8Array(300).fill(7);
    expect(aead.openInto(target, key, 2, ad, sealed)).toBe(-1);
    expect(target).toEqual(new Uint8Array(300).fill(7));
    expect(aead.open(key, 2, ad, sealed)).toBeNull();
  });
});

it('takes empty messages and refuses input shorter than a tag', () => {
  const sealed = aead.seal(key, 3, new Uint8Array(), new Uint8Array());
  expect(sealed).toHaveLength(16);
  expect(aead.open(key, 3, new Uint8Array(), sealed)).toEqual(new Uint8Array());
  for (let length = 0; length < 16; length++) expect(aead.open(key, 3, ad, sealed.subarray(0, length))).toBeNull();
});

it('takes at most 16,384 bytes and 64 of additional data', () => {
  const [text, longAd] = [random(16_384), random(64)];
  expect(aead.open(key, 4, longAd, aead.seal(key, 4, longAd, text))).toEqual(text);
  expect(() => aead.seal(key, 4, ad, random(16_385))).toThrow(LocalError);
  expect(() => aead.open(key, 4, ad, random(16_401))).toThrow(LocalError);
  expect(() => aead.seal(key, 4, random(65), text)).toThrow(LocalError);
});

it('refuses keys, nonces and targets of the wrong length', () => {
  expect(() => aead.seal(random(31), 5, ad, plaintext)).toThrow(/the key must have 32 bytes, not 31/);
  expect(() => aead.seal(key, random(8), ad, plaintext)).toThrow(/the nonce must have 12 bytes, not 8/);
  expect(() => aead.sealInto(new Uint8Array(315), key, 5, ad, plaintext)).toThrow(/the target has 315 bytes, 316 are needed/);
});

it("leaves no key in the core's memory", () => {
  const core = Core.create();
  core.aead.open(key, 6, ad, core.aead.seal(key, 6, ad, plaintext));
  expect(Buffer.from(core.buffer.buffer).indexOf(key)).toBe(-1);
});
