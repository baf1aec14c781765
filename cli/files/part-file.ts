/**
 * A partial file on this machine: `<target>.svc.part` next to its target. It stays after an interruption, so that the
 * next transfer resumes.
 *
 * `<target>.svc.part.lock.<id>` belongs to the process that writes it (`platform/node/lock.ts`).
 */
import { createHash, type Hash } from 'node:crypto';
import { type FileHandle, rm } from 'node:fs/promises';
import { fileError, type Lock, ownLock } from '../../platform/node/index.ts';
import { CommandError } from '../frame/errors.ts';
import { digestOf, giveName, hashOf, openPart } from './content.ts';
import { FileTransferError, type Prefix } from './protocol.ts';

/** Path of a partial file, with a name that other programs do not use. */
export function partOf(target: string): string {
  return `${target}.svc.part`;
}

export class PartFile {
  readonly #target: string;
  readonly #file: FileHandle;
  readonly #lock: Lock;
  #hash: Hash;
  #size: number;

  private constructor(target: string, file: FileHandle, { hash, size, lock }: { hash: Hash; size: number; lock: Lock }) {
    this.#target = target;
    this.#file = file;
    this.#lock = lock;
    this.#hash = hash;
    this.#size = size;
  }

  /** Opens the existing part, or an empty one. @throws CommandError, SvcError FAILED: one line that names the file */
  static async open(target: string, signal?: AbortSignal): Promise<PartFile> {
    const path = partOf(target);
    const lock = await ownLock(`${path}.lock`, { inUse: (by) => inUse(target, by) });
    let file: FileHandle | undefined;
    try {
      file = await openPart(path, 0o666);
      const found = await file.stat();
      if (!found.isFile()) throw new CommandError(`${path} is not a file`);
      return new PartFile(target, file, { hash: await hashOf(file, found.size, () => signal?.throwIfAborted()), size: found.size, lock });
    } catch (error) {
      await file?.close();
      await lock.release();
      throw signal?.aborted || error instanceof CommandError ? error : fileError('cannot write', path, error);
    }
  }

  /** The content so far. */
  get prefix(): Required<Prefix> {
    return { offset: this.#size, sha256: this.digest };
  }

  /** SHA-256 of the content so far, hex. */
  get digest(): string {
    return digestOf(this.#hash);
  }

  /** @throws SvcError FAILED that names the file */
  async append(piece: Uint8Array): Promise<void> {
    await this.#file.writeFile(piece).catch((error: unknown) => {
      throw fileError('cannot write', partOf(this.#target), error);
    });
    this.#hash.update(piece);
    this.#size += piece.length;
  }

  /** Discards the content. */
  async restart(): Promise<void> {
    await this.#file.truncate(0);
    this.#hash = createHash('sha256');
    this.#size = 0;
  }

  /** Renames it to the target. Must still be closed. @throws FileTransferError EXISTS, CommandError, SvcError FAILED */
  async finish(replace: boolean): Promise<void> {
    this.#lock.lost.throwIfAborted();
    // The lock does not show a process of another machine.
    if ((await this.#file.stat()).size !== this.#size) throw inUse(this.#target, 'another process');
    await giveName(partOf(this.#target), this.#target, replace).catch((error: unknown) => {
      throw error instanceof FileTransferError ? error : fileError('cannot write', this.#target, error);
    });
  }

  /** Keeps the content for the next transfer; removes an empty part. */
  async close(): Promise<void> {
    await this.#file.close();
    if (this.#size === 0) await rm(partOf(this.#target), { force: true });
    await this.#lock.release();
  }
}

function inUse(target: string, by: string): CommandError {
  return new CommandError(`${partOf(target)} is being written by ${by}: wait for it, or end it`);
}
