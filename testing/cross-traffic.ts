/**
 * Other hosts' traffic on a link: packets of one size at random times (a Poisson process) that share the queue and have
 * no receiver in the simulation. It does not slow down when packets are lost.
 */
import type { Random } from './random.ts';

export interface CrossTrafficOptions {
  /** Bits per second on average. */
  rate: number;
  /** Bytes of UDP payload. Default 1,200. */
  size?: number;
}

const DEFAULT_SIZE = 1200;

export class CrossTraffic {
  readonly #random: Random;
  #next = Number.NaN;

  constructor(random: Random) {
    this.#random = random;
  }

  /**
   * Offers every packet up to `now` that was not yet offered, in order of time. The traffic begins at the first call.
   */
  advance({ rate, size = DEFAULT_SIZE }: CrossTrafficOptions, now: number, offer: (length: number, time: number) => void): void {
    const pause = (): number => (-Math.log(1 - this.#random.fraction()) * size * 8000) / rate;
    if (Number.isNaN(this.#next)) this.#next = now + pause();
    for (; this.#next <= now; this.#next += pause()) offer(size, this.#next);
  }
}
