/**
 * Keeps strangers from filling a log. Events that they can cause are counted and summed up once a minute at info; the
 * single lines are logged at debug. A warning or an error that they can cause is logged once a minute; so is one event
 * for each of the operator's records that it concerns.
 */
import type { Cancel, Clock, Log } from '../platform/environment.ts';

/** ms from the first counted event to the line that sums up. */
const MINUTE = 60_000;

/** Most texts counted at once before an owner gets none of its own. */
export const MAX_COUNTS = 100;

type Fields = Readonly<Record<string, unknown>>;

/** Message of the line that sums up. */
export const SUMMARY = 'in the last minute, not shown one by one';

/** The counts of one product. */
export class LogTally {
  /** A log that writes each warning or error text once a minute. */
  readonly log: Log;
  readonly #clock: Pick<Clock, 'schedule'>;
  readonly #under: Log;
  /** Lines suppressed in this minute, by text, of which there are few: details are in the fields. */
  readonly #counts = new Map<string, number>();
  #cancel: Cancel | null = null;

  constructor(clock: Pick<Clock, 'schedule'>, log: Log) {
    this.#clock = clock;
    this.#under = log;
    const limited =
      (level: 'warn' | 'error') =>
      (message: string, fields?: Fields): void => {
        if (this.#counts.has(message)) this.count(message, fields);
        else {
          log[level](message, fields);
          this.#begin(message);
        }
      };
    this.log = { ...log, warn: limited('warn'), error: limited('error') };
  }

  /** Counts one more event of a kind. @param text constant */
  count(text: string, fields?: Fields): void {
    this.#under.debug(text, fields);
    this.#begin(text);
    this.#counts.set(text, this.#counts.get(text)! + 1);
  }

  /**
   * Logs an event at info, once a minute for each owner, and counts the others. Beyond 100 owners a minute it counts
   * only.
   * @param text constant @param owner id of a record that the operator made
   */
  each(text: string, owner: string, fields: Fields): void {
    const name = `${text}: ${owner}`;
    if (this.#counts.has(name)) this.count(name, fields);
    else if (this.#counts.size >= MAX_COUNTS) this.count(text, fields);
    else {
      this.#under.info(text, fields);
      this.#begin(name);
    }
  }

  /** Logs the sums and resets the counts. */
  flush(): void {
    this.#cancel?.();
    this.#cancel = null;
    const counted = [...this.#counts].filter(([, count]) => count > 0);
    if (counted.length > 0) this.#under.info(SUMMARY, Object.fromEntries(counted));
    this.#counts.clear();
  }

  #begin(text: string): void {
    if (!this.#counts.has(text)) this.#counts.set(text, 0);
    this.#cancel ??= this.#clock.schedule(MINUTE, () => this.flush());
  }
}
