/**
 * Keeps the password throttle across restarts, so that a restart allows no new attempts. The first change is saved at
 * once, further changes within a minute, and everything when the device closes. After an unclean end the device starts
 * with empty buckets.
 *
 * The time between two runs is read from the wall clock, which may be wrong at either end. At most one longest wait of
 * it counts, so that a clock that jumps ahead forgives one failure. With a clock that was set back none counts, and the
 * state is saved again: from then on its time counts.
 */
import type { Cancel, Clock, Log } from '../../platform/environment.ts';
import type { KeptDocument } from '../kept-document.ts';
import { LONGEST_WAIT, type PasswordThrottle } from './throttle.ts';
import { readThrottleDocument, throttleDocument } from './throttle-document.ts';

/** ms between two saves. */
const PAUSE = 60_000;

export interface ThrottleKeeperOptions {
  readonly clock: Clock;
  readonly log: Log;
  readonly throttle: PasswordThrottle;
  readonly store: KeptDocument;
}

export class ThrottleKeeper {
  readonly #options: ThrottleKeeperOptions;
  #savedAt = Number.NEGATIVE_INFINITY;
  /** The document on disk says that nothing is missing. */
  #isClean: boolean;
  #cancel: Cancel | null = null;
  #saving: Promise<void> = Promise.resolve();

  constructor(options: ThrottleKeeperOptions) {
    const { clock, log, store, throttle } = options;
    this.#options = options;
    this.#isClean = store.stored === undefined;
    if (store.stored === undefined) return;
    const stored = readThrottleDocument(store.stored);
    if (stored === null) log.warn('the count of failed password attempts cannot be read: it starts again, with no attempts to spare');
    const elapsed = stored === null ? 0 : clock.wallTime() - stored.savedAt;
    if (stored !== null) throttle.restore(stored.state, Math.min(Math.max(0, elapsed), LONGEST_WAIT), clock.now());
    this.#isClean = stored?.isClean === true;
    if (!this.#isClean) throttle.drain(clock.now());
    if (elapsed < 0) this.changed();
  }

  /** Call it when an attempt was charged. */
  changed(): void {
    const { clock } = this.#options;
    this.#isClean = false;
    this.#cancel ??= clock.schedule(Math.max(0, this.#savedAt + PAUSE - clock.now()), () => {
      this.#cancel = null;
      this.#save(false);
    });
  }

  /** Saves any unsaved change. Never rejects. */
  async close(): Promise<void> {
    this.#cancel?.();
    this.#cancel = null;
    if (!this.#isClean) this.#save(true);
    await this.#saving;
  }

  #save(isClean: boolean): void {
    const { clock, log, store, throttle } = this.#options;
    this.#savedAt = clock.now();
    const document = throttleDocument({ state: throttle.state(clock.now()), savedAt: Math.round(clock.wallTime()), isClean });
    this.#saving = this.#saving
      .then(() => store.save(document))
      .then(() => {
        this.#isClean = isClean;
      })
      .catch((error: unknown) => log.warn('failed password attempts could not be saved', { error: String(error) }));
  }
}
