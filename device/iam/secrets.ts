/**
 * The cryptography of access control on a device: verifiers of passwords, tokens, and the seal over the password of
 * open pairing.
 *
 * The seal is ChaCha20-Poly1305 (RFC 8439) under a key that HKDF-SHA-256 (RFC 5869) derives from the device's private
 * key, with a random nonce: `v1.` and base64url of nonce ‖ ciphertext ‖ tag. An attacker with only the state file
 * cannot recover the password; one who also has the device's key can.
 */
import { createCipheriv, createDecipheriv, hkdfSync } from 'node:crypto';
import { nodeCrypto } from '../../platform/node/index.ts';
import type { CryptoProvider } from '../../protocol/crypto-provider.ts';
import { LocalError } from '../../protocol/errors/index.ts';
import { decodePrivateKey } from '../../protocol/identity/index.ts';
import { makeVerifier } from '../../protocol/password/kdf.ts';
import { createToken } from '../tokens.ts';
import type { IamSecrets } from './state.ts';

const VERSION = 'v1.';
const CIPHER = 'chacha20-poly1305';
const KEY_LENGTH = 32;
const NONCE_LENGTH = 12;
const TAG_LENGTH = 16;
const PURPOSE = 'svc iam seal v1';

/**
 * Returns the secrets of `Iam` for the device with this key. Another key cannot open what this one sealed.
 * @param privateKey PKCS#8 PEM, the one of `Device.setPrivateKey`; not kept
 * @throws LocalError INVALID_ARGUMENT
 */
export function createIamSecrets(privateKey: string, crypto: CryptoProvider = nodeCrypto): IamSecrets {
  const key = sealingKey(privateKey);
  return {
    async makeVerifier(password) {
      return makeVerifier(crypto, password);
    },
    async seal(text) {
      const nonce = crypto.randomBytes(NONCE_LENGTH);
      const cipher = createCipheriv(CIPHER, key, nonce, { authTagLength: TAG_LENGTH });
      const sealed = Buffer.concat([nonce, cipher.update(text, 'utf8'), cipher.final(), cipher.getAuthTag()]);
      return VERSION + sealed.toString('base64url');
    },
    async unseal(sealed) {
      const bytes = decodeSealed(sealed);
      const end = bytes.length - TAG_LENGTH;
      const decipher = createDecipheriv(CIPHER, key, bytes.subarray(0, NONCE_LENGTH), { authTagLength: TAG_LENGTH });
      decipher.setAuthTag(bytes.subarray(end));
      try {
        return Buffer.concat([decipher.update(bytes.subarray(NONCE_LENGTH, end)), decipher.final()]).toString('utf8');
      } catch {
        throw new LocalError(
          'INVALID_STATE',
          'a sealed password was sealed with another device key, or is damaged: restore the key of the device, or move the state away, which removes all users',
        );
      }
    },
    makeToken: () => createToken(crypto),
  };
}

function sealingKey(privateKey: string): Uint8Array {
  const raw = decodePrivateKey(privateKey);
  const key = new Uint8Array(hkdfSync('sha256', raw, new Uint8Array(0), PURPOSE, KEY_LENGTH));
  raw.fill(0);
  return key;
}

function decodeSealed(sealed: string): Buffer {
  const bytes = Buffer.from(sealed.slice(VERSION.length), 'base64url');
  const readable = sealed.startsWith(VERSION) && VERSION + bytes.toString('base64url') === sealed;
  if (!readable || bytes.length < NONCE_LENGTH + TAG_LENGTH)
    throw new LocalError('INVALID_ARGUMENT', 'a sealed password cannot be opened: set it again');
  return bytes;
}
