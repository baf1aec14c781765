/**
 * When a connection looks for a direct path: at once, again after 5 s, and then after twice the last pause, up to ten minutes. A change of network begins again
 * at once, and so does the loss of a direct path. Where ports are predicted a failed attempt is repeated soon: each guesses again. A pause is up to a quarter
 * longer, at random, so that the clients of one device, or the connections of one client, do not all try again at the same moment.
 */

const FIRST_PAUSE = 5_000;
const LONGEST_PAUSE = 600_000;
/** Share of a pause by which it may be longer. */
const SPREAD = 0.25;
/** ms until an attempt that found all places taken is made again; at most twice as long. */
const PLACE_PAUSE = 1_000;
/** Attempts in a row with predicted ports, and ms between them. */
const PREDICTED_ATTEMPTS = 6;
const PREDICTED_PAUSE = 300;

export class RetrySchedule {
  #nextAt: number;
  #pause = FIRST_PAUSE;
  #predicted = 1;

  constructor(now: number) {
    this.#nextAt = now;
  }

  /** ms; Infinity while an attempt is under way, or there is none to make. */
  get nextAt(): number {
    return this.#nextAt;
  }

  /** An attempt begins. */
  begin(): void {
    this.#nextAt = Number.POSITIVE_INFINITY;
  }

  /** @param predicts the attempt guessed ports, and may guess better next time; @param fraction random, from 0 to less than 1 */
  failed(now: number, predicts: boolean, fraction: number): void {
    if (predicts && this.#predicted < PREDICTED_ATTEMPTS) {
      this.#predicted++;
      this.#nextAt = now + PREDICTED_PAUSE;
      return;
    }
    this.#predicted = 1;
    this.#nextAt = now + this.#pause * (1 + SPREAD * fraction);
    this.#pause = Math.min(2 * this.#pause, LONGEST_PAUSE);
  }

  /** No attempt could begin, as this host makes its most: nothing has failed. @param fraction as of `failed` */
  crowded(now: number, fraction: number): void {
    this.#nextAt = now + PLACE_PAUSE * (1 + fraction);
  }

  /** There is a direct path; one that is better may be looked for now and then. Whether it lasts is not known yet, so the pauses go on from where they were. */
  succeeded(now: number, isBest: boolean): void {
    this.#predicted = 1;
    this.#nextAt = isBest ? Number.POSITIVE_INFINITY : now + LONGEST_PAUSE;
  }

  /** The next attempt is at that time. */
  postpone(at: number): void {
    this.#nextAt = at;
  }

  /** The network has changed, or a direct path was lost: attempts begin again. */
  restart(now: number): void {
    this.#pause = FIRST_PAUSE;
    this.#predicted = 1;
    this.#nextAt = now;
  }

  /** There is nothing to try: the other end is too old, or it is switched off. */
  stop(): void {
    this.#nextAt = Number.POSITIVE_INFINITY;
  }
}
