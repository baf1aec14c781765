/**
 * File-system sockets in a data directory, over which programs of the same machine ask the process that runs on it.
 * Only users with access to the directory reach them.
 */
import { chmod, rm } from 'node:fs/promises';
import { createServer, type Socket } from 'node:net';
import type { Log } from '../environment.ts';

/**
 * Most bytes of a path in `sockaddr_un`, without the final zero: 108 on Linux, 104 elsewhere. Some versions of Node cut
 * a longer one silently.
 */
export const MAX_SOCKET_PATH = 103;

/**
 * Serves connections to a path, at most `connections` at a time. The process must have the directory to itself: an
 * existing socket belongs to a dead one.
 *
 * Where the socket cannot be created (a path that is too long, a file system without sockets) this is logged as
 * `failure`, for debugging.
 * @returns a function that stops serving and removes the file
 */
export async function serveLocally(
  path: string,
  { log, failure, connections }: { log: Log; failure: string; connections: number },
  serve: (socket: Socket) => void,
): Promise<() => void> {
  try {
    if (Buffer.byteLength(path) > MAX_SOCKET_PATH) throw new Error('the path of the data directory is too long for a socket');
    await rm(path, { force: true });
    const server = createServer({ allowHalfOpen: true }, serve);
    server.maxConnections = connections;
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject);
      server.listen(path, resolve);
    });
    server.on('error', () => {});
    await chmod(path, 0o600);
    return () => void server.close();
  } catch (error) {
    log.debug(failure, { error: String(error) });
    return () => {};
  }
}
