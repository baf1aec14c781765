/**
 * One direction of a link: what becomes of a datagram between two hosts.
 *
 * In order: larger than `mtu` → dropped; no room in the queue → dropped; it leaves when the line is free, at `rate`; lost with probability
 * `loss`; arrives `delay` later, plus up to `jitter`, never before an earlier one; with probability `reorder` it is held back by up to
 * `reorderDelay` and others overtake it; with probability `duplicate` it arrives twice. Draws are made in this order for each datagram,
 * also for those with probability 0, so that changing one option does not change the luck of another.
 */
import type { Random } from './random.ts';

export interface LinkOptions {
  /** Probability 0 to 1 that a datagram is lost. Default 0. */
  loss?: number;
  /** One-way delay in ms. Default 5. */
  delay?: number;
  /** Up to this many ms more, evenly distributed, order kept. Default 0. */
  jitter?: number;
  /** Probability 0 to 1 that a datagram is held back. Default 0. */
  reorder?: number;
  /** Up to this many ms, evenly distributed. Default 10. */
  reorderDelay?: number;
  /** Probability 0 to 1 that a datagram arrives twice, the second up to `reorderDelay` later. Default 0. */
  duplicate?: number;
  /** Bits per second, UDP payload counted. Default unlimited. */
  rate?: number;
  /** Bytes that may wait for the line; matters with `rate` only. Default 262,144. */
  queue?: number;
  /** Largest UDP payload in bytes that passes. Default 65,507. */
  mtu?: number;
}

export interface LinkStats {
  sent: number;
  sentBytes: number;
  /** Passed on, duplicates not counted. */
  passed: number;
  lost: number;
  overflowed: number;
  oversize: number;
  duplicated: number;
  reordered: number;
}

export type LinkVerdict = 'passed' | 'lost' | 'overflowed' | 'oversize';

const defaults: Required<LinkOptions> = {
  loss: 0,
  delay: 5,
  jitter: 0,
  reorder: 0,
  reorderDelay: 10,
  duplicate: 0,
  rate: Number.POSITIVE_INFINITY,
  queue: 262_144,
  mtu: 65_507,
};

export class Link {
  readonly stats: LinkStats = { sent: 0, sentBytes: 0, passed: 0, lost: 0, overflowed: 0, oversize: 0, duplicated: 0, reordered: 0 };
  options: Required<LinkOptions>;
  readonly #random: Random;
  #lineFreeAt = 0;
  #lastArrival = 0;

  constructor(options: LinkOptions, random: Random) {
    this.options = { ...defaults, ...options };
    this.#random = random;
  }

  /** @param arrive called with the absolute time of each arrival: not at all, once or twice. */
  offer(length: number, now: number, arrive: (time: number) => void): LinkVerdict {
    const verdict = this.#carry(length, now, arrive);
    this.stats.sent++;
    this.stats.sentBytes += length;
    this.stats[verdict]++;
    return verdict;
  }

  #carry(length: number, now: number, arrive: (time: number) => void): LinkVerdict {
    const { loss, delay, jitter, reorder, reorderDelay, duplicate, rate, queue, mtu } = this.options;
    if (length > mtu) return 'oversize';
    const free = Math.max(now, this.#lineFreeAt);
    if (((free - now) * rate) / 8000 + length > queue && rate !== Number.POSITIVE_INFINITY) return 'overflowed';
    const sent = rate === Number.POSITIVE_INFINITY ? now : free + (length * 8000) / rate;
    this.#lineFreeAt = sent;
    const [isLost, extra, isReordered, holdBack, isDuplicated, later] = this.#draws();
    if (isLost < loss) return 'lost';
    let arrival = Math.max(sent + delay + extra * jitter, this.#lastArrival);
    if (isReordered < reorder) {
      this.stats.reordered++;
      arrival += holdBack * reorderDelay;
    } else {
      this.#lastArrival = arrival;
    }
    arrive(arrival);
    if (isDuplicated < duplicate) {
      this.stats.duplicated++;
      arrive(arrival + later * reorderDelay);
    }
    return 'passed';
  }

  #draws(): [number, number, number, number, number, number] {
    const draw = () => this.#random.fraction();
    return [draw(), draw(), draw(), draw(), draw(), draw()];
  }
}
