/** A file named by an option or argument. */
import { closeSync, openSync, readSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { fileError } from '../../platform/node/index.ts';
import { CommandError } from './errors.ts';

/** Returns its content. @throws CommandError that names the file: the system does not if it is a directory */
export async function readGivenFile(path: string): Promise<Uint8Array> {
  try {
    return await readFile(path);
  } catch (error) {
    throw new CommandError(fileError('cannot read', path, error).message);
  }
}

/**
 * Reads at most `max` bytes at once, even of an endless file.
 * @throws CommandError when it is longer, an error of the system when it cannot be read
 */
export function readSmallFile(path: string, max: number): Uint8Array {
  const content = new Uint8Array(max + 1);
  const file = openSync(path, 'r');
  try {
    let length = 0;
    for (let read = -1; read !== 0 && length <= max; length += read) read = readSync(file, content, length, content.length - length, null);
    if (length > max) throw new CommandError(`it is longer than ${max} bytes`);
    return content.subarray(0, length);
  } finally {
    closeSync(file);
  }
}
