/**
 * The status of a running base station for `svc admin` on the same machine: a file-system socket in its data directory,
 * `basestation.sock`, sends one JSON document to each connection and closes it. Only users with access to the directory
 * reach it.
 *
 * Nothing depends on it: where the socket cannot be created (a path that is too long, a file system without sockets)
 * the base station runs without it.
 */
import { connect } from 'node:net';
import { join } from 'node:path';
import type { Log } from '../platform/environment.ts';
import { MAX_SOCKET_PATH, serveLocally } from '../platform/node/index.ts';
import { orElse } from '../protocol/or-else.ts';

/** An attached device. */
export interface AttachedDevice {
  readonly productId: string;
  readonly deviceId: string;
  /** ISO 8601 UTC with milliseconds. */
  readonly since: string;
  /** `address:port` as seen by the base station. */
  readonly address: string;
}

/** The document. */
export interface StationStatus {
  readonly attached: readonly AttachedDevice[];
}

const SOCKET = 'basestation.sock';
/** Concurrent connections: each is closed as soon as its document has left. */
export const CONNECTIONS = 16;
/** ms that a base station may take to answer, and most bytes of a document. */
export const PATIENCE = 5_000;
const MAX_DOCUMENT = 64 << 20;

/**
 * Serves the status. This process has the directory to itself (`data-directory.ts`).
 * @returns a function that stops serving and removes the file
 */
export function serveStatus(directory: string, log: Log, status: () => StationStatus): Promise<() => void> {
  const settings = { log, failure: 'no status for svc admin', connections: CONNECTIONS };
  return serveLocally(join(directory, SOCKET), settings, (socket) => {
    socket.on('error', () => {});
    socket.setTimeout(PATIENCE, () => socket.destroy());
    socket.end(JSON.stringify(status()));
  });
}

/** Returns the status of the base station that runs on the directory; null when none runs, or it does not answer. */
export function readStatus(directory: string): Promise<StationStatus | null> {
  const path = join(directory, SOCKET);
  if (Buffer.byteLength(path) > MAX_SOCKET_PATH) return Promise.resolve(null);
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

/** Returns null for anything that this base station does not write. */
function parsed(text: string): StationStatus | null {
  return orElse(() => {
    const { attached } = JSON.parse(text) as Partial<StationStatus>;
    const isDevice = (each: AttachedDevice): boolean =>
      [each.productId, each.deviceId, each.since, each.address].every((value) => typeof value === 'string');
    return Array.isArray(attached) && attached.every(isDevice) ? { attached } : null;
  }, null);
}
