/**
 * X25519 public keys: which encodings are accepted, their SubjectPublicKeyInfo (RFC 8410 §4), and its SHA-256, the
 * fingerprint (PROTOCOL.md §1). A fingerprint's full form of 64 hex digits authorizes; the short form of 32 is for
 * display only.
 */
import { hex } from '@scure/base';
import type { CryptoProvider } from '../crypto-provider.ts';
import { equalBytes } from './constant-time.ts';

/** Bytes of an X25519 key. */
export const KEY_LENGTH = 32;

/** DER before the 32 key bytes: SEQUENCE { SEQUENCE { OID 1.3.101.110 }, BIT STRING (0 unused bits) }. */
const SPKI_PREFIX = Uint8Array.of(0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x6e, 0x03, 0x21, 0x00);

/**
 * Returns true for the one canonical encoding of a field element: 32 bytes, top bit clear, below 2^255 − 19. RFC 7748
 * also accepts others; refusing them gives each key one fingerprint.
 */
export function isCanonicalPublicKey(key: Uint8Array): boolean {
  if (key.length !== KEY_LENGTH || key[31]! > 0x7f) return false;
  if (key[31] !== 0x7f) return true;
  for (let i = 30; i > 0; i--) if (key[i] !== 0xff) return true;
  return key[0]! < 0xed;
}

/** Returns the DER SubjectPublicKeyInfo of an X25519 public key, 44 bytes. */
export function spki(publicKey: Uint8Array): Uint8Array {
  const der = new Uint8Array(SPKI_PREFIX.length + KEY_LENGTH);
  der.set(SPKI_PREFIX);
  der.set(publicKey, SPKI_PREFIX.length);
  return der;
}

/** Bytes of a fingerprint. */
export const FINGERPRINT_LENGTH = 32;

const FULL = /^[0-9a-f]{64}$/;
const text = new TextEncoder();

/** Returns the full fingerprint of an X25519 public key: 64 lower-case hex digits. */
export function fingerprint(publicKey: Uint8Array, crypto: Pick<CryptoProvider, 'sha256'>): string {
  return hex.encode(crypto.sha256(spki(publicKey)));
}

/** Returns the first 16 bytes of a fingerprint, 32 hex digits: for display, never for authorization. */
export function shortFingerprint(full: string): string {
  return full.slice(0, 32);
}

/** Returns true for a full fingerprint in its one spelling. */
export function isFingerprint(candidate: string): boolean {
  return typeof candidate === 'string' && FULL.test(candidate);
}

/** Compares two full fingerprints in constant time; anything that is not a full fingerprint equals nothing. */
export function fingerprintsEqual(a: string, b: string): boolean {
  return isFingerprint(a) && isFingerprint(b) && equalBytes(text.encode(a), text.encode(b));
}
