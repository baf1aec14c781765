/**
 * Keeps strangers from filling the log, or from pushing out by rotation what it holds: how many refusals of one kind and one class of caller are
 * written, 20 in a minute and 200 in a day. The others are counted, and the count is written once an hour. No clock of its own.
 */
import { TokenBucket } from '../../protocol/token-bucket.ts';

/** Who was refused: a user, a stranger near by, a stranger from afar; or the device itself. No class takes anything from another. */
export type CallerClass = 'paired' | 'local' | 'remote' | 'device';

/** Refusals that were counted and not written. */
export interface Suppressed {
  /** Event that was left out. */
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

  /** Whether this one is written; if not it is counted. @param event one of few @param now ms, monotonic */
  admit(event: string, callerClass: CallerClass, now: number): boolean {
    const count = this.#count(event, callerClass);
    const admitted = count.day.wait(1, now) === 0 && count.minute.take(1, now) && count.day.take(1, now);
    if (!admitted) count.suppressed++;
    return admitted;
  }

  /** What was counted since the last call. */
  takeSuppressed(): Suppressed[] {
    const taken: Suppressed[] = [];
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
