/** The audit log's primitives on Node: Ed25519 (RFC 8032) and SHA-256. */
import { createHash, createPrivateKey, createPublicKey, generateKeyPairSync, type KeyObject, sign, verify } from 'node:crypto';
import { LocalError } from '../../protocol/errors/index.ts';
import { orElse } from '../../protocol/or-else.ts';
import type { AuditHash, AuditSigner, AuditVerifier } from './entry.ts';

/** Returns a fresh audit key as PKCS#8 PEM. */
export function createAuditKey(): string {
  return generateKeyPairSync('ed25519').privateKey.export({ format: 'pem', type: 'pkcs8' }).toString();
}

/** @param pem PKCS#8 PEM of an Ed25519 key @throws LocalError PARSE */
export function auditSigner(pem: string): AuditSigner {
  const key = readPrivateKey(pem);
  const { x = '' } = createPublicKey(key).export({ format: 'jwk' });
  return {
    publicKey: Buffer.from(x, 'base64url').toString('hex'),
    sign: (bytes) => sign(null, bytes, key).toString('hex'),
  };
}

export const auditHash: AuditHash = { hash: (bytes) => createHash('sha256').update(bytes).digest('hex') };

/** Returns a verifier that caches the key it used last. */
export function auditVerifier(): AuditVerifier {
  let [name, key]: [string, KeyObject | null] = ['', null];
  return {
    verify(publicKey, bytes, signature) {
      if (name !== publicKey) [name, key] = [publicKey, readPublicKey(publicKey)];
      return key !== null && verify(null, bytes, key, Buffer.from(signature, 'hex'));
    },
  };
}

function readPrivateKey(pem: string): KeyObject {
  try {
    const key = createPrivateKey(pem);
    if (key.asymmetricKeyType === 'ed25519') return key;
  } catch {
    // The error below is clearer than OpenSSL's message about a damaged key.
  }
  throw new LocalError('PARSE', 'it is not an Ed25519 private key in PKCS#8 PEM');
}

function readPublicKey(publicKey: string): KeyObject | null {
  if (!/^[0-9a-f]{64}$/.test(publicKey)) return null;
  const x = Buffer.from(publicKey, 'hex').toString('base64url');
  return orElse(() => createPublicKey({ key: { kty: 'OKP', crv: 'Ed25519', x }, format: 'jwk' }), null);
}
