/**
 * Runs a bundle with the code that V8 made of it at an earlier run: compiling is a third of what a short command takes, and Node 20 keeps none of it.
 *
 * 1. The cache is a folder of the user's own. One file per bundle and command holds what that command ran through; its name says of which bundle, by its
 *    digest, and for which Node.
 * 2. V8 believes what it is given. So folder and file must belong to this user, and no other user may write to them; else they are not read.
 * 3. After a run that went well without one, the code is kept. `KEPT` files at most: the oldest go first.
 *
 * A cache that cannot be read or written costs time and nothing else, so no failure is told. NODE_DISABLE_COMPILE_CACHE=1 turns it off, as Node's own.
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

/** Files in the folder: those of all commands for one version and one Node, and of some more. Each has 0.2 to 2 MB. */
const KEPT = 24;
/** Bytes of one file. */
const MAX_SIZE = 16 << 20;
const OTHERS_MAY_WRITE = 0o022;
/** Names of files here, and of those that were not finished. */
const OURS = /^[a-z-]+-[\w-]+-v\d+\.\d+\.\d+[^/]*-[a-z0-9]+(?:\.\d+)?$/;

/** Where and under which name the code of a run is kept. */
export interface CodeCache {
  readonly directory: string;
  readonly file: string;
}

/** The folder in which code may be kept; undefined without one, where files have no owner, and where the user wants none. */
export function cacheDirectory(
  environment: NodeJS.ProcessEnv = process.env,
  filesHaveOwners = process.getuid !== undefined,
): string | undefined {
  const { NODE_DISABLE_COMPILE_CACHE: disabled, XDG_CACHE_HOME: cache, HOME: home } = environment;
  if (!filesHaveOwners || (disabled !== undefined && disabled !== '')) return undefined;
  if (cache?.startsWith('/')) return join(cache, 'svc');
  return home?.startsWith('/') ? join(home, '.cache', 'svc') : undefined;
}

/** The entry of a bundle for one command. @param digest of the bundle: V8 itself compares no more than its length, its own version and flags */
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

/** Keeps the code for later runs. */
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

/** The exports of a bundle, run with the code of earlier runs, which is kept when the process ends with exit code 0. @param cache undefined: without */
export function runBundle(bundle: string, cache: CodeCache | undefined): unknown {
  const cachedData = cache === undefined ? undefined : readCode(cache);
  // Bundles are ASCII: so a character is a byte, and nothing has to be decoded.
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

/** Not so for root with the HOME of a user (sudo): what root made there would be in the user's way, and the user could put another folder in its place. */
function isPlaceOurs(directory: string): boolean {
  let place = dirname(directory);
  while (place !== dirname(place) && !existsSync(place)) place = dirname(place);
  return statSync(place).uid === process.getuid?.();
}

function discard(file: string): void {
  try {
    rmSync(file);
  } catch {
    // It was never made.
  }
}

/** What is not of a bundle is the user's. */
function removeOldest(directory: string): void {
  const files = readdirSync(directory).flatMap((name) => (OURS.test(name) ? [join(directory, name)] : []));
  if (files.length <= KEPT) return;
  const byAge = files.map((file) => ({ file, time: lstatSync(file).mtimeMs })).sort((a, b) => a.time - b.time);
  for (const { file } of byAge.slice(0, -KEPT)) rmSync(file, { force: true });
}
