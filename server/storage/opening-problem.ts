/** Why a database cannot be opened: SQLite says what it could not do, the system says why. */
import { accessSync, constants } from 'node:fs';
import { dirname } from 'node:path';

/**
 * Returns the reason in words, with the remedy where one is known.
 * @param error of SQLite
 * @param access checks whether this process may write to a path, and throws the error of the system
 */
export function openingProblem(error: unknown, file: string, access = (path: string): void => accessSync(path, constants.W_OK)): string {
  if ((error as { code?: string }).code === 'SQLITE_NOTADB') return 'it is not a database';
  const text = error instanceof Error ? error.message : String(error);
  if (!/unable to open database file|readonly|: 14"\)$/.test(text)) return text;
  const directory = dirname(file);
  for (const path of [directory, file]) {
    const code = refusalOf(access, path);
    if (code === 'EROFS') return `the file system of ${directory} is read-only: make it writable, or choose another data directory`;
    if (code === 'EACCES') return `this user may not write to ${path}: run as its owner, or choose another data directory`;
  }
  // libsql reports some failures only by SQLite's result code, 14 = cannot open.
  return text.endsWith(': 14")') ? 'no such directory, or no permission' : text;
}

function refusalOf(access: (path: string) => void, path: string): string | undefined {
  try {
    access(path);
    return undefined;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code;
  }
}
