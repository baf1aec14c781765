/**
 * Rate at which a pipe drains, measured while it holds bytes: bytes that left, over the time in which others waited.
 *
 * Bytes that the kernel accepted count as left, so an empty kernel buffer looks like a fast network until it is full.
 * So the rate follows quickly once bytes wait, and a pipe from which nothing leaves counts as slow immediately, not
 * only when something leaves.
 */

/** ms of waiting that make a sample. */
const SAMPLE = 20;
/** Weight of a sample in the smoothed rate. */
const WEIGHT = 1 / 4;

export class DrainRate {
  /** Bytes per millisecond; NaN before the first sample. */
  #smoothed = Number.NaN;
  /** When the pipe began to hold bytes within this sample; NaN while it holds none. */
  #busySince = Number.NaN;
  /** In this sample: ms of completed waiting, and bytes that left. */
  #waited = 0;
  #left = 0;

  /** The pipe holds bytes from now on. */
  busy(now: number): void {
    if (Number.isNaN(this.#busySince)) this.#busySince = now;
  }

  /** Counts bytes that have left. @param isIdle the pipe holds nothing any longer */
  sent(bytes: number, isIdle: boolean, now: number): void {
    this.#left += bytes;
    const waited = this.#waitedUntil(now);
    if (waited >= SAMPLE) {
      const sample = this.#left / waited;
      this.#smoothed = Number.isNaN(this.#smoothed) ? sample : this.#smoothed + WEIGHT * (sample - this.#smoothed);
      this.#left = 0;
      this.#waited = 0;
    } else this.#waited = waited;
    this.#busySince = isIdle ? Number.NaN : now;
  }

  /** Returns bytes per millisecond; 0 before the first measurement. */
  at(now: number): number {
    if (Number.isNaN(this.#smoothed)) return 0;
    const waited = this.#waitedUntil(now);
    return waited < SAMPLE ? this.#smoothed : Math.min(this.#smoothed, this.#left / waited);
  }

  #waitedUntil(now: number): number {
    return this.#waited + (Number.isNaN(this.#busySince) ? 0 : now - this.#busySince);
  }
}
