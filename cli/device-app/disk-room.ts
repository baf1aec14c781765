/**
 * Limits the disk space of the files of `svc device`: all but a reserve. Users, audit log and settings are saved
 * there, too, and a user who fills the disk could not be deleted.
 *
 * Every transfer takes its bytes here before it writes them. If each checked the disk by itself, many together could
 * write more than the reserve between two checks.
 */
import { FileTransferError } from '../files/protocol.ts';

/** Bytes that files leave free. */
export const RESERVE = 8 << 20;
/** Bytes of all transfers together after which the disk is checked again. */
const CHECKED = 1 << 20;

export class DiskRoom {
  readonly #free: () => Promise<number>;
  /** Bytes that may be written until the next check. */
  #granted = 0;
  /** Bytes being written: the disk may or may not count them yet. */
  #writing = 0;
  #last: Promise<void> = Promise.resolve();

  /** @param free returns the free bytes of the disk */
  constructor(free: () => Promise<number>) {
    this.#free = free;
  }

  /** @throws FileTransferError NO_ROOM when `size` bytes more would leave less than the reserve */
  async require(size: number): Promise<void> {
    if ((await this.#free()) - this.#writing - size < RESERVE) throw noRoom();
  }

  /** Writes `size` bytes. @throws FileTransferError NO_ROOM; the error of `write` */
  async write(size: number, write: () => Promise<void>): Promise<void> {
    await this.#take(size);
    try {
      await write();
    } catch (error) {
      throw FULL.includes((error as NodeJS.ErrnoException).code) ? noRoom() : error;
    } finally {
      this.#writing -= size;
    }
  }

  /** Takes bytes, one call after the other: each checks the space that the others have left. */
  #take(size: number): Promise<void> {
    const taken = this.#last.then(() => this.#grant(size));
    this.#last = taken.catch(() => {});
    return taken;
  }

  async #grant(size: number): Promise<void> {
    if (this.#granted < size) {
      const writing = this.#writing;
      const left = (await this.#free()) - Math.max(writing, this.#writing) - RESERVE;
      if (left < size) throw noRoom();
      this.#granted = Math.min(CHECKED, left);
    }
    this.#granted -= size;
    this.#writing += size;
  }
}

const FULL: readonly (string | undefined)[] = ['ENOSPC', 'EDQUOT'];

function noRoom(): FileTransferError {
  return new FileTransferError('the device has no room for the file', 'NO_ROOM');
}
