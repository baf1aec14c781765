/**
 * How fast a pipe takes what it is given, measured while it holds something: bytes that left, over the time in which others waited.
 *
 * What the kernel takes counts as left, so an empty buffer of the kernel looks like a fast network for as long as it lasts. So the rate follows quickly
 * once bytes wait, and a pipe from which nothing leaves is slow at once and not only when something does.
 */

/** ms of waiting that make a sample. */
const SAMPLE = 20;
/** Part of a sample in the smoothed rate. */
const WEIGHT = 1 / 4;

export class DrainRate {
  /** Bytes a millisecond; NaN before the first sample. */
  #smoothed = Number.NaN;
  /** When the pipe began to hold something within this sample; NaN while it holds nothing. */
  #busySince = Number.NaN;
  /** Of this sample: ms of waiting that are over, and bytes that left. */
  #waited = 0;
  #left = 0;

  /** The pipe holds something from now on. */
  busy(now: number): void {
    if (Number.isNaN(this.#busySince)) this.#busySince = now;
  }

  /** So many bytes have left. @param isIdle it holds nothing any more */
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

  /** Bytes a millisecond; 0 before anything was measured. */
  at(now: number): number {
    if (Number.isNaN(this.#smoothed)) return 0;
    const waited = this.#waitedUntil(now);
    return waited < SAMPLE ? this.#smoothed : Math.min(this.#smoothed, this.#left / waited);
  }

  #waitedUntil(now: number): number {
    return this.#waited + (Number.isNaN(this.#busySince) ? 0 : now - this.#busySince);
  }
}
