/** The cipher compared with `node:crypto` (OpenSSL) and @noble/ciphers, on random inputs of every length. */
import { createCipheriv } from 'node:crypto';
import { chacha20poly1305 } from '@noble/ciphers/chacha.js';
import { describe, expect, it } from 'vitest';
import { seededBytes } from '../../support/crypto.ts';
import { seeds } from '../../support/tiered.ts';
import { Cipher } from './cipher.ts';

const cipher = new Cipher();

type Seal = (key: Uint8Array, nonce: Uint8Array, ad: Uint8Array, plaintext: Uint8Array) => Uint8Array;

const openssl: Seal = (key, nonce, ad, plaintext) => {
  const native = createCipheriv('chacha20-poly1305', key, nonce, { authTagLength: 16 });
  native.setAAD(ad, { plaintextLength: plaintext.length });
  const ciphertext = [native.update(plaintext), native.final()];
  return Uint8Array.from(Buffer.concat([...ciphertext, native.getAuthTag()]));
};

const noble: Seal = (key, nonce, ad, plaintext) => chacha20poly1305(key, nonce, ad).encrypt(plaintext);

describe.each([
  { name: 'node:crypto', peer: openssl },
  { name: '@noble/ciphers', peer: noble },
])('like $name', ({ peer }) => {
  /** `step`: from one length above 1024 to the next. */
  const atTextLengths = (step: number) => (seed: number) => {
    const random = seededBytes(seed);
    for (let length = 0; length <= 3000; length += length < 1024 ? 1 : step) {
      const ad = random(length % 33);
      compare(peer, random(32), random(12), ad, random(length), `${length} bytes, ${ad.length} of additional data`);
    }
  };

  it.each(seeds(1, 1))('at text lengths from 0 to 3000 (seed %i)', { tags: ['slow'] }, atTextLengths(7));
  it.each(seeds(2, 5))('at all text lengths from 0 to 3000 (seed %i)', { tags: ['slow'] }, atTextLengths(1));

  it('at every length of additional data from 0 to 64', { tags: ['slow'] }, () => {
    for (const seed of seeds(1, 2)) {
      const random = seededBytes(seed);
      const lengths = [0, 1, 15, 16, 64, 191, 192, 193, 447, 448, 449, 704, 960, 1200];
      for (let adLength = 0; adLength <= 64; adLength++) {
        for (const length of lengths) {
          compare(
            peer,
            random(32),
            random(12),
            random(adLength),
            random(length),
            `seed ${seed}, ${length} bytes, ${adLength} of additional data`,
          );
        }
      }
    }
  });

  it('at lengths around a datagram and up to 66,000 bytes', () => {
    for (const seed of seeds(1, 3)) {
      const random = seededBytes(seed);
      for (const length of [4096, 8192, 16_384, 65_000, 65_535, 66_000]) {
        compare(peer, random(32), random(12), random(13), random(length), `seed ${seed}, ${length} bytes`);
      }
    }
  });
});

function compare(peer: Seal, key: Uint8Array, nonce: Uint8Array, ad: Uint8Array, plaintext: Uint8Array, what: string): void {
  const expected = peer(key, nonce, ad, plaintext);
  const sealed = cipher.seal(key, nonce, ad, plaintext);
  const untouched = cipher.behind(sealed.length).every((byte) => byte === 0xa5);
  const opened = cipher.open(key, nonce, ad, expected);
  // One comparison of buffers is a hundred times faster than `toEqual`, and there are thousands.
  const good = same(sealed, expected) && untouched && opened.holds && same(opened.text, plaintext);
  expect(good, what).toBe(true);
}

function same(a: Uint8Array, b: Uint8Array): boolean {
  return Buffer.compare(a, b) === 0;
}
