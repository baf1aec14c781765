/**
 * The file service of `svc device`: keeps files that clients send and gives them back (`../file-protocol.ts`). Needs the permission
 * `File:Transfer`.
 *
 * A file is written beside its place, hashed on the way, flushed to the disk and renamed, which is flushed, too: there is the whole file or none,
 * and the client hears of it only then.
 */
import { createHash, randomBytes } from 'node:crypto';
import { constants, type FileHandle, open, readdir, rename, rm, statfs } from 'node:fs/promises';
import { join } from 'node:path';
import type { Device, DeviceStream, SessionStream } from '../../device/index.ts';
import { StreamCode } from '../../protocol/errors/index.ts';
import { syncDirectory } from '../../transport/node/index.ts';
import { CHUNK, encodeLine, FILE_PORT, FileReader, type FileRequest, FileTransferError, readRequest } from '../file-protocol.ts';

interface Directory {
  readonly path: string;
  readonly free: (path: string) => Promise<number>;
}

/** A file on its way: hidden, and no name that a client may give. */
const PARTIAL = /^\..+\.[0-9a-f]{12}\.part$/;

/** Removes what a process that was killed left half written. For the process that has the directory. */
export async function removePartialFiles(directory: string): Promise<void> {
  for (const name of await readdir(directory)) if (PARTIAL.test(name)) await rm(join(directory, name), { force: true });
}

/** Bytes that files leave free on the disk: users, audit log and settings are saved there, too, and a user who fills it could not be deleted. */
const RESERVE = 8 << 20;
/** Bytes of a file after which the disk is looked at again. */
const CHECKED = 1 << 20;

/** Serves files from and to `directory` on the stream port FILE_PORT. @param free bytes that the disk of a directory has left */
export function installFiles(device: Device, directory: string, free = freeBytes): void {
  device.addStreamListener(FILE_PORT, async (incoming: DeviceStream) => {
    let stream: SessionStream | undefined;
    const grant = await device.grant(incoming.connection, 'File:Transfer', {}, () => stream?.abort(StreamCode.FORBIDDEN));
    if (grant === null) return incoming.refuse(StreamCode.FORBIDDEN);
    try {
      // Throws when the client gave up meanwhile.
      stream = incoming.accept();
      await serveOrRefuse(stream, { path: directory, free });
    } finally {
      grant.release();
    }
  });
}

async function serveOrRefuse(stream: SessionStream, directory: Directory): Promise<void> {
  try {
    await serve(stream, directory);
  } catch (error) {
    await refuse(stream, error);
  }
}

async function serve(stream: SessionStream, directory: Directory): Promise<void> {
  const reader = new FileReader(stream);
  const request = readRequest(await reader.readLine());
  if (request.op === 'put') await store(stream, reader, request, directory);
  else await send(stream, join(directory.path, request.name));
  await stream.close();
}

async function store(
  stream: SessionStream,
  reader: FileReader,
  { name, size }: Extract<FileRequest, { op: 'put' }>,
  directory: Directory,
): Promise<void> {
  const partial = join(directory.path, `.${name}.${randomBytes(6).toString('hex')}.part`);
  await requireRoom(directory, size);
  const file = await open(partial, 'wx', 0o600);
  const hash = createHash('sha256');
  try {
    let unchecked = 0;
    for await (const piece of reader.bytes(size)) {
      hash.update(piece);
      await file.writeFile(piece);
      unchecked += piece.length;
      // Others write at the same time.
      if (unchecked < CHECKED) continue;
      await requireRoom(directory, 0);
      unchecked = 0;
    }
    await file.sync();
    await file.close();
    await rename(partial, join(directory.path, name));
    await syncDirectory(directory.path);
  } catch (error) {
    await file.close();
    await rm(partial, { force: true });
    throw error;
  }
  await stream.write(encodeLine({ size, sha256: hash.digest('hex') }));
}

/** @throws FileTransferError when `size` bytes more would leave less than the reserve */
async function requireRoom({ path, free }: Directory, size: number): Promise<void> {
  if ((await free(path)) - size < RESERVE) throw new FileTransferError('the device has no room for the file');
}

async function freeBytes(path: string): Promise<number> {
  const { bavail, bsize } = await statfs(path);
  return bavail * bsize;
}

async function send(stream: SessionStream, path: string): Promise<void> {
  const file = await openStored(path);
  try {
    const { size } = await file.stat();
    const hash = createHash('sha256');
    await stream.write(encodeLine({ size }));
    for (let done = 0; done < size; ) {
      const buffer = new Uint8Array(Math.min(CHUNK, size - done));
      const { bytesRead } = await file.read(buffer, 0, buffer.length);
      if (bytesRead === 0) throw new FileTransferError('the file became shorter');
      const chunk = buffer.subarray(0, bytesRead);
      hash.update(chunk);
      await stream.write(chunk);
      done += bytesRead;
    }
    await stream.write(encodeLine({ sha256: hash.digest('hex') }));
  } finally {
    await file.close();
  }
}

/** Only a file that lies here: a link could lead anywhere, and what is no file might never end. */
async function openStored(path: string): Promise<FileHandle> {
  const file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT' || error.code === 'ELOOP' || error.code === 'ENXIO') throw new FileTransferError('there is no such file');
    throw error;
  });
  if ((await file.stat()).isFile()) return file;
  await file.close();
  throw new FileTransferError('there is no such file');
}

/** Tells the client why, when it is still there, and ends the stream. What failed inside stays inside. */
async function refuse(stream: SessionStream, error: unknown): Promise<void> {
  try {
    await stream.write(
      encodeLine({ error: error instanceof FileTransferError ? error.message : 'the file cannot be stored or read here' }),
    );
    await stream.close();
  } finally {
    stream.abort();
  }
}
