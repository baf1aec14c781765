/**
 * The cryptography of PROTOCOL.md over Node's: X25519 (RFC 7748), SHA-256, HMAC, HKDF of Noise, ChaCha20-Poly1305 (RFC
 * 8439), masks, REKEY.
 *
 * Nothing in this folder imports the implementation that it decodes: `../imports.test.ts`.
 */
import { createCipheriv, createDecipheriv, createHash, createHmac, createPrivateKey, createPublicKey, diffieHellman } from 'node:crypto';

const TAG = 16;
const ZEROS = Buffer.alloc(32);
const PKCS8 = Buffer.from('302e020100300506032b656e04220420', 'hex');
/** Of RFC 8410, which is also what fingerprints are over (section 1). */
const SPKI = Buffer.from('302a300506032b656e032100', 'hex');
const ENCRYPTED = { authTagLength: TAG } as const;

/** What does not hold, or cannot be read. The decoder's state is what it was before. */
export class Refused extends Error {}

/** @throws Refused with the reason unless `condition` holds */
export function demand(condition: boolean, reason: string): asserts condition {
  if (!condition) throw new Refused(reason);
}

export function hex(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('hex');
}

export function join(...parts: readonly (Uint8Array | string)[]): Buffer {
  return Buffer.concat(parts.map((part) => (typeof part === 'string' ? Buffer.from(part) : part)));
}

export function equal(one: Uint8Array, other: Uint8Array): boolean {
  return Buffer.compare(one, other) === 0;
}

export function u32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(value);
  return bytes;
}

export function sha256(...parts: readonly (Uint8Array | string)[]): Buffer {
  return createHash('sha256')
    .update(join(...parts))
    .digest();
}

export function hmac(key: Uint8Array, ...parts: readonly (Uint8Array | string)[]): Buffer {
  return createHmac('sha256', key)
    .update(join(...parts))
    .digest();
}

/** HKDF with two outputs (Noise rev. 34 §4.3). */
export function hkdf(chainingKey: Uint8Array, input: Uint8Array | string): [Buffer, Buffer] {
  const temporary = hmac(chainingKey, input);
  const first = hmac(temporary, Uint8Array.of(1));
  return [first, hmac(temporary, first, Uint8Array.of(2))];
}

export function publicKeyOf(privateKey: Uint8Array): Buffer {
  return createPublicKey(keyObject(privateKey)).export({ format: 'der', type: 'spki' }).subarray(SPKI.length);
}

export function x25519(privateKey: Uint8Array, publicKey: Uint8Array): Buffer {
  try {
    // As JWK (RFC 8037), which Node reads faster than DER.
    const jwk = { kty: 'OKP', crv: 'X25519', x: Buffer.from(publicKey).toString('base64url') };
    return diffieHellman({ privateKey: keyObject(privateKey), publicKey: createPublicKey({ key: jwk, format: 'jwk' }) });
  } catch {
    throw new Refused('no Diffie-Hellman with that public key');
  }
}

/** 64 hex digits (section 1). */
export function fingerprint(publicKey: Uint8Array): string {
  return hex(sha256(SPKI, publicKey));
}

/** Ciphertext ‖ tag. The nonce is 4 zero bytes ‖ the number as 64 bits, little-endian. */
export function seal(key: Uint8Array, number: bigint, associated: Uint8Array, text: Uint8Array): Buffer {
  const cipher = createCipheriv('chacha20-poly1305', key, nonce(number), ENCRYPTED);
  cipher.setAAD(associated, { plaintextLength: text.length });
  return join(cipher.update(text), cipher.final(), cipher.getAuthTag());
}

/** The plaintext. @throws Refused when the tag does not hold */
export function open(key: Uint8Array, number: bigint, associated: Uint8Array, sealed: Uint8Array): Buffer {
  demand(sealed.length >= TAG, 'shorter than a tag');
  const decipher = createDecipheriv('chacha20-poly1305', key, nonce(number), ENCRYPTED);
  const length = sealed.length - TAG;
  decipher.setAAD(associated, { plaintextLength: length });
  decipher.setAuthTag(sealed.subarray(length));
  const text = decipher.update(sealed.subarray(0, length));
  try {
    decipher.final();
  } catch {
    throw new Refused('the tag does not hold');
  }
  return text;
}

/** Mask of packet numbers for an id (section 4): the start of ChaCha20 block 0 under nonce 4 zero bytes ‖ id. */
export function maskOf(maskKey: Uint8Array, id: Uint8Array): number {
  const counter = Buffer.alloc(4);
  return createCipheriv('chacha20', maskKey, join(counter, Buffer.alloc(4), id))
    .update(ZEROS)
    .readUInt32BE();
}

/** REKEY (Noise rev. 34 §4.2). */
export function rekey(key: Uint8Array): Buffer {
  return seal(key, 0xffff_ffff_ffff_ffffn, Buffer.alloc(0), ZEROS).subarray(0, 32);
}

function nonce(number: bigint): Buffer {
  const bytes = Buffer.alloc(12);
  bytes.writeBigUInt64LE(number, 4);
  return bytes;
}

function keyObject(privateKey: Uint8Array) {
  return createPrivateKey({ key: join(PKCS8, privateKey), format: 'der', type: 'pkcs8' });
}
