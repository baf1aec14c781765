/** Identities: X25519 keys, their PEM form and their fingerprints (PROTOCOL.md §1). */
export { areCertificates, certificateBlocks, checkCertificates, MAX_CERTIFICATES } from './certificates-pem.ts';
export { equalBytes, isAllZero } from './constant-time.ts';
export { checkPrivateKey, decodePrivateKey, encodePrivateKey } from './private-key-pem.ts';
export {
  FINGERPRINT_LENGTH,
  fingerprint,
  fingerprintsEqual,
  isCanonicalPublicKey,
  isFingerprint,
  KEY_LENGTH,
  shortFingerprint,
  spki,
} from './public-key.ts';
