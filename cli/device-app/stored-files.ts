/** What `svc device` has of files, for its clients: one file, or the rest of it, and the list of all. */
import { constants, type FileHandle, lstat, open, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { SessionStream } from '../../device/index.ts';
import { digestOf, hashOf, piecesOf } from '../files/content.ts';
import { encodeLine, FileTransferError, isFileName, type ListedFile, type Prefix } from '../files/protocol.ts';
import { type FileCall, type FileStore, requireLive } from './file-store.ts';

/** Sends what the client does not have of a file: all of it, where it begins otherwise. */
export async function giveFile(
  { stream, client }: FileCall,
  { name, ...has }: { name: string } & Prefix,
  { directory, hashing }: FileStore,
): Promise<void> {
  const file = await openStored(join(directory, name));
  try {
    const { size } = await file.stat();
    const { hash, offset } = await hashing.run(client, () => commonPrefix(file, size, has, () => requireLive(stream)));
    await stream.write(encodeLine({ size, offset }));
    for await (const piece of piecesOf(file, offset, size)) {
      hash.update(piece);
      await stream.write(piece);
    }
    await stream.write(encodeLine({ sha256: digestOf(hash) }));
  } finally {
    await file.close();
  }
}

/** How much of what the client has the file begins with, all or nothing, and the hash of that. */
async function commonPrefix(file: FileHandle, size: number, { offset, sha256 }: Prefix, live: () => void) {
  const known = offset <= size ? await hashOf(file, offset, live) : null;
  const same = known !== null && (offset === 0 || digestOf(known) === sha256);
  return same ? { hash: known, offset } : { hash: await hashOf(file, 0), offset: 0 };
}

/** Only a file that lies here: a link could lead anywhere, and what is no file might never end. */
async function openStored(path: string): Promise<FileHandle> {
  const file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT' || error.code === 'ELOOP' || error.code === 'ENXIO') throw noSuchFile();
    throw error;
  });
  if ((await file.stat()).isFile()) return file;
  await file.close();
  throw noSuchFile();
}

function noSuchFile(): FileTransferError {
  return new FileTransferError('there is no such file', 'NO_SUCH_FILE');
}

/** Sends the list of what `giveFile` would send. */
export async function giveList(stream: SessionStream, directory: string): Promise<void> {
  const files: ListedFile[] = [];
  for (const name of (await readdir(directory)).filter(isFileName).sort()) {
    requireLive(stream);
    const file = await lstat(join(directory, name)).catch(() => null);
    if (file?.isFile()) files.push({ name, size: file.size, time: Math.trunc(file.mtimeMs) });
  }
  await stream.write(encodeLine({ files: files.length }));
  for (const file of files) await stream.write(encodeLine({ ...file }));
}
