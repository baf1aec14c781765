/** Content of a file in pieces, its SHA-256, and its final name: the common part of both ends of a transfer. */
import { createHash, type Hash } from 'node:crypto';
import { constants, type FileHandle, link, lstat, open, rename, rm } from 'node:fs/promises';
import { CHUNK, FileTransferError } from './protocol.ts';

/**
 * Yields the bytes from `start` to `end`, independent of the handle's position.
 * @throws FileTransferError when the file is shorter
 */
export async function* piecesOf(file: FileHandle, start: number, end: number): AsyncGenerator<Uint8Array> {
  for (let at = start; at < end; ) {
    const buffer = new Uint8Array(Math.min(CHUNK, end - at));
    const { bytesRead } = await file.read(buffer, 0, buffer.length, at);
    if (bytesRead === 0) throw new FileTransferError('the file became shorter while it was read', 'FAILED');
    at += bytesRead;
    yield buffer.subarray(0, bytesRead);
  }
}

/**
 * Returns the hash of the first `length` bytes, to be continued.
 * @param check called for each piece; throws to stop
 * @throws as piecesOf
 */
export async function hashOf(file: FileHandle, length: number, check: () => void = () => {}): Promise<Hash> {
  const hash = createHash('sha256');
  for await (const piece of piecesOf(file, 0, length)) {
    check();
    hash.update(piece);
  }
  return hash;
}

/** Returns the digest so far, in hex; the hash can be continued. */
export function digestOf(hash: Hash): string {
  return hash.copy().digest('hex');
}

/** Flags of a part: every write appends, independent of reads. */
const PARTIAL = constants.O_RDWR | constants.O_CREAT | constants.O_APPEND | constants.O_NOFOLLOW;

/**
 * Opens the part of an earlier transfer, to continue it, or an empty file. It does not continue
 *
 * - a file with a second name: the process that received it was killed while it renamed it (`giveName`), and writing
 *   would change the whole file;
 * - a file of another user, who could read and change the content.
 * @throws system errors
 */
export async function openPart(path: string, mode: number): Promise<FileHandle> {
  const made = await makePart(path, mode);
  if (made !== null) return made;
  const found = await open(path, PARTIAL, mode);
  const { nlink, uid } = await found.stat();
  if (nlink <= 1 && (process.getuid === undefined || process.getuid() === uid)) return found;
  await found.close();
  await rm(path);
  return open(path, PARTIAL | constants.O_EXCL, mode);
}

/** Creates the part; null if it exists. */
async function makePart(path: string, mode: number): Promise<FileHandle | null> {
  try {
    return await open(path, PARTIAL | constants.O_EXCL, mode);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return null;
    throw error;
  }
}

/** Whether the name is taken, even by a dangling link. */
export async function isTaken(path: string): Promise<boolean> {
  try {
    await lstat(path);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return false;
    throw error;
  }
}

/** Errors of file systems without links. */
const NO_LINKS: readonly (string | undefined)[] = ['EPERM', 'ENOTSUP', 'EOPNOTSUPP', 'ENOSYS', 'EMLINK'];

/**
 * Renames a whole file to its final name.
 * @param replace false: an existing file stays
 * @throws FileTransferError EXISTS; system errors
 */
export async function giveName(partial: string, path: string, replace: boolean): Promise<void> {
  if (replace) return rename(partial, path);
  try {
    // Linking is one step: another process may create a file of that name now.
    await link(partial, path);
    await rm(partial);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code !== 'EEXIST' && !NO_LINKS.includes(code)) throw error;
    if (await isTaken(path)) throw new FileTransferError('a file of that name exists already', 'EXISTS');
    await rename(partial, path);
  }
}
