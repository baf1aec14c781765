/** A file that an option or argument names. */
import { readFile } from 'node:fs/promises';
import { fileError } from '../../transport/node/index.ts';
import { CommandError } from './errors.ts';

/** Its content. @throws CommandError that names the file: the system does not where a directory is read */
export async function readGivenFile(path: string): Promise<Uint8Array> {
  try {
    return await readFile(path);
  } catch (error) {
    throw new CommandError(fileError('cannot read', path, error).message);
  }
}
