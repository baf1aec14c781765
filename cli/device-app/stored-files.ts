/** Files of `svc device`, for its clients: one file, or the rest of it, and the list of all. */
import { constants, type FileHandle, lstat, open, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { digestOf, hashOf, piecesOf } from '../files/content.ts';
import { encodeLine, FileTransferError, isFileName, type ListedFile, type Prefix } from '../files/protocol.ts';
import { type FileCall, type FileStore, requireLive } from './file-store.ts';

/** Sends the part of a file that the client does not have: all of it, if the beginning differs. */
export async function giveFile(
  call: FileCall,
  { name, ...has }: { name: string } & Prefix,
  { directory, costly }: FileStore,
): Promise<void> {
  const { stream, client } = call;
  const file = await openStored(join(directory, name));
  try {
    const { size } = await file.stat();
    const { hash, offset } = await costly.run(client, () => commonPrefix(file, size, has, () => requireLive(call)));
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

/** Returns the length and hash of the client's part if the file begins with it, else those of nothing. */
async function commonPrefix(file: FileHandle, size: number, { offset, sha256 }: Prefix, live: () => void) {
  const known = offset <= size ? await hashOf(file, offset, live) : null;
  const same = known !== null && (offset === 0 || digestOf(known) === sha256);
  return same ? { hash: known, offset } : { hash: await hashOf(file, 0), offset: 0 };
}

/** Opens regular files only: a link could lead anywhere, and another kind might never end. */
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

/** Sends the list of the files that `giveFile` would send. Requests of one client are served one after the other. */
export function giveList(call: FileCall, { directory, costly }: FileStore): Promise<void> {
  return costly.run(call.client, () => writeList(call, directory));
}

async function writeList(call: FileCall, directory: string): Promise<void> {
  requireLive(call);
  const files: ListedFile[] = [];
  for (const name of (await readdir(directory)).filter(isFileName).sort()) {
    requireLive(call);
    const file = await lstat(join(directory, name)).catch(() => null);
    if (file?.isFile()) files.push({ name, size: file.size, time: Math.trunc(file.mtimeMs) });
  }
  await call.stream.write(encodeLine({ files: files.length }));
  for (const file of files) await call.stream.write(encodeLine({ ...file }));
}
