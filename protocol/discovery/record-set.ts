/**
 * The records of one name and type in the cache of a scanner: their life, refresh, goodbye and cache flush (RFC 6762
 * §5.2, §10).
 *
 * Any host on the link can fill it. A set holds a few records; when it is full, the one heard longest ago is dropped.
 */
import { type DnsRecord, recordKey } from './records.ts';

const SECOND = 1000;
/** Fractions of its life after which a record is queried again, and the random addition (§5.2). */
const REFRESHES = [0.8, 0.85, 0.9, 0.95] as const;
const REFRESH_JITTER = 0.02;
/**
 * Seconds: the life that RFC 6762 §10 gives to records without addresses. A longer one counts as this, so that forged
 * records are forgotten.
 */
const MAX_TTL = 4500;

interface RecordEntry {
  record: DnsRecord;
  readonly key: string;
  /** When this data was first heard. */
  readonly since: number;
  heardAt: number;
  /** ms */
  life: number;
  expiresAt: number;
  /** Index of the next refresh. */
  refresh: number;
  refreshAt: number;
}

/** True when a set holds different data than before. */
export type Changed = boolean;

export class RecordSet {
  readonly #limit: number;
  readonly #firstRefresh: number;
  readonly #kept: RecordEntry[] = [];

  /**
   * @param limit most records it holds
   * @param firstRefresh 0: queried again from 80 % of their life on; 1: from 85 %, for records that another answer
   *   includes
   */
  constructor(limit: number, firstRefresh: 0 | 1 = 0) {
    this.#limit = limit;
    this.#firstRefresh = firstRefresh;
  }

  get isEmpty(): boolean {
    return this.#kept.length === 0;
  }

  records(): DnsRecord[] {
    return this.#kept.map(({ record }) => record);
  }

  /**
   * Returns the data that appeared last, and when it first came; null without any. A repeat does not make older data
   * newer.
   */
  newest(): { readonly record: DnsRecord; readonly since: number } | null {
    return this.#kept.reduce<RecordEntry | null>((best, each) => (best === null || each.since >= best.since ? each : best), null);
  }

  /** Stores a record that was heard. @param jitter 0 to below 1 */
  put(record: DnsRecord, now: number, jitter: number): Changed {
    const key = recordKey(record);
    // A second's grace: its other records may be in another message (§10.2), and removing a record at once would cause
    // a gap when a repeat follows (§10.1).
    for (const other of this.#kept) if (record.flush && other.key !== key && other.heardAt < now - SECOND) endSoon(other, now);
    const known = this.#kept.find((each) => each.key === key);
    if (record.ttl === 0) {
      if (known !== undefined) endSoon(known, now);
      return false;
    }
    const fresh: RecordEntry = { record, key, since: now, heardAt: now, life: 0, expiresAt: 0, refresh: this.#firstRefresh, refreshAt: 0 };
    if (known === undefined) this.#add(fresh);
    const kept = known ?? fresh;
    kept.record = record;
    kept.heardAt = now;
    kept.life = Math.min(record.ttl, MAX_TTL) * SECOND;
    kept.expiresAt = now + kept.life;
    kept.refresh = this.#firstRefresh;
    schedule(kept, jitter);
    return known === undefined;
  }

  /** Removes the records that have expired. */
  expire(now: number): Changed {
    const before = this.#kept.length;
    for (let index = before - 1; index >= 0; index--) if (this.#kept[index]!.expiresAt <= now) this.#kept.splice(index, 1);
    return this.#kept.length < before;
  }

  /** Returns whether a record should be queried again now. @param random 0 to below 1 at each call */
  takeRefresh(now: number, random: () => number): boolean {
    const due = this.#kept.filter(({ refreshAt }) => refreshAt <= now);
    for (const kept of due) {
      kept.refresh++;
      schedule(kept, random());
    }
    return due.length > 0;
  }

  /** Returns when `expire` or `takeRefresh` has something to do. */
  nextTimeout(): number {
    return this.#kept.reduce((least, { expiresAt, refreshAt }) => Math.min(least, expiresAt, refreshAt), Number.POSITIVE_INFINITY);
  }

  /**
   * Returns the records for a query's known-answer list: those in the first half of their life, with the remaining life
   * (§7.1).
   */
  knownAnswers(now: number): DnsRecord[] {
    return this.#kept.flatMap(({ record, life, expiresAt }) =>
      expiresAt - now > life / 2 ? [{ ...record, ttl: Math.ceil((expiresAt - now) / SECOND), flush: false }] : [],
    );
  }

  #add(fresh: RecordEntry): void {
    if (this.#kept.length === this.#limit) {
      const oldest = this.#kept.reduce((least, each) => (each.heardAt < least.heardAt ? each : least));
      this.#kept.splice(this.#kept.indexOf(oldest), 1);
    }
    this.#kept.push(fresh);
  }
}

function endSoon(kept: RecordEntry, now: number): void {
  kept.expiresAt = Math.min(kept.expiresAt, now + SECOND);
  kept.refreshAt = Number.POSITIVE_INFINITY;
  // Counts as past half its life: it is no longer a known answer.
  kept.life = Number.POSITIVE_INFINITY;
}

function schedule(kept: RecordEntry, jitter: number): void {
  const share = REFRESHES[kept.refresh];
  kept.refreshAt =
    share === undefined ? Number.POSITIVE_INFINITY : kept.expiresAt - kept.life + kept.life * (share + REFRESH_JITTER * jitter);
}
