/**
 * The file service of `svc device`: stores files that clients send and returns them (`../files/protocol.ts`). Needs the
 * permission `File:Transfer`.
 *
 * A file is written under another name, hashed on the way, flushed to disk and renamed, and the rename is flushed, too:
 * either the whole file exists or none, and only then is the client informed. Partial files are kept for a while
 * (`leftovers.ts`).
 */
import { statfs } from 'node:fs/promises';
import type { Device, DeviceStream, Stream } from '../../device/index.ts';
import type { Clock } from '../../platform/environment.ts';
import { StreamCode } from '../../protocol/errors/index.ts';
import { unlessAborted } from '../../runtime/unless-aborted.ts';
import { encodeLine, FILE_PORT, FileReader, FileTransferError, readRequest } from '../files/protocol.ts';
import { ClientTurns } from './client-turns.ts';
import { DiskRoom } from './disk-room.ts';
import type { FileCall, FileStore } from './file-store.ts';
import { Leftovers } from './leftovers.ts';
import { receiveFile } from './receive-file.ts';
import { giveFile, giveList } from './stored-files.ts';

export interface FilesOptions {
  readonly clock: Clock;
  /** Free bytes on the disk of a directory; default: as the system reports. */
  readonly free?: (directory: string) => Promise<number>;
  /** Files of all clients together. */
  readonly maxFiles?: number;
}

export const MAX_FILES = 10_000;

/**
 * Serves files from and to `directory` on the stream port FILE_PORT. The caller's process must hold the directory:
 * partial files of an earlier process are cleaned up.
 */
export async function installFiles(
  device: Device,
  directory: string,
  { clock, free = freeBytes, maxFiles = MAX_FILES }: FilesOptions,
): Promise<void> {
  const leftovers = new Leftovers(directory, clock);
  await leftovers.open();
  const store = { directory, maxFiles, leftovers, room: new DiskRoom(() => free(directory)), costly: new ClientTurns() };
  device.addStreamListener(FILE_PORT, async (incoming: DeviceStream) => {
    let stream: Stream | undefined;
    const client = incoming.connection.clientFingerprint;
    const grant = await device.grant(incoming.connection, 'File:Transfer', {}, () => stream?.abort(StreamCode.FORBIDDEN));
    if (grant === null) return incoming.refuse(StreamCode.FORBIDDEN);
    try {
      // Throws when the client gave up meanwhile.
      stream = incoming.accept();
      await serveOrRefuse(stream, client, store);
    } finally {
      grant.release();
    }
  });
}

async function serveOrRefuse(stream: Stream, client: string, store: FileStore): Promise<void> {
  const { signal, supersede } = supersession();
  const reader = new FileReader({ read: (max) => unlessAborted(stream.read(max), signal) });
  try {
    await serve({ stream, reader, client, supersede, superseded: signal }, store);
    await stream.close();
  } catch (error) {
    await refuse(stream, signal.aborted ? signal.reason : error);
  }
}

function supersession(): { signal: AbortSignal; supersede: () => void } {
  const controller = new AbortController();
  const reason = new FileTransferError('another transfer of this name by the same client took over', 'SUPERSEDED');
  return { signal: controller.signal, supersede: () => controller.abort(reason) };
}

async function serve(call: FileCall, store: FileStore): Promise<void> {
  const request = readRequest(await call.reader.readLine());
  switch (request.op) {
    case 'send':
      return receiveFile(call, request, store);
    case 'get':
      return giveFile(call, request, store);
    case 'list':
      return giveList(call, store);
  }
}

async function freeBytes(path: string): Promise<number> {
  const { bavail, bsize } = await statfs(path);
  return bavail * bsize;
}

/** Sends the client the reason, if it is still there, and ends the stream. Internal errors are not disclosed. */
async function refuse(stream: Stream, error: unknown): Promise<void> {
  const known = error instanceof FileTransferError ? error : new FileTransferError('the file cannot be stored or read here', 'FAILED');
  try {
    await stream.write(encodeLine({ error: known.message, code: known.code }));
    await stream.close();
  } finally {
    stream.abort();
  }
}
