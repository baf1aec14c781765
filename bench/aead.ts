/**
 * ChaCha20-Poly1305 for one packet, as JavaScript calls it: sealing and opening 64, 1,200 and 16,384 bytes with 13 bytes of additional data,
 * a new nonce for each sealed message, the result in a buffer that is there already where the contender can do that.
 *
 * Ours goes through the bindings, so copying into the core's memory and out of it counts. The data plane itself is faster: packets are sealed
 * and opened where they lie.
 */
import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto';
import { ChaCha20Poly1305, newInstance } from '@chainsafe/as-chacha20poly1305';
import { chacha20poly1305 } from '@noble/ciphers/chacha.js';
import { Core } from '../bindings/index.ts';
import type { Report, Row } from './report.ts';
import { type Contender, operationsPerSecond } from './rounds.ts';

const SIZES = [64, 1200, 16_384];
const TAG = 16;
const ALGORITHM = 'chacha20-poly1305';

interface Message {
  readonly key: Uint8Array;
  readonly ad: Uint8Array;
  readonly plaintext: Uint8Array;
  /** Sealed under nonce 0. */
  readonly sealed: Uint8Array;
  readonly target: Uint8Array;
}

export function run(progress: (step: string) => void): Report {
  const rows = SIZES.flatMap((size) => [row('seal', size, progress), row('open', size, progress)]);
  const goals = ['seal-1200', 'open-1200'].flatMap((name) => [
    { case: name, peer: 'node:crypto', atLeast: 3.5 },
    { case: name, peer: '@chainsafe/as-chacha20poly1305', atLeast: 8 },
  ]);
  return { bench: 'aead', about: 'messages sealed or opened with ChaCha20-Poly1305 per second, called from JavaScript.', rows, goals };
}

function row(operation: 'seal' | 'open', size: number, progress: (step: string) => void): Row {
  progress(`${operation}-${size}`);
  const contenders = operation === 'seal' ? sealers(message(size)) : openers(message(size));
  const { ours, ...peers } = operationsPerSecond(contenders);
  if (!ours) throw new Error('our own figure is missing');
  return { case: `${operation}-${size}`, unit: 'ops/s', better: 'higher', ours, peers };
}

function message(size: number): Message {
  const [key, ad, plaintext] = [randomBytes(32), randomBytes(13), randomBytes(size)].map((bytes) => Uint8Array.from(bytes)) as [
    Uint8Array,
    Uint8Array,
    Uint8Array,
  ];
  const sealed = chacha20poly1305(key, new Uint8Array(12), ad).encrypt(plaintext);
  return { key, ad, plaintext, sealed, target: new Uint8Array(size + TAG) };
}

function sealers({ key, ad, plaintext, target }: Message): Contender[] {
  const { aead } = Core.create();
  const chainsafe = new ChaCha20Poly1305(newInstance());
  const nonce = new Uint8Array(12);
  const nonceWords = new DataView(nonce.buffer);
  let counter = 0;
  const next = () => nonceWords.setUint32(4, counter++, true);
  return [
    { name: 'ours', run: () => aead.sealInto(target, key, counter++, ad, plaintext) },
    {
      name: 'node:crypto',
      run: () => {
        next();
        const cipher = createCipheriv(ALGORITHM, key, nonce, { authTagLength: TAG });
        cipher.setAAD(ad, { plaintextLength: plaintext.length });
        cipher.update(plaintext);
        cipher.final();
        cipher.getAuthTag();
      },
    },
    {
      name: '@noble/ciphers',
      run: () => {
        next();
        chacha20poly1305(key, nonce, ad).encrypt(plaintext, target);
      },
    },
    {
      name: '@chainsafe/as-chacha20poly1305',
      run: () => {
        next();
        chainsafe.seal(key, nonce, plaintext, ad, target);
      },
    },
  ];
}

function openers({ key, ad, plaintext, sealed, target }: Message): Contender[] {
  const { aead } = Core.create();
  const chainsafe = new ChaCha20Poly1305(newInstance());
  const nonce = new Uint8Array(12);
  const opened = target.subarray(0, plaintext.length);
  const ciphertext = sealed.subarray(0, plaintext.length);
  const tag = sealed.subarray(plaintext.length);
  return [
    {
      name: 'ours',
      run: () => {
        if (aead.openInto(opened, key, 0, ad, sealed) < 0) throw new Error('the tag does not hold');
      },
    },
    {
      name: 'node:crypto',
      run: () => {
        const decipher = createDecipheriv(ALGORITHM, key, nonce, { authTagLength: TAG });
        decipher.setAAD(ad, { plaintextLength: plaintext.length });
        decipher.setAuthTag(tag);
        decipher.update(ciphertext);
        decipher.final();
      },
    },
    { name: '@noble/ciphers', run: () => chacha20poly1305(key, nonce, ad).decrypt(sealed, opened) },
    {
      name: '@chainsafe/as-chacha20poly1305',
      run: () => {
        if (!chainsafe.open(key, nonce, sealed, ad, opened)) throw new Error('the tag does not hold');
      },
    },
  ];
}
