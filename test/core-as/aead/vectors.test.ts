/** The vectors of RFC 8439, for each key stream function and each piece of Poly1305 code that they fit. */
import { describe, expect, it } from 'vitest';
import { type ChachaWidth, Cipher } from './cipher.ts';
import { aeads, blocks, macs, oneTimeKeys, streams } from './rfc8439.ts';

const cipher = new Cipher();
const widths: readonly ChachaWidth[] = [1, 4, 8];

it('imports nothing', () => {
  expect(cipher.imports).toEqual([]);
});

describe.each(widths)('ChaCha20, %i blocks at once', (width) => {
  it.each(blocks)('block $name', ({ key, nonce, counter, stream }) => {
    expect(cipher.keyStream(width, key, nonce, counter, 64)).toEqual(stream);
  });

  it.each(streams)('stream $name', ({ key, nonce, counter, plaintext, ciphertext }) => {
    const stream = cipher.keyStream(width, key, nonce, counter, plaintext.length);
    expect(plaintext.map((byte, index) => byte ^ (stream[index] as number))).toEqual(ciphertext);
  });

  it.each(oneTimeKeys)('one-time key $name', ({ key, nonce, oneTimeKey }) => {
    expect(cipher.keyStream(width, key, nonce, 0, 32)).toEqual(oneTimeKey);
  });
});

describe('Poly1305', () => {
  it.each(macs)('$name', ({ key, message, tag }) => {
    expect(cipher.poly1305(key, message)).toEqual(tag);
  });

  const whole = macs.filter(({ message }) => message.length % 16 === 0);
  it.each(whole)('$name, interleaved with the rounds', ({ key, message, tag }) => {
    expect(cipher.poly1305Woven(4, key, message)).toEqual(tag);
    expect(cipher.poly1305Woven(8, key, message)).toEqual(tag);
  });
});

describe('AEAD', () => {
  it.each(aeads)('seals $name', ({ key, nonce, ad, plaintext, ciphertext, tag }) => {
    const sealed = cipher.seal(key, nonce, ad, plaintext);
    expect(sealed.subarray(0, -16)).toEqual(ciphertext);
    expect(sealed.subarray(-16)).toEqual(tag);
  });

  it.each(aeads)('opens $name', ({ key, nonce, ad, plaintext, ciphertext, tag }) => {
    expect(cipher.open(key, nonce, ad, Uint8Array.from([...ciphertext, ...tag]))).toEqual({ holds: true, text: plaintext });
  });
});
