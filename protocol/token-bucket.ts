/** A token bucket without a clock of its own: gains `rate` units a second, holds at most `burst`. */
export class TokenBucket {
  readonly #rate: number;
  readonly #burst: number;
  #level: number;
  #filledAt: number;

  /** Starts full. @param rate units a second, > 0; @param burst most units taken at once; @param now ms, monotonic */
  constructor(rate: number, burst: number, now = Number.NEGATIVE_INFINITY) {
    this.#rate = rate;
    this.#burst = burst;
    this.#level = burst;
    this.#filledAt = now;
  }

  /** Takes `amount` units if available; otherwise takes nothing and returns false. */
  take(amount: number, now: number): boolean {
    this.#fill(now);
    if (this.#level < amount) return false;
    this.#level -= amount;
    return true;
  }

  /** Returns units that were taken and not used. */
  put(amount: number): void {
    this.#level = Math.min(this.#burst, this.#level + amount);
  }

  /** Returns the units available. */
  level(now: number): number {
    this.#fill(now);
    return this.#level;
  }

  /** Returns the milliseconds until `amount` units are available; 0 = now. */
  wait(amount: number, now: number): number {
    this.#fill(now);
    return this.#level >= amount ? 0 : ((amount - this.#level) / this.#rate) * 1000;
  }

  /** Returns true when the bucket is full again: it may be forgotten. */
  isFull(now: number): boolean {
    this.#fill(now);
    return this.#level >= this.#burst;
  }

  #fill(now: number): void {
    const elapsed = now - this.#filledAt;
    if (elapsed <= 0) return;
    this.#level = Math.min(this.#burst, this.#level + (elapsed * this.#rate) / 1000);
    this.#filledAt = now;
  }
}
