/**
 * The names that a scanner browses, and their questions for shared records (RFC 6762 §5.2): the first for PTR records
 * after 20 to 120 ms, then after 1 s, then after twice the last pause, up to an hour, with the known answers (§7.1). A
 * neighbour's question counts as our own when ours is due within a second (§7.3), but not twice in a row: a neighbour
 * that asks only us could silence us.
 */
import { questionWithKnown } from './questions.ts';
import { type DnsMessage, recordKey } from './records.ts';
import type { ScanCache, Schedule } from './scan-cache.ts';

const SECOND = 1000;

interface Browse {
  readonly name: string;
  readonly schedule: Schedule;
  askedAt: number;
  /** A neighbour's question counted as the last one. */
  suppressed: boolean;
  /** Set when a record needs its refresh: the next messages ask again. */
  refresh: boolean;
}

export class Browses {
  readonly byKey = new Map<string, Browse>();
  readonly #cache: ScanCache;

  constructor(cache: ScanCache) {
    this.#cache = cache;
  }

  add(name: string, schedule: Schedule): void {
    this.byKey.set(name.toLowerCase(), { name, schedule, askedAt: Number.NEGATIVE_INFINITY, suppressed: false, refresh: false });
  }

  /** Handles a neighbour's query. Its known answers show that it does not ask for answers that we lack. */
  overheard({ questions, answers }: DnsMessage, now: number): void {
    const asked = new Set(questions.flatMap(({ name, type, unicast }) => (type === 'PTR' && !unicast ? [name.toLowerCase()] : [])));
    for (const key of asked) {
      const browse = this.byKey.get(key);
      if (browse === undefined || browse.suppressed || browse.schedule.next > now + SECOND) continue;
      const known = new Set(this.#cache.knownAnswers(key, now).map(recordKey));
      if (!answers.every((record) => record.name.toLowerCase() !== key || known.has(recordKey(record)))) continue;
      browse.suppressed = true;
      browse.schedule.asked(now);
    }
  }

  /** Returns the questions that are due. */
  messages(now: number): DnsMessage[] {
    return [...this.byKey].flatMap(([key, browse]) => {
      const due = browse.schedule.next <= now;
      // Answers to a question of the last second are still on their way.
      const again = browse.refresh && browse.askedAt + SECOND <= now;
      browse.refresh = false;
      if (!due && !again) return [];
      if (due) browse.schedule.asked(now);
      browse.askedAt = now;
      browse.suppressed = false;
      return questionWithKnown({ name: browse.name, type: 'PTR', unicast: false }, this.#cache.knownAnswers(key, now));
    });
  }

  /** Returns when the next question is due; a refresh comes with a pass over the cache. */
  nextTimeout(): number {
    return [...this.byKey.values()].reduce((least, { schedule }) => Math.min(least, schedule.next), Number.POSITIVE_INFINITY);
  }
}
