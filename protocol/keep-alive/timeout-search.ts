/**
 * Finds the longest silence that a NAT mapping survives, with few tries: a bisection over fixed silences, each 16 %
 * longer than the previous one. The result is the longest one survived; 94 % of it lie between 80 and 95 % of the true
 * timeout, for all of 20 to 120 s:
 *
 *   true timeout t in [s, 1.16 s)   →   0.94 s is from 0.94 t down to 0.94 / 1.16 t = 0.81 t
 *
 * A silence counts as too long when a mapping was lost twice after it: one loss may have been a packet. Not here: how a
 * silence is tried (mapping-probe.ts).
 */

/** ms: the shortest silence that is tried, the factor to the next, and their number: up to 123 s. */
const SHORTEST = 17_900;
const STEP = 1.16;
const COUNT = 14;
/** Share of the survived silence that is used. */
const SHARE = 0.94;
/**
 * Index to start with: 59 s, as many NATs keep a mapping for 60 s and more, and the default profile needs no longer
 * interval.
 */
const LIKELY = 8;
/** ms between keep-alives where not even the shortest silence was survived. */
export const MIN_INTERVAL = 10_000;

/** ms */
const SILENCES: readonly number[] = Array.from({ length: COUNT }, (_, index) => Math.round(SHORTEST * STEP ** index));

export class TimeoutSearch {
  /** The longest silence survived, -1 for none; the shortest not survived. */
  #lived = -1;
  #died = COUNT;
  /** The silence that was not survived once. */
  #doubted = -1;

  /**
   * Returns the silence to try next, ms; null when the search is over.
   * @param longest ms between keep-alives that a session wants: longer ones are not searched
   */
  next(longest: number): number | null {
    const wanted = SILENCES.findIndex((silence) => intervalOf(silence) >= longest);
    const end = Math.min(this.#died, wanted < 0 ? COUNT : wanted + 1);
    const begin = this.#lived + 1;
    if (begin >= end) return null;
    return SILENCES[this.#lived < 0 && this.#died === COUNT ? Math.min(LIKELY, end - 1) : (begin + end - 1) >> 1]!;
  }

  /** Call when a mapping survived a silence that `next` returned. */
  lived(silence: number): void {
    this.#lived = Math.max(this.#lived, SILENCES.indexOf(silence));
    this.#doubted = -1;
  }

  /** Call when a mapping was gone after a silence that `next` returned. */
  died(silence: number): void {
    const index = SILENCES.indexOf(silence);
    if (this.#doubted === index) this.#died = Math.min(this.#died, index);
    this.#doubted = this.#doubted === index ? -1 : index;
  }

  /** ms between keep-alives that the NAT allows, as far as known; null: unknown. */
  get interval(): number | null {
    if (this.#lived >= 0) return intervalOf(SILENCES[this.#lived]!);
    return this.#died === 0 ? MIN_INTERVAL : null;
  }

  /**
   * Lifetime of a mapping, ms: approximate, or a lower bound where nothing longer was tried. Null before a silence was
   * survived.
   */
  get timeout(): { readonly about: number; readonly isAtLeast: boolean } | null {
    if (this.#lived < 0) return this.#died === 0 ? { about: SHORTEST, isAtLeast: false } : null;
    const lived = SILENCES[this.#lived]!;
    if (this.#died === COUNT) return { about: lived, isAtLeast: true };
    return { about: Math.round((lived + SILENCES[this.#died]!) / 2), isAtLeast: false };
  }
}

function intervalOf(silence: number): number {
  return Math.round(silence * SHARE);
}
