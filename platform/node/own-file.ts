/**
 * Files and directories that a program takes for its own: what another user could have put there is refused, and
 * nothing that is opened makes the program wait.
 */
import { closeSync, constants, fstatSync, openSync, readSync, type Stats } from 'node:fs';

const EVERYONE_MAY_WRITE = 0o002;

/**
 * Reads a regular file, as long as it is when it is opened. Neither a link nor a FIFO, socket or device is opened.
 * @param max bytes
 * @param check throws for a file that is not to be read
 * @throws an error of the system, or one whose message says what is wrong with the file
 */
export function readRegularFile(path: string, max: number, check: (found: Stats) => void): Buffer {
  const file = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  try {
    const found = fstatSync(file);
    // The words for a directory are those for this code.
    if (found.isDirectory()) throw Object.assign(new Error('a directory'), { code: 'EISDIR' });
    if (!found.isFile()) throw new Error('it is not a regular file: remove it');
    if (found.size > max) throw new Error(`it is longer than ${max} bytes: remove it`);
    check(found);
    // Not to the end: a file that grows, or one of /proc whose size is 0, may have none.
    const content = Buffer.alloc(found.size);
    let length = 0;
    for (let count = 1; count > 0 && length < content.length; length += count) count = readSync(file, content, { offset: length });
    return content.subarray(0, length);
  } finally {
    closeSync(file);
  }
}

/**
 * Refuses an entry of the file system in which another user than this one and root may write. On systems whose files
 * have no owner (Windows) everything passes.
 * @throws Error whose message says why, with the remedy
 */
export function refuseForeign({ uid, mode }: { readonly uid: number; readonly mode: number }): void {
  const own = process.getuid?.();
  if (own === undefined) return;
  if (uid !== own && uid !== 0) throw new Error(`it belongs to another user (${uid}): chown it to yours, or use another directory`);
  if ((mode & EVERYONE_MAY_WRITE) !== 0) throw new Error('every user may write to it: chmod o-w it, or use another directory');
}
