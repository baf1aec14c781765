/**
 * Runs a bundle with V8's cached code of an earlier run: compiling takes a third of a short command's time, and Node 20
 * caches nothing.
 *
 * 1. The cache is a folder of the user. One file per bundle and command holds the code that the command ran; its name
 *    contains the digest of the bundle, and the version of Node.
 * 2. V8 trusts cached code. So folder and file must belong to this user, and no other user may write to them; else they
 *    are not read.
 * 3. After a successful run without cached code, the code is cached. At most `KEPT` files: the oldest are removed
 *    first.
 *
 * A cache that cannot be read or written costs only time, so no failure is reported. NODE_DISABLE_COMPILE_CACHE=1 turns
 * it off, like Node's own.
 */
import {
  closeSync,
  constants,
  existsSync,
  fstatSync,
  lstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { Script } from 'node:vm';

/** Files in the folder: enough for all commands of one version and one Node, and some more. Each has 0.2 to 2 MB. */
const KEPT = 24;
/** Bytes of one file. */
const MAX_SIZE = 16 << 20;
const OTHERS_MAY_WRITE = 0o022;
/** Names of cache files, and of unfinished ones. */
const OURS = /^[a-z-]+-[\w-]+-v\d+\.\d+\.\d+[^/]*-[a-z0-9]+(?:\.\d+)?$/;

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

/** The code of an earlier run, or undefined. */
export function readCode({ directory, file }: CodeCache): Buffer | undefined {
  let opened: number | undefined;
  try {
    if (!isOurs(lstatSync(directory)) || !isPlaceOurs(directory)) return undefined;
    opened = openSync(file, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
    const entry = fstatSync(opened);
    return entry.isFile() && isOurs(entry) && entry.size <= MAX_SIZE ? readFileSync(opened) : undefined;
  } catch {
    return undefined;
  } finally {
    if (opened !== undefined) closeSync(opened);
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
    writeFileSync(unfinished, code, { mode: 0o600, flag: 'wx' });
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
  const cachedData = cache === undefined ? undefined : readCode(cache);
  // Bundles are ASCII: a character is a byte, and nothing must be decoded.
  const script = new Script(readFileSync(bundle, 'latin1'), { filename: bundle, ...(cachedData !== undefined && { cachedData }) });
  const module = { exports: {} };
  // A bundle is a function, see `bundle.mjs`.
  script.runInThisContext()(module.exports, createRequire(bundle), module, bundle, dirname(bundle));
  if (cache !== undefined && (cachedData === undefined || script.cachedDataRejected === true))
    process.once('exit', (code) => code === 0 && writeCode(cache, script.createCachedData()));
  return module.exports;
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
