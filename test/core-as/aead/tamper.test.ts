/** A changed message leaves only `false` and zeros behind; no message leaves anything in static memory. */
import { describe, expect, it } from 'vitest';
import { seededBytes } from '../../support/crypto.ts';
import { Cipher } from './cipher.ts';

const cipher = new Cipher();
const fresh = cipher.statics();

// Shorter than a block, one group of four, the switch to eight, and several groups with a short tail.
const lengths = [0, 1, 16, 63, 64, 192, 193, 448, 700, 1200, 1453];

describe.each(lengths)('a message of %i bytes', (length) => {
  const random = seededBytes(length + 1);
  const [key, nonce, ad, plaintext] = [random(32), random(12), random(13), random(length)];
  const sealed = cipher.seal(key, nonce, ad, plaintext);

  it('opens unchanged', () => {
    expect(cipher.open(key, nonce, ad, sealed)).toEqual({ holds: true, text: plaintext });
  });

  it('is refused and zeroed when any bit of the tag is flipped', () => {
    for (let bit = 0; bit < 128; bit++) refused(key, nonce, ad, flipped(sealed, 8 * length + bit), `bit ${bit} of the tag`);
  });

  it('is refused and zeroed when a bit of the ciphertext is flipped', () => {
    // Every bit of a byte and every byte of a block has its turn.
    for (let bit = 0; bit < 8 * length; bit += 7) refused(key, nonce, ad, flipped(sealed, bit), `bit ${bit} of the ciphertext`);
  });

  it('is refused and zeroed when key, nonce or additional data differ', () => {
    for (let bit = 0; bit < 256; bit++) refused(flipped(key, bit), nonce, ad, sealed, `bit ${bit} of the key`);
    for (let bit = 0; bit < 96; bit++) refused(key, flipped(nonce, bit), ad, sealed, `bit ${bit} of the nonce`);
    for (let bit = 0; bit < 104; bit++) refused(key, nonce, flipped(ad, bit), sealed, `bit ${bit} of the additional data`);
    refused(key, nonce, ad.subarray(1), sealed, 'additional data one byte shorter');
    refused(key, nonce, Uint8Array.from([...ad, 0]), sealed, 'additional data with an extra zero');
  });

  it('leaves no secret in static memory', () => {
    cipher.seal(key, nonce, ad, plaintext);
    expect(differences(cipher.statics())).toEqual([]);
    cipher.open(key, nonce, ad, sealed);
    expect(differences(cipher.statics())).toEqual([]);
    cipher.open(key, nonce, ad, flipped(sealed, 8 * length));
    expect(differences(cipher.statics())).toEqual([]);
  });
});

it('refuses a message that was truncated or extended by zeros, though the padding looks the same', () => {
  const random = seededBytes(99);
  const [key, nonce, ad, plaintext] = [random(32), random(12), random(13), random(100)];
  const sealed = cipher.seal(key, nonce, ad, plaintext);
  const [ciphertext, tag] = [sealed.subarray(0, 100), sealed.subarray(100)];
  for (const changed of [[...ciphertext, 0, ...tag], [...ciphertext.subarray(0, 99), ...tag], [...tag]]) {
    refused(key, nonce, ad, Uint8Array.from(changed), `${changed.length} bytes`);
  }
});

function refused(key: Uint8Array, nonce: Uint8Array, ad: Uint8Array, sealed: Uint8Array, what: string): void {
  const { holds, text } = cipher.open(key, nonce, ad, sealed);
  const clean = text.every((byte) => byte === 0);
  expect({ holds, clean }, what).toEqual({ holds: false, clean: true });
}

function flipped(bytes: Uint8Array, bit: number): Uint8Array {
  const copy = Uint8Array.from(bytes);
  copy[bit >> 3] = (copy[bit >> 3] as number) ^ (1 << (bit & 7));
  return copy;
}

/** Addresses below the end of static memory whose bytes differ from those before the first call. */
function differences(statics: Uint8Array): number[] {
  return Array.from(statics.keys()).filter((address) => statics[address] !== fresh[address]);
}
