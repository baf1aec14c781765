/**
 * The data directory of a base station, put together from its parts:
 *
 *   identity.pem, reset-secret   the keys of the base station (`station-keys.ts`)
 *   outbound.key                 seals what the database keeps readable (`sealing.ts`)
 *   basestation.sqlite           everything else, also opened by `svc admin` (`sqlite.ts`)
 *   basestation.lock.<id>        keeps a second base station out (`platform/node/lock.ts`)
 *   station.json                 its latest start (`last-start.ts`)
 *   basestation.sock             where `svc admin` reads the status of the running base station (`status-socket.ts`)
 */
import { existsSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { makeDirectory, ownLock, prepareDirectory, refuseForeignDirectory } from '../../platform/node/index.ts';
import { check, nonEmptyText } from '../../protocol/arguments.ts';
import type { CryptoProvider } from '../../protocol/crypto-provider.ts';
import { LocalError } from '../../protocol/errors/index.ts';
import { openSealer, type Sealer } from './sealing.ts';
import { openSqliteStore } from './sqlite.ts';
import { keyFiles, loadStationKeys, type StationKeys } from './station-keys.ts';
import type { Store } from './store.ts';

/** Its files, including those of SQLite for the database. */
const OWN = { sure: /^(identity\.pem|reset-secret|outbound\.key|basestation\.(sqlite(-wal|-shm|-journal)?|lock\..+))$/ };

/** Contents of an opened data directory. */
export interface StationData extends StationKeys {
  readonly store: Store;
  readonly sealer: Sealer;
  /** Fires when another base station took the directory; the reason is the error that says so. */
  readonly lost: AbortSignal;
  /** Closes the store and lets another base station in. */
  close(): Promise<void>;
}

/**
 * Opens the directory for a base station; creates what is missing.
 * @throws LocalError IN_USE when another base station runs on it, INVALID_ARGUMENT when others use it, FAILED or
 *   INVALID_STATE when something in it cannot be used
 */
export async function openStationData(directory: string, crypto: CryptoProvider): Promise<StationData> {
  await refuseForeign(directory);
  await prepareDirectory(directory);
  const inUse = (by: string): LocalError =>
    new LocalError('IN_USE', `another base station runs on ${directory}, ${by}: stop it, or use another data directory`);
  const lock = await ownLock(join(directory, 'basestation.lock'), { inUse });
  try {
    // First: where it is of another version, nothing is added to the directory.
    const store = await openDatabase(directory);
    const close = async (): Promise<void> => {
      await store.close();
      await lock.release();
    };
    try {
      return { ...(await loadStationKeys(directory, crypto)), sealer: await openSealer(directory), store, lost: lock.lost, close };
    } catch (error) {
      await store.close();
      throw error;
    }
  } catch (error) {
    await lock.release();
    throw error;
  }
}

/**
 * Opens only the database, beside a running base station or before its first start.
 * @throws LocalError INVALID_ARGUMENT when others use the directory, FAILED or INVALID_STATE when it cannot be used
 */
export async function openStore(directory: string): Promise<Store> {
  await refuseForeign(directory);
  await makeDirectory(directory);
  return openDatabase(directory);
}

/** Returns whether `openStore` would find a database there. */
export function hasStore(directory: string): boolean {
  return existsSync(databaseFile(directory));
}

async function refuseForeign(directory: string): Promise<void> {
  check('the directory', directory, nonEmptyText);
  return refuseForeignDirectory(directory, 'a base station', OWN);
}

/**
 * The keys are created after the database. Where they are and it has no content, it was lost: an empty one in its place
 * would refuse every device and every client.
 */
function openDatabase(directory: string): Promise<Store> {
  const file = databaseFile(directory);
  const { identity, resetSecret } = keyFiles(directory);
  const isEmpty = (statSync(file, { throwIfNoEntry: false })?.size ?? 0) === 0;
  if (isEmpty && existsSync(identity) && existsSync(resetSecret))
    throw new LocalError(
      'INVALID_STATE',
      `the database ${file} is missing or empty, but ${identity} is there: restore it from a backup, or remove ${resetSecret} to begin with an empty database and the same key`,
    );
  return openSqliteStore(file);
}

function databaseFile(directory: string): string {
  return join(directory, 'basestation.sqlite');
}
