/**
 * One direction of a link: what happens to a datagram between two hosts.
 *
 * In order: the link is down, or the datagram is larger than `mtu` → dropped; no room in the queue, which other traffic
 * may share → dropped; it leaves when the line is free, at `rate`; lost with probability `loss`; one byte changed with
 * probability `corrupt`; arrives `delay` later, plus up to `jitter`, never before an earlier one; with probability
 * `reorder` it is held back by up to `reorderDelay` and others overtake it; with probability `duplicate` it arrives
 * twice. Draws are made in this order for each datagram, also for those with probability 0, so that changing one option
 * does not change the draws of another; corruption and cross traffic have their own draws.
 */
import { CrossTraffic, type CrossTrafficOptions } from './cross-traffic.ts';
import { type Damage, damage, FaultChain, isDown, type Outage } from './faults.ts';
import type { Random } from './random.ts';

/** Properties of a link. */
export interface LinkOptions {
  /** Probability 0 to 1 that a datagram is lost. Default 0. */
  loss?: number;
  /**
   * Loss comes in bursts of this many datagrams on average (Gilbert-Elliott), `loss` being the share lost. Default:
   * independent losses.
   */
  burst?: number | undefined;
  /** Probability 0 to 1 that one byte arrives changed. Default 0. */
  corrupt?: number;
  /** Most datagrams lost in a row, and most corrupted in a row. Default unlimited. */
  longestBurst?: number;
  /** When the link carries nothing. Default never. */
  outages?: readonly Outage[];
  /** Other hosts' packets in the same queue; matters with `rate` only. Default none. */
  crossTraffic?: CrossTrafficOptions | null;
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
  /** Largest UDP payload that passes, bytes. Default 65,507. */
  mtu?: number;
}

/** Datagrams counted since the link was made. */
export interface LinkStats {
  sent: number;
  sentBytes: number;
  /** Passed on, duplicates excluded. */
  passed: number;
  lost: number;
  overflowed: number;
  oversize: number;
  /** Sent while the link was down. */
  down: number;
  corrupted: number;
  duplicated: number;
  reordered: number;
  /** Packets of other hosts, and those of them that found no room. */
  crossSent: number;
  crossOverflowed: number;
}

/** What the link did with a datagram. */
export type LinkVerdict = 'passed' | 'lost' | 'overflowed' | 'oversize' | 'down';

const defaults: Required<LinkOptions> = {
  loss: 0,
  burst: undefined,
  corrupt: 0,
  longestBurst: Number.POSITIVE_INFINITY,
  outages: [],
  crossTraffic: null,
  delay: 5,
  jitter: 0,
  reorder: 0,
  reorderDelay: 10,
  duplicate: 0,
  rate: Number.POSITIVE_INFINITY,
  queue: 262_144,
  mtu: 65_507,
};

/** One direction of a link. */
export class Link {
  readonly stats: LinkStats = {
    sent: 0,
    sentBytes: 0,
    passed: 0,
    lost: 0,
    overflowed: 0,
    oversize: 0,
    down: 0,
    corrupted: 0,
    duplicated: 0,
    reordered: 0,
    crossSent: 0,
    crossOverflowed: 0,
  };
  options: Required<LinkOptions>;
  readonly #random: Random;
  readonly #corruption: Random;
  readonly #cross: CrossTraffic;
  readonly #losses = new FaultChain();
  readonly #corruptions = new FaultChain();
  #lineFreeAt = 0;
  #lastArrival = 0;

  constructor(options: LinkOptions, random: Random) {
    this.options = { ...defaults, ...options };
    this.#random = random;
    this.#corruption = random.fork('corruption');
    this.#cross = new CrossTraffic(random.fork('cross traffic'));
  }

  /** When all accepted datagrams have left the line, absolute time; in the past when nothing waits. */
  get busyUntil(): number {
    return this.#lineFreeAt;
  }

  /**
   * @param arrive called with the absolute time of each arrival and the change on the way: not at all, once or twice
   */
  offer(length: number, now: number, arrive: (time: number, damage: Damage | null) => void): LinkVerdict {
    const verdict = this.#carry(length, now, arrive);
    this.stats.sent++;
    this.stats.sentBytes += length;
    this.stats[verdict]++;
    return verdict;
  }

  #carry(length: number, now: number, arrive: (time: number, damage: Damage | null) => void): LinkVerdict {
    const { loss, burst, longestBurst, outages, delay, jitter, reorder, reorderDelay, duplicate, mtu } = this.options;
    if (isDown(outages, now)) return 'down';
    if (length > mtu) return 'oversize';
    this.#advanceCross(now);
    const sent = this.#enqueue(length, now);
    if (sent === null) return 'overflowed';
    const [isLost, extra, isReordered, holdBack, isDuplicated, later] = this.#draws();
    if (this.#losses.strikes(isLost, loss, burst, longestBurst)) return 'lost';
    const change = this.#damage(length);
    let arrival = Math.max(sent + delay + extra * jitter, this.#lastArrival);
    if (isReordered < reorder) {
      this.stats.reordered++;
      arrival += holdBack * reorderDelay;
    } else {
      this.#lastArrival = arrival;
    }
    arrive(arrival, change);
    if (isDuplicated < duplicate) {
      this.stats.duplicated++;
      arrive(arrival + later * reorderDelay, change);
    }
    return 'passed';
  }

  /** Returns when it leaves the line, null when the queue has no room (drop-tail). */
  #enqueue(length: number, now: number): number | null {
    const { rate, queue } = this.options;
    if (rate === Number.POSITIVE_INFINITY) return now;
    const free = Math.max(now, this.#lineFreeAt);
    if (((free - now) * rate) / 8000 + length > queue) return null;
    this.#lineFreeAt = free + (length * 8000) / rate;
    return this.#lineFreeAt;
  }

  /** Adds the cross traffic since our last datagram. */
  #advanceCross(now: number): void {
    const { crossTraffic } = this.options;
    if (crossTraffic === null) return;
    this.#cross.advance(crossTraffic, now, (length, time) => {
      this.stats.crossSent++;
      if (this.#enqueue(length, time) === null) this.stats.crossOverflowed++;
    });
  }

  #damage(length: number): Damage | null {
    const { corrupt, longestBurst } = this.options;
    if (corrupt === 0 || !this.#corruptions.strikes(this.#corruption.fraction(), corrupt, undefined, longestBurst)) return null;
    this.stats.corrupted++;
    return damage(this.#corruption, length);
  }

  #draws(): [number, number, number, number, number, number] {
    const draw = () => this.#random.fraction();
    return [draw(), draw(), draw(), draw(), draw(), draw()];
  }
}
