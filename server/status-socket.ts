/**
 * What a running base station says of itself to `svc admin` on the same machine: a socket of the file system in its data directory,
 * `basestation.sock`, gives one JSON document to each connection and closes it. Only who may enter the directory reaches it.
 *
 * Nothing depends on it: where the socket cannot be made (a path that is too long, a file system without sockets) the base station runs without.
 */
import { chmod, rm } from 'node:fs/promises';
import { connect, createServer } from 'node:net';
import { join } from 'node:path';
import type { Log } from '../transport/environment.ts';

/** A device that is attached now. */
export interface AttachedDevice {
  readonly productId: string;
  readonly deviceId: string;
  /** ISO 8601 UTC with milliseconds. */
  readonly since: string;
  /** `address:port` where the base station sees it. */
  readonly address: string;
}

/** What the socket gives. */
export interface StationStatus {
  readonly attached: readonly AttachedDevice[];
}

const SOCKET = 'basestation.sock';
/** Bytes of a path in `sockaddr_un`, without the zero at its end: 108 on Linux, 104 elsewhere. Some versions of Node cut a longer one silently. */
const MAX_PATH = 103;
/** Connections at a time: each is closed as soon as its document is out. */
const CONNECTIONS = 16;
/** ms a base station may take to answer, and bytes of a document. */
const PATIENCE = 5_000;
const MAX_DOCUMENT = 64 << 20;

/**
 * Serves the status. The directory is this process's alone (`directory-lock.ts`), so a socket that is there is a dead process's.
 * @returns what ends it; the file goes, too
 */
export async function serveStatus(directory: string, log: Log, status: () => StationStatus): Promise<() => void> {
  const path = join(directory, SOCKET);
  try {
    if (Buffer.byteLength(path) > MAX_PATH) throw new Error('the path of the data directory is too long for a socket');
    await rm(path, { force: true });
    const server = createServer((socket) => {
      socket.on('error', () => {});
      socket.setTimeout(PATIENCE, () => socket.destroy());
      socket.end(JSON.stringify(status()));
    });
    server.maxConnections = CONNECTIONS;
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject);
      server.listen(path, resolve);
    });
    server.on('error', () => {});
    await chmod(path, 0o600);
    return () => void server.close();
  } catch (error) {
    log.debug('no status for svc admin', { error: String(error) });
    return () => {};
  }
}

/** The status of the base station that runs on the directory; null when none runs, or it does not say. */
export function readStatus(directory: string): Promise<StationStatus | null> {
  const path = join(directory, SOCKET);
  if (Buffer.byteLength(path) > MAX_PATH) return Promise.resolve(null);
  return new Promise((resolve) => {
    const chunks: Buffer[] = [];
    let length = 0;
    const socket = connect(path);
    const done = (status: StationStatus | null): void => {
      socket.destroy();
      resolve(status);
    };
    socket.setTimeout(PATIENCE, () => done(null));
    socket.on('error', () => done(null));
    socket.on('data', (chunk) => {
      length += chunk.length;
      if (length > MAX_DOCUMENT) done(null);
      else chunks.push(chunk);
    });
    socket.on('close', () => done(null));
    socket.on('end', () => done(parsed(Buffer.concat(chunks).toString())));
  });
}

/** Null for what no base station of ours wrote. */
function parsed(text: string): StationStatus | null {
  try {
    const { attached } = JSON.parse(text) as Partial<StationStatus>;
    const isDevice = (each: AttachedDevice): boolean =>
      [each.productId, each.deviceId, each.since, each.address].every((value) => typeof value === 'string');
    return Array.isArray(attached) && attached.every(isDevice) ? { attached } : null;
  } catch {
    return null;
  }
}
