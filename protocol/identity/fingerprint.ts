/**
 * Fingerprints: SHA-256 of the DER SubjectPublicKeyInfo (PROTOCOL.md §1). The full form of 64 hex digits authorizes;
 * the short form of 32 is for display only.
 */
import { hex } from '@scure/base';
import type { CryptoProvider } from '../crypto-provider.ts';
import { equalBytes } from './constant-time.ts';
import { spki } from './public-key.ts';

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
