/**
 * The lock of a data directory: one base station at a time.
 *
 * It is an exclusive transaction on its own file, `basestation.lock`: the one lock of the operating system that Node
 * reaches through our packages. It belongs to the directory, not to the database in it: the system frees it when the
 * process dies, however it ends, so no file of a dead process blocks the next one.
 */
import { closeSync, openSync } from 'node:fs';
import { join } from 'node:path';
import Database from 'libsql';
import { LocalError } from '../../protocol/errors/index.ts';

/**
 * Locks the directory, which must exist.
 * @returns a function that unlocks it, to be called once
 * @throws LocalError IN_USE when another base station has it, FAILED when the file cannot be locked
 */
export function lockDirectory(directory: string): () => void {
  const file = join(directory, 'basestation.lock');
  createPrivate(file);
  try {
    const database = new Database(file);
    database.pragma('busy_timeout=0');
    database.exec('begin exclusive');
    return () => {
      database.exec('rollback');
      database.close();
    };
  } catch (error) {
    const { code } = error as { code?: string };
    if (code === 'SQLITE_FULL') throw new LocalError('FAILED', `cannot lock ${file}: the disk is full: make room, and try again`);
    if (code === 'SQLITE_BUSY') {
      throw new LocalError('IN_USE', `another base station runs on ${directory}: stop it, or use another data directory`);
    }
    throw new LocalError('FAILED', `cannot lock ${file}: no permission, or not a lock file`);
  }
}

/**
 * Creates the file, private: any process that may open it could lock the base station out. An existing file is not
 * opened: closing it would free a lock that this process has.
 */
function createPrivate(file: string): void {
  try {
    closeSync(openSync(file, 'wx', 0o600));
  } catch {
    // It exists, or cannot be created; locking reports the latter.
  }
}
