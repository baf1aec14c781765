/**
 * A file on its way to this machine: `<target>.part` beside its target, which stays when the transfer is interrupted, so that the next one resumes.
 *
 * `<target>.part.lock` names the process that writes it. The lock of a process that was killed does not count.
 */
import { createHash, type Hash } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { type FileHandle, rm } from 'node:fs/promises';
import { fileError, readFileIfPresent } from '../../transport/node/index.ts';
import { CommandError } from '../frame/errors.ts';
import { livingProcess, thisProcess } from '../frame/process-mark.ts';
import { digestOf, giveName, hashOf, openPart } from './content.ts';
import { FileTransferError, type Prefix } from './protocol.ts';

/** Where the part of a file is. */
export function partOf(target: string): string {
  return `${target}.part`;
}

export class PartFile {
  readonly #target: string;
  readonly #file: FileHandle;
  readonly #lock: string;
  #hash: Hash;
  #size: number;

  private constructor(target: string, file: FileHandle, { hash, size, lock }: { hash: Hash; size: number; lock: string }) {
    this.#target = target;
    this.#file = file;
    this.#lock = lock;
    this.#hash = hash;
    this.#size = size;
  }

  /** Takes up what is there. @throws CommandError, SvcError FAILED: one line that names the file */
  static async open(target: string, signal?: AbortSignal): Promise<PartFile> {
    const path = partOf(target);
    const lock = await lockPart(target);
    let file: FileHandle | undefined;
    try {
      file = await openPart(path, 0o666);
      const found = await file.stat();
      if (!found.isFile()) throw new CommandError(`${path} is not a file`);
      return new PartFile(target, file, { hash: await hashOf(file, found.size, () => signal?.throwIfAborted()), size: found.size, lock });
    } catch (error) {
      await file?.close();
      await rm(lockOf(target), { force: true });
      throw signal?.aborted || error instanceof CommandError ? error : fileError('cannot write', path, error);
    }
  }

  /** What is here. */
  get prefix(): Required<Prefix> {
    return { offset: this.#size, sha256: this.digest };
  }

  /** SHA-256 of what is here, hex. */
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

  /** Nothing is here then. */
  async restart(): Promise<void> {
    await this.#file.truncate(0);
    this.#hash = createHash('sha256');
    this.#size = 0;
  }

  /** Becomes the target. To be closed all the same. @throws FileTransferError EXISTS, CommandError, SvcError FAILED */
  async finish(replace: boolean): Promise<void> {
    // Of two processes that found the lock of a dead one, the later has taken it from the other.
    if ((await contentOf(lockOf(this.#target))) !== this.#lock) throw inUse(this.#target, 'another process');
    await giveName(partOf(this.#target), this.#target, replace).catch((error: unknown) => {
      throw error instanceof FileTransferError ? error : fileError('cannot write', this.#target, error);
    });
  }

  /** What is here stays for the next transfer; an empty part is removed. */
  async close(): Promise<void> {
    await this.#file.close();
    if (this.#size === 0) await rm(partOf(this.#target), { force: true });
    if ((await contentOf(lockOf(this.#target))) === this.#lock) await rm(lockOf(this.#target), { force: true });
  }
}

function lockOf(target: string): string {
  return `${partOf(target)}.lock`;
}

/** Returns the content of the lock that was made. @throws CommandError that names the process that has it; SvcError FAILED */
async function lockPart(target: string): Promise<string> {
  const path = lockOf(target);
  const own = await thisProcess();
  for (;;) {
    const pid = await livingProcess(await contentOf(path));
    if (pid !== null) throw inUse(target, pid === process.pid ? 'this process' : `process ${pid}`);
    try {
      await rm(path, { force: true });
      // At once, so that no other process finds it empty.
      writeFileSync(path, own, { flag: 'wx' });
      return own;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw fileError('cannot write', path, error);
    }
  }
}

/** Empty where there is none. */
async function contentOf(path: string): Promise<string> {
  return new TextDecoder().decode(await readFileIfPresent(path));
}

function inUse(target: string, by: string): CommandError {
  return new CommandError(`${partOf(target)} is being written by ${by}, which receives into it: wait for that, or end it`);
}
