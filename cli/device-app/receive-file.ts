/**
 * Files that clients send to `svc device`. An interrupted transfer leaves its part, so that the client can resume; one
 * of unknown size leaves nothing. Nor does content that differs from what was sent, or a file for which the disk became
 * too full.
 */
import { createHash, type Hash, randomBytes } from 'node:crypto';
import { type FileHandle, readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { syncDirectory } from '../../platform/node/index.ts';
import { digestOf, giveName, hashOf, isTaken, openPart } from '../files/content.ts';
import { encodeLine, FileTransferError, isSize, type SendRequest } from '../files/protocol.ts';
import type { DiskRoom } from './disk-room.ts';
import { type FileCall, type FileStore, requireLive } from './file-store.ts';
import type { HeldLeftover } from './leftovers.ts';

/**
 * A request `send`: continues where the client's last attempt ended, if the file still begins with the part stored
 * here.
 */
export async function receiveFile(call: FileCall, request: SendRequest, store: FileStore): Promise<void> {
  const { name, size, replace } = request;
  const path = join(store.directory, name);
  const taken = await isTaken(path);
  if (taken && !replace) throw new FileTransferError('a file of that name exists already', 'EXISTS');
  if (!taken) await requirePlace(store);
  const held = size === undefined ? temporary(store, name) : await store.leftovers.hold(call.client, name, call.supersede);
  let incoming: PartialFile;
  try {
    const file = await openPart(held.path, 0o600);
    try {
      incoming = await receiveRest(call, request, file, store);
      await file.sync();
    } finally {
      await file.close();
    }
    await giveName(held.path, path, replace);
    await syncDirectory(store.directory);
  } finally {
    await held.release();
  }
  await call.stream.write(encodeLine({ size: incoming.size, sha256: digestOf(incoming.hash) }));
}

/** Empty files take no room on a disk, but the number of names is limited, too. */
async function requirePlace({ directory, maxFiles }: FileStore): Promise<void> {
  if ((await readdir(directory)).length >= maxFiles) throw new FileTransferError('the device accepts no further files', 'NO_ROOM');
}

function temporary({ directory }: FileStore, name: string): HeldLeftover {
  const path = join(directory, `.${name}.${randomBytes(6).toString('hex')}.part`);
  return { path, release: () => rm(path, { force: true }) };
}

async function receiveRest(call: FileCall, { size }: SendRequest, file: FileHandle, store: FileStore): Promise<PartialFile> {
  const { stream, reader, client } = call;
  const there = (await file.stat()).size;
  const offset = size === undefined || there > size ? 0 : there;
  const hash = await store.costly.run(client, () => hashOf(file, offset, () => requireLive(call)));
  await store.room.require(size === undefined ? 0 : Math.max(0, size - there));
  await stream.write(encodeLine({ offset, sha256: digestOf(hash) }));
  const answer = await reader.readLine();
  if (answer.offset !== 0 && answer.offset !== offset) throw new FileTransferError('the file begins neither here nor where it was left');
  if (answer.offset === 0) await file.truncate(0);
  const incoming = new PartialFile(file, answer.offset === 0 ? createHash('sha256') : hash, answer.offset, store);
  for (let line = await reader.readLine(); ; line = await reader.readLine()) {
    const { bytes, sha256 } = line;
    if (typeof sha256 === 'string') return checked(incoming, size, sha256);
    if (!isSize(bytes) || (size !== undefined && incoming.size + bytes > size))
      throw new FileTransferError('there is more than was announced');
    await incoming.write(reader.bytes(bytes));
  }
}

async function checked(incoming: PartialFile, size: number | undefined, sha256: string): Promise<PartialFile> {
  if (size !== undefined && incoming.size !== size) throw new FileTransferError('there is less than was announced');
  if (digestOf(incoming.hash) === sha256) return incoming;
  await incoming.discard();
  throw new FileTransferError('what arrived is not what was sent', 'MISMATCH');
}

/** A growing partial file. */
class PartialFile {
  readonly hash: Hash;
  readonly #file: FileHandle;
  readonly #room: DiskRoom;
  #size: number;

  /** @param hash of the first `size` bytes, already stored */
  constructor(file: FileHandle, hash: Hash, size: number, { room }: FileStore) {
    this.#file = file;
    this.hash = hash;
    this.#size = size;
    this.#room = room;
  }

  get size(): number {
    return this.#size;
  }

  /**
   * @throws FileTransferError NO_ROOM; then nothing is left: a partial file must not keep disk space that others need
   */
  async write(pieces: AsyncIterable<Uint8Array>): Promise<void> {
    for await (const piece of pieces) {
      this.hash.update(piece);
      await this.#append(piece);
      this.#size += piece.length;
    }
  }

  discard(): Promise<void> {
    return this.#file.truncate(0);
  }

  async #append(piece: Uint8Array): Promise<void> {
    try {
      await this.#room.write(piece.length, () => this.#file.writeFile(piece));
    } catch (error) {
      if (error instanceof FileTransferError) await this.discard();
      throw error;
    }
  }
}
