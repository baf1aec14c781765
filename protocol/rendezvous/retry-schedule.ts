/**
 * The times at which a connection searches for a direct path: immediately, again after 5 s, and then after twice the
 * last pause, up to ten minutes. A change of network restarts this, and so does the loss of a direct path. Where ports
 * are predicted, a failed attempt is repeated soon: each guesses again. A pause is extended at random by up to a
 * quarter, so that the clients of one device, or the connections of one client, do not all retry at the same moment.
 */

const FIRST_PAUSE = 5_000;
const LONGEST_PAUSE = 600_000;
/** Fraction of a pause by which it may be longer. */
const SPREAD = 0.25;
/** ms until an attempt that found all slots taken is repeated; at most twice as long. */
const SLOT_PAUSE = 1_000;
/** Consecutive attempts with predicted ports, and ms between them. */
const PREDICTED_ATTEMPTS = 6;
const PREDICTED_PAUSE = 300;

export class RetrySchedule {
  #nextAt: number;
  #pause = FIRST_PAUSE;
  #predicted = 1;

  constructor(now: number) {
    this.#nextAt = now;
  }

  /** Time of the next attempt, ms; Infinity while one is in progress, or none is to be made. */
  get nextAt(): number {
    return this.#nextAt;
  }

  /** Call when an attempt begins. */
  begin(): void {
    this.#nextAt = Number.POSITIVE_INFINITY;
  }

  /**
   * Call when an attempt failed.
   * @param predicts whether it guessed ports, and may guess better next time;
   * @param fraction random, from 0 to less than 1
   */
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

  /**
   * Call when no attempt could begin because this host is at its limit: nothing has failed.
   * @param fraction as for `failed`
   */
  crowded(now: number, fraction: number): void {
    this.#nextAt = now + SLOT_PAUSE * (1 + fraction);
  }

  /**
   * Call when there is a direct path; a better one may be searched for now and then. Whether it lasts is not known yet,
   * so the pauses continue from their last length.
   */
  succeeded(now: number, isBest: boolean): void {
    this.#predicted = 1;
    this.#nextAt = isBest ? Number.POSITIVE_INFINITY : now + LONGEST_PAUSE;
  }

  /** Sets the time of the next attempt. */
  postpone(at: number): void {
    this.#nextAt = at;
  }

  /** Brings the next attempt forward to that time: what this one lacked is then allowed. */
  notAfter(at: number): void {
    this.#nextAt = Math.min(this.#nextAt, at);
  }

  /** Restarts the attempts: the network has changed, or a direct path was lost. */
  restart(now: number): void {
    this.#pause = FIRST_PAUSE;
    this.#predicted = 1;
    this.#nextAt = now;
  }

  /** Stops the attempts: the peer does not know the rendezvous, or direct paths are disabled. */
  stop(): void {
    this.#nextAt = Number.POSITIVE_INFINITY;
  }
}
