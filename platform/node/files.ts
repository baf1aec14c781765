/**
 * State in files that survive a killed process: a file is replaced as a whole or not at all.
 *
 * Write a temporary file beside it, fsync, rename over it, fsync the directory. A crash leaves the old content or the
 * new one, and at worst a temporary file, which `prepareDirectory` removes at a later start. If two processes write the
 * same file the last one wins; `createFile` is for files that must not be replaced.
 */
import { randomBytes } from 'node:crypto';
import { link, mkdir, open, readdir, readFile, rename, rm, stat } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { LocalError } from '../../protocol/errors/index.ts';
import { jsonFault } from './json-place.ts';
import { readRegularFile, refuseForeign } from './own-file.ts';

const TEMPORARY = /^\..+\.[0-9a-f]{12}\.tmp$/;
/** ms after which a temporary file is abandoned: a younger one may belong to a process that is writing it. */
const STALE_AFTER = 60_000;
/** Bytes of a small file. */
const LARGEST = 16 << 20;

/**
 * Replaces a file; when the promise resolves the content is on the disk.
 * @param options.mode permissions, default 0o600: state holds secrets.
 * @throws LocalError FAILED with one line: no permission, no space, no such directory.
 */
export function replaceFile(path: string, content: string | Uint8Array, { mode = 0o600 }: { mode?: number } = {}): Promise<void> {
  return putInPlace(path, content, mode, rename);
}

/**
 * Creates a file that must not exist yet, such as a key: of two processes that try at once, one succeeds.
 * @param options.mode as replaceFile
 * @returns false when one exists already, which stays unchanged.
 * @throws LocalError as replaceFile
 */
export async function createFile(path: string, content: string | Uint8Array, { mode = 0o600 }: { mode?: number } = {}): Promise<boolean> {
  try {
    await putInPlace(path, content, mode, async (temporary) => {
      await link(temporary, path);
      await rm(temporary);
    });
    return true;
  } catch (error) {
    if (((error as Error).cause as NodeJS.ErrnoException | undefined)?.code === 'EEXIST') return false;
    throw error;
  }
}

/** Replaces a file with readable JSON. */
export function replaceJson(path: string, value: unknown, options: { mode?: number } = {}): Promise<void> {
  return replaceFile(path, `${JSON.stringify(value, null, 2)}\n`, options);
}

/** How a file is read. */
export interface ReadOptions {
  /** A person named the file and answers for it: it may belong to any user, and be a link or a pipe. */
  readonly given?: boolean;
}

/**
 * Returns the content of a small file in a directory of this program, undefined when there is none.
 * @throws LocalError FAILED when it cannot be read, is no regular file, or may be another user's, as may its directory
 */
export async function readFileIfPresent(path: string, { given = false }: ReadOptions = {}): Promise<Uint8Array | undefined> {
  try {
    if (given) return await readFile(path);
    const content = readRegularFile(path, LARGEST, refuseForeign);
    await refuseForeignPlace(dirname(path));
    return content;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error instanceof LocalError ? error : fileError('cannot read', path, error);
  }
}

/** @throws LocalError FAILED for a directory in which other users may place files */
async function refuseForeignPlace(directory: string): Promise<void> {
  try {
    refuseForeign(await stat(directory));
  } catch (error) {
    throw fileError('cannot use directory', directory, error);
  }
}

/**
 * Returns the value of a JSON file, undefined when there is none. @throws LocalError FAILED as `readFileIfPresent`,
 * PARSE with line and column of the first error.
 */
export async function readJson(path: string, options: ReadOptions = {}): Promise<unknown> {
  const bytes = await readFileIfPresent(path, options);
  if (bytes === undefined) return undefined;
  try {
    return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes));
  } catch (error) {
    throw new LocalError('PARSE', `${path}${jsonProblem(bytes)}: repair it, or move it away to start afresh`, { cause: error });
  }
}

function jsonProblem(bytes: Uint8Array): string {
  const fault = jsonFault(new TextDecoder().decode(bytes));
  return fault === null ? ' is not UTF-8' : ` line ${fault.line} column ${fault.column}: not valid JSON: ${fault.problem}`;
}

/**
 * Creates a directory and missing ones above it, for this user only; refuses an existing one of another user, and one
 * that every user may write to. Not mkdir's `recursive`: below /proc, where
 * nothing can be created, that never returns.
 * @throws LocalError FAILED
 */
export async function makeDirectory(path: string, { parents = true }: { parents?: boolean } = {}): Promise<void> {
  try {
    await mkdir(path, { mode: 0o700 });
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'EEXIST' && (await stat(path)).isDirectory()) return refuseForeignPlace(path);
    if (code !== 'ENOENT' || !parents || dirname(path) === path) throw fileError('cannot use directory', path, error);
    await makeDirectory(dirname(path));
    await makeDirectory(path, { parents: false });
  }
}

/** Creates a missing directory that only this user may enter, and removes what a crash left in it. */
export async function prepareDirectory(path: string): Promise<void> {
  await makeDirectory(path);
  try {
    for (const name of (await readdir(path)).filter((name) => TEMPORARY.test(name))) await removeIfStale(join(path, name));
  } catch (error) {
    throw fileError('cannot use directory', path, error);
  }
}

/** Entries that are not data of another program: `lost+found` of a file system, and hidden files. */
const IGNORED = /^(\..*|lost\+found)$/;

/** File names by which a program recognizes its own directory. */
export interface OwnFiles {
  /** Names that only this program uses: one suffices. */
  readonly sure: RegExp;
  /** Names that other programs use, too: they count only if nothing else is there. */
  readonly unsure?: RegExp;
}

/**
 * Refuses a directory that other programs use, before anything is written into it: one that is not empty and holds none
 * of our own files. A missing one passes.
 * @param whose `a base station`, for example
 * @throws LocalError INVALID_ARGUMENT, FAILED when it cannot be read
 */
export async function refuseForeignDirectory(path: string, whose: string, { sure, unsure }: OwnFiles): Promise<void> {
  let names: string[];
  try {
    names = (await readdir(path)).filter((name) => !IGNORED.test(name));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return;
    throw fileError('cannot use directory', path, error);
  }
  if (names.some((name) => sure.test(name)) || names.every((name) => unsure?.test(name))) return;
  throw new LocalError('INVALID_ARGUMENT', `${path} is not empty and holds no data of ${whose}: choose an empty or a new directory`);
}

/** Writes a temporary file beside `path`, puts it there with `put`, and makes both durable. */
async function putInPlace(
  path: string,
  content: string | Uint8Array,
  mode: number,
  put: (temporary: string, path: string) => Promise<void>,
): Promise<void> {
  const temporary = join(dirname(path), `.${basename(path)}.${randomBytes(6).toString('hex')}.tmp`);
  try {
    await writeDurably(temporary, content, mode);
    await put(temporary, path);
    await syncDirectory(dirname(path));
  } catch (error) {
    await rm(temporary, { force: true }).catch(() => {});
    throw fileError('cannot write', path, error);
  }
}

async function writeDurably(path: string, content: string | Uint8Array, mode: number): Promise<void> {
  const file = await open(path, 'wx', mode);
  try {
    await file.writeFile(content);
    await file.sync();
  } finally {
    await file.close();
  }
}

async function removeIfStale(path: string): Promise<void> {
  const found = await stat(path).catch(() => null);
  // A leftover does no harm: on a disk that accepts no writes it stays.
  if (found !== null && Date.now() - found.mtimeMs > STALE_AFTER) await rm(path, { force: true }).catch(() => {});
}

/** Makes the rename itself durable. Some file systems cannot sync a directory; they order renames themselves. */
export async function syncDirectory(path: string): Promise<void> {
  const directory = await open(path, 'r');
  try {
    await directory.sync();
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code;
    if (code !== 'EINVAL' && code !== 'ENOTSUP' && code !== 'EPERM') throw error;
  } finally {
    await directory.close();
  }
}

/**
 * Returns whether a file operation failed because the disk accepts no writes: it is full or read-only, or this user
 * lacks permission.
 */
export function takesNoWrites(error: unknown): boolean {
  const { code } = ((error as Error).cause ?? {}) as NodeJS.ErrnoException;
  return error instanceof LocalError && ['EROFS', 'ENOSPC', 'EDQUOT', 'EACCES', 'EPERM'].includes(code ?? '');
}

/** Describes a failed file operation in one line, LocalError FAILED. @param what `cannot read`, for example */
export function fileError(what: string, path: string, error: unknown): LocalError {
  const reasons: Record<string, string> = {
    EACCES: 'permission denied',
    EPERM: 'permission denied',
    // For writing, the file need not exist.
    ENOENT: what === 'cannot read' ? 'no such file or directory' : 'no such directory',
    ENOSPC: 'the disk is full: make room, and try again',
    EROFS: 'the file system is read-only',
    ENOTDIR: 'a part of the path is not a directory',
    EEXIST: 'a file of that name exists already',
    EISDIR: 'it is a directory',
    ELOOP: 'it is a link: put the file itself there',
    ENXIO: 'it is a socket or a device: remove it',
  };
  const { code = '', message } = error as NodeJS.ErrnoException;
  return new LocalError('FAILED', `${what} ${path}: ${reasons[code] ?? message}`, { cause: error });
}
