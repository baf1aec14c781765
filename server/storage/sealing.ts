/**
 * Secrets that must be readable again, sealed for the database: private keys of push credentials, signing secrets of
 * services.
 *
 * AES-256-GCM under `outbound.key` of the data directory (32 bytes in hex, 0600, created at first use). Each is bound
 * to its record, so that it cannot be moved to another. A copy of only the database, such as a backup, reveals none of
 * them; read access to the whole data directory reveals all.
 */

import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { createFile, readFileIfPresent } from '../../platform/node/index.ts';
import { check, nonEmptyText } from '../../protocol/arguments.ts';
import { LocalError } from '../../protocol/errors/index.ts';

const KEY_LENGTH = 32;
const NONCE_LENGTH = 12;
const TAG_LENGTH = 16;
const CIPHER = 'aes-256-gcm';

/** Seals and opens secrets under one key. */
export class Sealer {
  readonly #key: Uint8Array;

  /** @param key 32 bytes */
  constructor(key: Uint8Array) {
    if (key.length !== KEY_LENGTH) throw new LocalError('INVALID_ARGUMENT', `a sealing key has ${KEY_LENGTH} bytes`);
    this.#key = key;
  }

  /** @param record what the secret belongs to, e.g. `service se-…`; needed again to open it @returns base64url */
  seal(secret: string, record: string): string {
    const nonce = randomBytes(NONCE_LENGTH);
    const cipher = createCipheriv(CIPHER, this.#key, nonce).setAAD(Buffer.from(record, 'utf8'));
    return Buffer.concat([nonce, cipher.update(secret, 'utf8'), cipher.final(), cipher.getAuthTag()]).toString('base64url');
  }

  /** @throws LocalError INVALID_STATE when it was sealed under another key or for another record, or is damaged */
  open(sealed: string, record: string): string {
    const bytes = Buffer.from(sealed, 'base64url');
    const end = bytes.length - TAG_LENGTH;
    try {
      const decipher = createDecipheriv(CIPHER, this.#key, bytes.subarray(0, NONCE_LENGTH), { authTagLength: TAG_LENGTH });
      decipher.setAAD(Buffer.from(record, 'utf8')).setAuthTag(bytes.subarray(end));
      return Buffer.concat([decipher.update(bytes.subarray(NONCE_LENGTH, end)), decipher.final()]).toString('utf8');
    } catch {
      throw new LocalError(
        'INVALID_STATE',
        `the secret of ${record} cannot be opened: outbound.key has changed; remove it and add it again`,
      );
    }
  }
}

/** Returns the record name of a push credential's key. */
export function credentialRecord({ organizationId, projectId }: { organizationId: string; projectId: string }): string {
  return `push credential ${organizationId} ${projectId}`;
}

/** Returns the record name of a service's secret. */
export function serviceRecord({ serviceId }: { serviceId: string }): string {
  return `service ${serviceId}`;
}

/**
 * Opens the sealer of a data directory. If two processes create the key at once, one wins, and both use its key.
 * @throws LocalError FAILED when the file cannot be read or created, INVALID_STATE when it is damaged
 */
export async function openSealer(directory: string): Promise<Sealer> {
  check('the directory', directory, nonEmptyText);
  const file = join(directory, 'outbound.key');
  let content = await readFileIfPresent(file);
  if (content === undefined) {
    await createFile(file, `${randomBytes(KEY_LENGTH).toString('hex')}\n`);
    content = await readFileIfPresent(file);
  }
  const text = new TextDecoder().decode(content).trim();
  if (!/^[0-9a-f]{64}$/.test(text))
    throw new LocalError('INVALID_STATE', `${file} is damaged: restore it; without it push credentials and services are lost`);
  return new Sealer(new Uint8Array(Buffer.from(text, 'hex')));
}
