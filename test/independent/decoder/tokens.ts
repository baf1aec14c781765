/** Ids and tokens that an end computes from its own secrets (PROTOCOL.md §2 and appendix A). */
import { hmac, join, u32 } from './crypto.ts';

const HALF = 4;
const TOKEN = 16;

/** The id of a word. */
export function connectionId(resetSecret: Uint8Array, word: Uint8Array): Buffer {
  return join(word, hmac(hmac(resetSecret, 'svc id'), word).subarray(0, HALF));
}

/** The route id of four random bytes. */
export function routeId(resetSecret: Uint8Array, random: Uint8Array): Buffer {
  return join(random, hmac(hmac(resetSecret, 'svc route id'), random).subarray(0, HALF));
}

/** Of a connection id or a route id. */
export function resetToken(resetSecret: Uint8Array, id: Uint8Array): Buffer {
  return hmac(resetSecret, id).subarray(0, TOKEN);
}

/** @param time of issue, s */
export function retryToken(secret: Uint8Array, time: number, source: Uint8Array, port: number, address: string): Buffer {
  const code = hmac(secret, u32(time), source, Buffer.of(port >> 8, port & 255), address);
  return join(u32(time), code.subarray(0, TOKEN));
}
