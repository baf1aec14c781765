/**
 * The keys that identify a base station across restarts, each a file of the data directory, created at the first start:
 *
 *   identity.pem   X25519 key, PKCS#8 PEM, 0600
 *   reset-secret   32 bytes in hex, 0600: a restarted station proves that it lost its state (PROTOCOL.md §2.5)
 */
import { join } from 'node:path';
import { readFileIfPresent, replaceFile } from '../../platform/node/index.ts';
import type { CryptoProvider, PrivateKey } from '../../protocol/crypto-provider.ts';
import { LocalError } from '../../protocol/errors/index.ts';
import { decodePrivateKey, encodePrivateKey } from '../../protocol/identity/index.ts';

/** Bytes of the reset secret. */
const RESET_SECRET_LENGTH = 32;

/** Keys of a base station. */
export interface StationKeys {
  readonly identity: PrivateKey;
  readonly resetSecret: Uint8Array;
}

/** Returns where a directory has them. */
export function keyFiles(directory: string): Readonly<Record<keyof StationKeys, string>> {
  return { identity: join(directory, 'identity.pem'), resetSecret: join(directory, 'reset-secret') };
}

/** Reads the keys; creates missing ones. @throws LocalError FAILED or INVALID_STATE when a file cannot be used */
export async function loadStationKeys(directory: string, crypto: CryptoProvider): Promise<StationKeys> {
  const files = keyFiles(directory);
  return { identity: await loadIdentity(files, crypto), resetSecret: await loadResetSecret(files.resetSecret, crypto) };
}

async function loadIdentity({ identity: file, resetSecret }: ReturnType<typeof keyFiles>, crypto: CryptoProvider): Promise<PrivateKey> {
  const pem = await readFileIfPresent(file);
  if (pem === undefined) {
    // Both are created at the first start: a single one means that the other was lost, and every device and client
    // knows the station by it.
    if ((await readFileIfPresent(resetSecret)) !== undefined)
      throw new LocalError(
        'INVALID_STATE',
        `${file} is missing, and devices and clients know the base station by that key: restore it from a backup, or remove ${resetSecret} to create a new key, which all of them must then be given`,
      );
    const key = crypto.generateKey();
    await replaceFile(file, encodePrivateKey(key.export()));
    return key;
  }
  try {
    return crypto.importKey(decodePrivateKey(new TextDecoder().decode(pem)));
  } catch (error) {
    throw new LocalError('INVALID_STATE', `${file}: ${(error as Error).message}: restore it from a backup`);
  }
}

async function loadResetSecret(file: string, crypto: CryptoProvider): Promise<Uint8Array> {
  const content = await readFileIfPresent(file);
  if (content === undefined) {
    const secret = crypto.randomBytes(RESET_SECRET_LENGTH);
    await replaceFile(file, `${Buffer.from(secret).toString('hex')}\n`);
    return secret;
  }
  const text = new TextDecoder().decode(content).trim();
  if (!/^[0-9a-f]{64}$/.test(text)) throw new LocalError('INVALID_STATE', `${file} is damaged: restore it, or remove it for a new one`);
  return new Uint8Array(Buffer.from(text, 'hex'));
}
