/**
 * ChaCha20-Poly1305 for one packet, called from JavaScript: seals and opens 64, 1,200 and 16,384 bytes with 13 bytes of
 * additional data. Each sealed message has a new nonce. The result goes into an existing buffer where the contender can
 * do that.
 *
 * Ours goes through the bindings, so copying into and out of the core's memory counts. The data plane itself is faster:
 * it seals and opens packets in place.
 */
import { createCipheriv, createDecipheriv } from 'node:crypto';
import { type Message, message, Nonce, openers, sealers, TAG } from './aead-contenders.ts';
import type { Report, Row } from './report.ts';
import { type Contender, operationsPerSecond } from './rounds.ts';

const SIZES = [64, 1200, 16_384];
const ALGORITHM = 'chacha20-poly1305';

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
  const given = message(size);
  const [ourselves, ...others] = operation === 'seal' ? sealers(given) : openers(given);
  const native = operation === 'seal' ? nativeSealer(given) : nativeOpener(given);
  const { ours, ...peers } = operationsPerSecond([ourselves!, native, ...others]);
  if (!ours) throw new Error('our own figure is missing');
  return { case: `${operation}-${size}`, unit: 'ops/s', better: 'higher', ours, peers };
}

function nativeSealer({ key, ad, plaintext }: Message): Contender {
  const nonce = new Nonce();
  return {
    name: 'node:crypto',
    run: () => {
      const cipher = createCipheriv(ALGORITHM, key, nonce.next(), { authTagLength: TAG });
      cipher.setAAD(ad, { plaintextLength: plaintext.length });
      cipher.update(plaintext);
      cipher.final();
      cipher.getAuthTag();
    },
  };
}

function nativeOpener({ key, ad, plaintext, sealed }: Message): Contender {
  const nonce = new Uint8Array(12);
  const ciphertext = sealed.subarray(0, plaintext.length);
  const tag = sealed.subarray(plaintext.length);
  return {
    name: 'node:crypto',
    run: () => {
      const decipher = createDecipheriv(ALGORITHM, key, nonce, { authTagLength: TAG });
      decipher.setAAD(ad, { plaintextLength: plaintext.length });
      decipher.setAuthTag(tag);
      decipher.update(ciphertext);
      decipher.final();
    },
  };
}
