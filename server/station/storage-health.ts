/**
 * Tracks whether the storage accepts writes: one is tried once a minute, and a failed write is noticed at once. With a
 * full or read-only disk a base station continues with everything that needs no write; its log and `/health` report the
 * failure.
 */
import type { Cancel, Clock, Log } from '../../platform/environment.ts';
import { type CoapReply, Status, textReply } from '../../protocol/coap/index.ts';
import type { Store } from '../storage/store.ts';

/** The answer to a request whose write failed: the device may try again after a minute. */
export const STORAGE_FAILED: CoapReply = {
  ...textReply(Status.SERVICE_UNAVAILABLE, 'The storage of the base station failed'),
  maxAge: 60,
};

export interface StorageHealthOptions {
  readonly clock: Clock;
  readonly log: Log;
  readonly store: Pick<Store, 'tryWrite'>;
}

/** ms between two tries, and between two lines of the log. */
const INTERVAL = 60_000;

export class StorageHealth {
  readonly #options: StorageHealthOptions;
  #failed = false;
  #loggedAt = Number.NEGATIVE_INFINITY;
  #cancel: Cancel = () => {};

  constructor(options: StorageHealthOptions) {
    this.#options = options;
    this.#schedule();
  }

  /** Whether the last write failed. */
  get failed(): boolean {
    return this.#failed;
  }

  /** Notes a failed write. */
  writeFailed(error: unknown): void {
    const { clock, log } = this.#options;
    this.#failed = true;
    // The timer that logs again may be a little early.
    if (clock.now() - this.#loggedAt < INTERVAL - 1_000) return;
    this.#loggedAt = clock.now();
    log.error('storage: failed; changes are refused, everything else continues', {
      error: error instanceof Error ? error.message : String(error),
    });
  }

  stop(): void {
    this.#cancel();
    this.#cancel = () => {};
  }

  #schedule(): void {
    this.#cancel = this.#options.clock.schedule(INTERVAL, () => void this.#try());
  }

  async #try(): Promise<void> {
    const { log, store } = this.#options;
    const cancel = this.#cancel;
    try {
      await store.tryWrite();
      if (this.#failed) log.info('storage: works again');
      this.#failed = false;
      this.#loggedAt = Number.NEGATIVE_INFINITY;
    } catch (error) {
      this.writeFailed(error);
    }
    // Stopped meanwhile.
    if (cancel === this.#cancel) this.#schedule();
  }
}
