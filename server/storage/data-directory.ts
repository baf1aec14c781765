/**
 * The data directory of a base station: identity key, secrets, database, and the lock that keeps a second base station out.
 *
 *   identity.pem         X25519 key, PKCS#8 PEM, 0600
 *   reset-secret         32 bytes in hex, 0600: a restarted station proves with it that it lost its state (PROTOCOL.md §2, Reset)
 *   outbound.key         seals what the database keeps readable (`sealing.ts`), 0600
 *   basestation.sqlite   everything else, also opened by `svc admin`
 *   basestation.lock     held open by the running base station; the system frees it when the process dies, however it dies
 */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import Database from 'libsql';
import type { CryptoHost, PrivateKey } from '../../protocol/crypto-host.ts';
import { LocalError } from '../../protocol/errors/index.ts';
import { decodePrivateKey, encodePrivateKey } from '../../protocol/identity/index.ts';
import { makeDirectory, prepareDirectory, readFileIfPresent, replaceFile } from '../../transport/node/index.ts';
import { openSealer, type Sealer } from './sealing.ts';
import { openSqliteStore } from './sqlite.ts';
import type { Store } from './store.ts';

/** Bytes of the reset secret. */
const RESET_SECRET_LENGTH = 32;

/** What an opened data directory holds. */
export interface StationData {
  readonly identity: PrivateKey;
  readonly resetSecret: Uint8Array;
  readonly store: Store;
  readonly sealer: Sealer;
  /** Closes the store and lets another base station in. */
  close(): Promise<void>;
}

/**
 * Opens the directory for a base station; makes what is missing.
 * @throws LocalError IN_USE when another base station runs on it, FAILED or INVALID_STATE when something in it cannot be used
 */
export async function openStationData(directory: string, crypto: CryptoHost): Promise<StationData> {
  await prepareDirectory(directory);
  const unlock = lock(directory);
  try {
    const identity = await loadIdentity(join(directory, 'identity.pem'), crypto);
    const resetSecret = await loadResetSecret(join(directory, 'reset-secret'), crypto);
    const sealer = await openSealer(directory);
    const store = await openSqliteStore(databaseFile(directory));
    const close = async (): Promise<void> => {
      await store.close();
      unlock();
    };
    return { identity, resetSecret, sealer, store, close };
  } catch (error) {
    unlock();
    throw error;
  }
}

/** Opens only the database, beside a running base station or before its first start. */
export async function openStore(directory: string): Promise<Store> {
  await makeDirectory(directory);
  return openSqliteStore(databaseFile(directory));
}

/** Whether `openStore` would find a database there. */
export function hasStore(directory: string): boolean {
  return existsSync(databaseFile(directory));
}

function databaseFile(directory: string): string {
  return join(directory, 'basestation.sqlite');
}

/** An exclusive transaction on a file of its own: a lock of the operating system, without stale files after a kill. */
function lock(directory: string): () => void {
  const file = join(directory, 'basestation.lock');
  try {
    const database = new Database(file);
    database.pragma('busy_timeout=0');
    database.exec('begin exclusive');
    return () => {
      database.exec('rollback');
      database.close();
    };
  } catch (error) {
    if ((error as { code?: string }).code === 'SQLITE_BUSY') {
      throw new LocalError('IN_USE', `another base station runs on ${directory}: stop it, or use another data directory`);
    }
    throw new LocalError('FAILED', `cannot lock ${file}: no permission, or not a lock file`);
  }
}

async function loadIdentity(file: string, crypto: CryptoHost): Promise<PrivateKey> {
  const pem = await readFileIfPresent(file);
  if (pem === undefined) {
    const key = crypto.generateKey();
    await replaceFile(file, encodePrivateKey(key.export()));
    return key;
  }
  try {
    return crypto.importKey(decodePrivateKey(new TextDecoder().decode(pem)));
  } catch (error) {
    throw new LocalError('INVALID_STATE', `${file}: ${(error as Error).message}`);
  }
}

async function loadResetSecret(file: string, crypto: CryptoHost): Promise<Uint8Array> {
  const content = await readFileIfPresent(file);
  if (content === undefined) {
    const secret = crypto.randomBytes(RESET_SECRET_LENGTH);
    await replaceFile(file, `${Buffer.from(secret).toString('hex')}\n`);
    return secret;
  }
  const text = new TextDecoder().decode(content).trim();
  if (!/^[0-9a-f]{64}$/.test(text)) throw new LocalError('INVALID_STATE', `${file} is damaged: restore it, or remove it to make a new one`);
  return new Uint8Array(Buffer.from(text, 'hex'));
}
