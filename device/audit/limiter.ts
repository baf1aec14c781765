/**
 * Limits the refusals written per kind and class of caller to 20 a minute and 200 a day, so that strangers can neither
 * fill the log nor rotate its entries out. Further ones are counted, and the count is written once an hour. No clock of
 * its own.
 */
import { TokenBucket } from '../../protocol/token-bucket.ts';

/**
 * The class of the refused caller: a user, a local stranger, a remote stranger, or the device itself. Each class has
 * its own budget.
 */
export type CallerClass = 'paired' | 'local' | 'remote' | 'device';

/** Refusals that were counted but not written. */
export interface SuppressedCount {
  /** The event left out. */
  readonly event: string;
  readonly callerClass: CallerClass;
  readonly count: number;
}

const MINUTE = 60;
const DAY = 86_400;
export const PER_MINUTE = 20;
export const PER_DAY = 200;

interface Count {
  readonly event: string;
  readonly callerClass: CallerClass;
  readonly minute: TokenBucket;
  readonly day: TokenBucket;
  suppressed: number;
}

export class RefusalLimiter {
  readonly #counts = new Map<string, Count>();

  /**
   * Returns whether to write this one; otherwise counts it.
   * @param event from a small fixed set
   * @param now ms, monotonic
   */
  admit(event: string, callerClass: CallerClass, now: number): boolean {
    const count = this.#count(event, callerClass);
    const admitted = count.day.wait(1, now) === 0 && count.minute.take(1, now) && count.day.take(1, now);
    if (!admitted) count.suppressed++;
    return admitted;
  }

  /** Returns and resets the counts since the last call. */
  takeSuppressed(): SuppressedCount[] {
    const taken: SuppressedCount[] = [];
    for (const count of this.#counts.values()) {
      const { event, callerClass, suppressed } = count;
      if (suppressed > 0) taken.push({ event, callerClass, count: suppressed });
      count.suppressed = 0;
    }
    return taken;
  }

  #count(event: string, callerClass: CallerClass): Count {
    const key = `${event} ${callerClass}`;
    let count = this.#counts.get(key);
    if (count === undefined) {
      const [minute, day] = [new TokenBucket(PER_MINUTE / MINUTE, PER_MINUTE), new TokenBucket(PER_DAY / DAY, PER_DAY)];
      count = { event, callerClass, minute, day, suppressed: 0 };
      this.#counts.set(key, count);
    }
    return count;
  }
}
