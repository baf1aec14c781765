/**
 * The cipher for callers outside the core: one message over a static transfer area, for the handshake and for tests.
 *
 * The caller writes key, additional data and text into the area, calls, and reads the text from the same address; the
 * tag follows it. The key is wiped when the call returns; the text stays until the next call.
 */
import { open, seal } from './index';
import { wipe } from './xor';

/** Capacity for additional data and for text, bytes. */
const AD_SIZE: i32 = 64;
const TEXT_SIZE: i32 = 16384;

const KEY: usize = memory.data(32, 16);
const NONCE: usize = memory.data(16, 16);
const AD: usize = memory.data(64, 16);
const TEXT: usize = memory.data(16400, 16);

/** Address of the 32 bytes of the key. */
export function aeadKey(): usize {
  return KEY;
}

/** Address and capacity of the additional data. */
export function aeadAd(): usize {
  return AD;
}

export function aeadAdSize(): i32 {
  return AD_SIZE;
}

/** Address and capacity of the text, which the tag follows. */
export function aeadText(): usize {
  return TEXT;
}

export function aeadTextSize(): i32 {
  return TEXT_SIZE;
}

/** Encrypts the text in place and writes the tag after it. The nonce comes as three little-endian words. */
export function aeadSeal(nonce0: u32, nonce1: u32, nonce2: u32, adLength: i32, length: i32): void {
  setNonce(nonce0, nonce1, nonce2);
  seal(KEY, NONCE, AD, adLength, TEXT, length, TEXT + length);
  wipe(KEY, 32);
}

/** Decrypts the text in place if the tag after it matches; else zeroes it and returns false. */
export function aeadOpen(nonce0: u32, nonce1: u32, nonce2: u32, adLength: i32, length: i32): bool {
  setNonce(nonce0, nonce1, nonce2);
  const holds = open(KEY, NONCE, AD, adLength, TEXT, length, TEXT + length);
  wipe(KEY, 32);
  return holds;
}

function setNonce(nonce0: u32, nonce1: u32, nonce2: u32): void {
  store<u32>(NONCE, nonce0);
  store<u32>(NONCE, nonce1, 4);
  store<u32>(NONCE, nonce2, 8);
}
