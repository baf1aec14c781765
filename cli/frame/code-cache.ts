/**
 * Runs a bundle with V8's cached code of an earlier run: compiling takes a third of a short command's time, and Node 20
 * caches nothing.
 *
 * 1. The cache is a folder of the user. One file per bundle and command holds the code that the command ran; its name
 *    contains the digest of the bundle, and the version of Node.
 * 2. V8 trusts cached code. So folder and file must belong to this user, and no other user may write to them; else they
 *    are not read.
 * 3. V8 crashes on damaged code. So the file begins with the SHA-256 of its name and the code, and is synced before it
 *    gets its name. A run marks that it began with cached code, and removes the mark when it ends or has run for some
 *    time; where an ended process left its mark, the code is not used, and the next run saves its own.
 * 4. After a successful run without cached code, the code is cached. At most `KEPT` files: the oldest are removed
 *    first.
 *
 * A cache that cannot be read or written costs only time, so no failure is reported. NODE_DISABLE_COMPILE_CACHE=1 turns
 * it off, like Node's own.
 */
import { createHash } from 'node:crypto';
import {
  closeSync,
  existsSync,
  fsyncSync,
  lstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  type Stats,
  statSync,
  writeFileSync,
} from 'node:fs';
import { createRequire } from 'node:module';
import { basename, dirname, join } from 'node:path';
import { Script } from 'node:vm';
import { readRegularFile } from '../../platform/node/own-file.ts';
import { orElse } from '../../protocol/or-else.ts';

/** Files in the folder: enough for all commands of one version and one Node, and some more. Each has 0.2 to 2 MB. */
const KEPT = 24;
/** Bytes of one file. */
const MAX_SIZE = 16 << 20;
const OTHERS_MAY_WRITE = 0o022;
/** Bytes of SHA-256. */
const DIGEST = 32;
/** End of a mark's name, and ms that it stays: damaged code fails at the start, a service may be killed much later. */
const BEGAN = '.began';
const MARKED = 2_000;
/** Names of cache files, of unfinished ones, and of marks. */
const OURS = /^[a-z-]+-[\w-]+-v\d+\.\d+\.\d+[^/]*-[a-z0-9]+(?:\.\d+(?:\.began)?)?$/;

/** Folder and file name of a run's cached code. */
export interface CodeCache {
  readonly directory: string;
  readonly file: string;
}

/** The folder of the cache; undefined without one, where files have no owner, and where the user wants none. */
export function cacheDirectory(
  environment: NodeJS.ProcessEnv = process.env,
  filesHaveOwners = process.getuid !== undefined,
): string | undefined {
  const { NODE_DISABLE_COMPILE_CACHE: disabled, XDG_CACHE_HOME: cache, HOME: home } = environment;
  if (!filesHaveOwners || (disabled !== undefined && disabled !== '')) return undefined;
  if (cache?.startsWith('/')) return join(cache, 'svc');
  return home?.startsWith('/') ? join(home, '.cache', 'svc') : undefined;
}

/**
 * The entry of a bundle for one command.
 * @param digest of the bundle: V8 itself compares only its length, its own version and flags
 */
export function cacheFor(digest: string, command: string, directory: string): CodeCache {
  return { directory, file: join(directory, `${command}-${digest}-${process.version}-${process.arch}`) };
}

/** The code of an earlier run; undefined without one, and when it is damaged. */
export function readCode({ directory, file }: CodeCache): Buffer | undefined {
  try {
    if (!isOurs(lstatSync(directory)) || !isPlaceOurs(directory)) return undefined;
    const content = readRegularFile(file, MAX_SIZE, requireOurs);
    const code = content.subarray(DIGEST);
    return digestOf(file, code).equals(content.subarray(0, DIGEST)) ? code : undefined;
  } catch {
    return undefined;
  }
}

/** Caches the code for later runs. */
export function writeCode({ directory, file }: CodeCache, code: Buffer): void {
  const unfinished = `${file}.${process.pid}`;
  try {
    if (!isPlaceOurs(directory)) return;
    mkdirSync(dirname(directory), { recursive: true });
    mkdirSync(directory, { recursive: true, mode: 0o700 });
    const folder = lstatSync(directory);
    if (!folder.isDirectory() || !isOurs(folder)) return;
    writeDurably(unfinished, [digestOf(file, code), code]);
    renameSync(unfinished, file);
    removeOldest(directory);
  } catch {
    discard(unfinished);
  }
}

/**
 * Runs a bundle with cached code, and returns its exports. Caches the code when the process ends with exit code 0.
 * @param cache undefined: none
 */
export function runBundle(bundle: string, cache: CodeCache | undefined): unknown {
  const cachedData = cache === undefined ? undefined : codeForRun(cache);
  // Bundles are ASCII: a character is a byte, and nothing must be decoded.
  const script = new Script(readFileSync(bundle, 'latin1'), { filename: bundle, ...(cachedData !== undefined && { cachedData }) });
  const module = { exports: {} };
  // A bundle is a function, see `bundle.mjs`.
  script.runInThisContext()(module.exports, createRequire(bundle), module, bundle, dirname(bundle));
  if (cache !== undefined && (cachedData === undefined || script.cachedDataRejected === true))
    process.once('exit', (code) => code === 0 && writeCode(cache, script.createCachedData()));
  return module.exports;
}

/** The digest also holds the name: the code of another command is valid to V8, and crashes as damaged code does. */
function digestOf(file: string, code: Uint8Array): Buffer {
  return createHash('sha256')
    .update(`${basename(file)}\n`)
    .update(code)
    .digest();
}

/** A file that is on the disk as a whole when it gets its name: a power failure leaves pages of zeros else. */
function writeDurably(file: string, parts: readonly Uint8Array[]): void {
  const opened = openSync(file, 'wx', 0o600);
  try {
    for (const part of parts) writeFileSync(opened, part);
    fsyncSync(opened);
  } finally {
    closeSync(opened);
  }
}

/**
 * The code of an earlier run, with a mark for the time that this run may fail in; undefined where a run did, and where
 * the marks cannot be listed.
 */
function codeForRun(cache: CodeCache): Buffer | undefined {
  const code = readCode(cache);
  const left = orElse(() => readdirSync(cache.directory), null)?.filter((name) => isLeftMark(name, basename(cache.file)));
  if (code === undefined || left === undefined) return undefined;
  if (left.length > 0) {
    discard(cache.file);
    for (const name of left) discard(join(cache.directory, name));
    return undefined;
  }
  const mark = `${cache.file}.${process.pid}${BEGAN}`;
  try {
    writeFileSync(mark, '', { mode: 0o600 });
  } catch {
    // Nothing can be written: the code was verified, so it is used without a mark.
    return code;
  }
  process.once('exit', () => discard(mark));
  setTimeout(() => discard(mark), MARKED).unref();
  return code;
}

/** Whether the name is the mark of an ended process. */
function isLeftMark(name: string, file: string): boolean {
  if (!name.startsWith(`${file}.`) || !name.endsWith(BEGAN)) return false;
  try {
    process.kill(Number(name.slice(file.length + 1, -BEGAN.length)), 0);
    return false;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ESRCH';
  }
}

function requireOurs(found: Stats): void {
  if (!isOurs(found)) throw new Error('it belongs to another user');
}

function isOurs({ uid, mode }: { readonly uid: number; readonly mode: number }): boolean {
  return uid === process.getuid?.() && (mode & OTHERS_MAY_WRITE) === 0;
}

/**
 * False for root with the HOME of a user (sudo): a folder made by root would be in the user's way, and the user could
 * replace it.
 */
function isPlaceOurs(directory: string): boolean {
  let place = dirname(directory);
  while (place !== dirname(place) && !existsSync(place)) place = dirname(place);
  return statSync(place).uid === process.getuid?.();
}

function discard(file: string): void {
  try {
    rmSync(file);
  } catch {
    // It never existed.
  }
}

/** Removes the oldest cache files, and no other files of the user. */
function removeOldest(directory: string): void {
  const files = readdirSync(directory).flatMap((name) => (OURS.test(name) ? [join(directory, name)] : []));
  if (files.length <= KEPT) return;
  const byAge = files.map((file) => ({ file, time: lstatSync(file).mtimeMs })).sort((a, b) => a.time - b.time);
  for (const { file } of byAge.slice(0, -KEPT)) rmSync(file, { force: true });
}
