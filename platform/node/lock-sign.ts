/**
 * A sign in a directory by which a living process says that it wants a lock, or holds it (`lock.ts`).
 *
 * 1. A sign is a Unix socket that its owner listens on: the system ends it with the process, in every namespace. It
 *    answers each connection with the line of its owner.
 * 2. Where no socket can be made, it is a file with that line. Its owner renews the file's time. Where the line is of
 *    the same boot and PID namespace, the process decides whether the sign is alive; else its age does.
 * 3. A name is never used twice. So a dead sign can be removed at any time, and no living one with it.
 *
 * The line is `<pid> <start> <namespace>`. On Linux the start is boot id and start time, which distinguishes a process
 * from a later one with the same number; elsewhere start and namespace are `-`.
 */
import { createHash, randomBytes } from 'node:crypto';
import type { Stats } from 'node:fs';
import { chmod, lstat, open, readdir, readFile, readlink, realpath, rm, utimes } from 'node:fs/promises';
import { connect, createServer, type Server } from 'node:net';
import { basename, dirname, join } from 'node:path';
import { createFile, fileError } from './files.ts';
import { MAX_SOCKET_PATH } from './local-socket.ts';

/** A living sign of another owner, which may be in this process. */
export interface OtherSign {
  readonly name: string;
  readonly holds: boolean;
  /** Its owner for a message: `process 12`, for example. */
  readonly by: string;
}

/** A sign of this process. */
export interface OwnSign {
  readonly name: string;
  /** Shows others that it holds the lock. */
  hold(): Promise<void>;
  /** Shows that its owner is alive. @returns false when it is gone: others took it for dead, or a person removed it */
  renew(): Promise<boolean>;
  remove(): Promise<void>;
}

/** What is in the directory of a lock. */
export interface Signs {
  readonly names: readonly string[];
  readonly living: readonly OtherSign[];
  readonly dead: readonly string[];
}

/** ms between two renewals of a file, and ms after which one of another namespace is dead. */
export const RENEWAL = 10_000;
const EXPIRY = 30_000;
/** Bytes of a lock's name in the names of its signs: they are short enough for an address, and for a file name. */
const MAX_LABEL = 48;
/** ms for the answer of an owner, most bytes of a line, and connections that an owner serves at a time. */
export const PATIENCE = 500;
const MAX_LINE = 256;
export const CONNECTIONS = 16;
const LINE = /^(\d{1,10}) (\S+) (\S+)\n$/;
/** A sign has this bit of its mode until it holds the lock: a socket is made with it. */
const WANTS = 0o100;

/** Puts up a sign that does not hold the lock yet. @throws LocalError FAILED when the directory takes no files */
export async function putUp(lock: string): Promise<OwnSign> {
  const name = `${labelOf(lock)}.${randomBytes(6).toString('hex')}`;
  const path = join(dirname(lock), name);
  const line = await ownLine();
  const server = await listen(path, line).catch(() => null);
  if (server === null) await createFile(path, line, { mode: 0o600 | WANTS });
  return {
    name,
    hold: () => chmod(path, 0o600),
    renew: () => isRenewed(path),
    remove: async () => {
      await rm(path, { force: true }).catch(() => {});
      server?.close();
    },
  };
}

/** Reads the signs of a lock, all but `own`. @throws LocalError FAILED when the directory cannot be read */
export async function readSigns(lock: string, own?: OwnSign): Promise<Signs> {
  const names = await namesIn(dirname(lock), `${labelOf(lock)}.`);
  const living: OtherSign[] = [];
  const dead: string[] = [];
  for (const name of names) {
    if (name === own?.name) continue;
    const sign = await livingSign(dirname(lock), name);
    if (sign === null) dead.push(name);
    else living.push(sign);
  }
  return { names, living, dead };
}

/**
 * The sign of Windows: a named pipe, which the system gives to one process.
 * @returns its owner, as `OtherSign.by`, where it is another one
 */
export async function pipeOrOwner(lock: string): Promise<OwnSign | string> {
  const place = join(await realpath(dirname(lock)), basename(lock));
  const name = `\\\\.\\pipe\\svc-${createHash('sha256').update(place).digest('hex').slice(0, 32)}`;
  try {
    const server = await listen(name, await ownLine());
    return { name, hold: async () => {}, renew: async () => true, remove: async () => void server.close() };
  } catch {
    return describe((await answerOf(name)) ?? '');
  }
}

/** Whether the process of a line is alive; null where only one in its own namespace can know. */
async function isProcessAlive(line: string): Promise<boolean | null> {
  const [, pid, start = '', namespace] = LINE.exec(line) ?? [];
  if (pid === undefined) return false;
  const [, , ownStart = '', ownNamespace] = LINE.exec(await ownLine()) as RegExpExecArray;
  if (namespace !== ownNamespace || start.split('/')[0] !== ownStart.split('/')[0]) return null;
  try {
    process.kill(Number(pid), 0);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EPERM') return false;
  }
  return (await startOf(Number(pid))) === start;
}

/** The line of this process. */
async function ownLine(): Promise<string> {
  const namespace = await readlink('/proc/self/ns/pid').catch(() => '-');
  return `${process.pid} ${await startOf(process.pid)} ${namespace}\n`;
}

async function startOf(pid: number): Promise<string> {
  try {
    const boot = await readFile('/proc/sys/kernel/random/boot_id', 'utf8');
    const stat = await readFile(`/proc/${pid}/stat`, 'utf8');
    // proc(5): the name in brackets may hold anything; the start time is the 20th field after it.
    return `${boot.trim()}/${stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19]}`;
  } catch {
    return '-';
  }
}

function labelOf(lock: string): string {
  const name = basename(lock);
  if (Buffer.byteLength(name) <= MAX_LABEL) return name;
  return `.svc.lock.${createHash('sha256').update(name).digest('hex').slice(0, 16)}`;
}

async function namesIn(directory: string, start: string): Promise<string[]> {
  try {
    return (await readdir(directory)).filter((name) => name.startsWith(start) && /^[0-9a-f]{12}$/.test(name.slice(start.length)));
  } catch (error) {
    throw fileError('cannot read', directory, error);
  }
}

/** Null for one that is dead, or no sign at all. */
async function livingSign(directory: string, name: string): Promise<OtherSign | null> {
  const path = join(directory, name);
  const entry = await lstat(path).catch(() => null);
  const line = entry === null ? null : entry.isSocket() ? await answerOf(path) : entry.isFile() ? await writtenIn(path, entry) : null;
  return line === null ? null : { name, holds: ((entry as Stats).mode & WANTS) === 0, by: await describe(line) };
}

/** False when the file is gone. A disk that accepts no writes shows nothing. */
async function isRenewed(path: string): Promise<boolean> {
  const now = new Date();
  return utimes(path, now, now).then(
    () => true,
    ({ code }: NodeJS.ErrnoException) => code !== 'ENOENT',
  );
}

/** The line of a file, if its owner is alive. */
async function writtenIn(path: string, { mtimeMs }: Stats): Promise<string | null> {
  const line = await readFile(path, 'utf8').catch(() => '');
  const alive = (await isProcessAlive(line)) ?? Math.abs(Date.now() - mtimeMs) < EXPIRY;
  return alive ? line : null;
}

async function describe(line: string): Promise<string> {
  const pid = LINE.exec(line)?.[1];
  if (pid === undefined) return 'another process';
  if ((await isProcessAlive(line)) === null) return `process ${pid} of another container`;
  return Number(pid) === process.pid ? 'this process' : `process ${pid}`;
}

/** Listens on a new socket, which its owner alone may connect to. @throws an error of the system */
function listen(path: string, line: string): Promise<Server> {
  const server = createServer((socket) => {
    socket.on('error', () => {});
    socket.setTimeout(PATIENCE, () => socket.destroy());
    socket.end(line);
  });
  server.maxConnections = CONNECTIONS;
  return atAddress(path, async (address) => {
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject);
      server.listen(address, resolve);
    });
    server.on('error', () => {});
    server.unref();
    return server;
  });
}

/**
 * The line of a socket's owner; empty where it does not answer in time, null where no process listens. Only a refusal
 * means that: a full queue or missing permission is an owner's.
 */
function answerOf(path: string): Promise<string | null> {
  return atAddress(
    path,
    (address) =>
      new Promise((resolve) => {
        let line = '';
        const socket = connect(address);
        const done = (answer: string | null): void => {
          socket.destroy();
          resolve(answer);
        };
        socket.setTimeout(PATIENCE, () => done(''));
        socket.on('error', ({ code }: NodeJS.ErrnoException) => done(code === 'ECONNREFUSED' ? null : ''));
        socket.on('data', (chunk) => (line = (line + chunk.toString('latin1')).slice(0, MAX_LINE)));
        socket.on('close', () => done(line));
      }),
  );
}

/** Uses the address of a socket. On Linux a directory has a short name beside its own, which may be too long. */
async function atAddress<T>(path: string, use: (address: string) => Promise<T>): Promise<T> {
  if (Buffer.byteLength(path) <= MAX_SOCKET_PATH) return use(path);
  const directory = await open(dirname(path), 'r');
  try {
    return await use(`/proc/self/fd/${directory.fd}/${basename(path)}`);
  } finally {
    await directory.close();
  }
}
