/** A token bucket without a clock of its own: `rate` units a second, at most `burst` saved up. */
export class TokenBucket {
  readonly #rate: number;
  readonly #burst: number;
  #level: number;
  #filledAt: number;

  /** @param rate units a second, > 0; @param burst most units taken at once; @param now ms, monotonic; it starts full */
  constructor(rate: number, burst: number, now = Number.NEGATIVE_INFINITY) {
    this.#rate = rate;
    this.#burst = burst;
    this.#level = burst;
    this.#filledAt = now;
  }

  /** Takes `amount` units when that many are there; false, and nothing taken, when not. */
  take(amount: number, now: number): boolean {
    this.#fill(now);
    if (this.#level < amount) return false;
    this.#level -= amount;
    return true;
  }

  /** Puts units back that were taken and not used. */
  put(amount: number): void {
    this.#level = Math.min(this.#burst, this.#level + amount);
  }

  /** Units that are there. */
  level(now: number): number {
    this.#fill(now);
    return this.#level;
  }

  /** Milliseconds until `amount` units are there; 0 = now. */
  wait(amount: number, now: number): number {
    this.#fill(now);
    return this.#level >= amount ? 0 : ((amount - this.#level) / this.#rate) * 1000;
  }

  /** True when nothing was taken for so long that it is full again: it may be forgotten. */
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
