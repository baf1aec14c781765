/**
 * Faults of single datagrams on a link: loss, alone or in bursts, corruption, and times in which the link is down.
 *
 * Bursts follow the Gilbert-Elliott model with loss 0 in the good and 1 in the bad state: a Markov chain, one step per
 * datagram. Its parameters make the share of lost datagrams `loss` and the mean length of a bad period `burst`
 * datagrams.
 */
import type { Random } from './random.ts';

/** The link carries nothing from `from` on for `length`, and again after each `every`. Virtual ms. */
export interface Outage {
  from: number;
  length: number;
  every?: number;
}

/** One byte of a datagram is changed: XORed with `mask`, never 0. */
export interface Damage {
  readonly at: number;
  readonly mask: number;
}

/** Every second damage lies in these first bytes: headers deserve more attention than payload. */
const HEADERS = 50;

/** Turns probabilities and draws into faults; remembers the faults of a link's last datagrams. */
export class FaultChain {
  #inARow = 0;

  /**
   * Returns whether the fault strikes this datagram.
   * @param draw from 0 up to 1
   * @param burst mean length of a burst in datagrams; undefined: each datagram independently
   * @param longest most strikes in a row
   */
  strikes(draw: number, probability: number, burst: number | undefined, longest: number): boolean {
    const struck = this.#inARow < longest && draw < this.#chance(probability, burst);
    this.#inARow = struck ? this.#inARow + 1 : 0;
    return struck;
  }

  #chance(probability: number, burst: number | undefined): number {
    if (burst === undefined || probability === 0 || probability === 1) return probability;
    return this.#inARow > 0 ? 1 - 1 / burst : probability / (burst * (1 - probability));
  }
}

/** Returns whether the link is down at `now`, virtual ms. */
export function isDown(outages: readonly Outage[], now: number): boolean {
  return outages.some(({ from, length, every = Number.POSITIVE_INFINITY }) => {
    const since = now - from;
    return since >= 0 && (since < every ? since : since % every) < length;
  });
}

/** Chooses the change in a datagram of `length` bytes, at least 1. */
export function damage(random: Random, length: number): Damage {
  const range = random.fraction() < 0.5 ? Math.min(HEADERS, length) : length;
  return { at: Math.floor(random.fraction() * range), mask: 1 + (random.u32() % 255) };
}

/** Returns a damaged copy. */
export function damaged(data: Uint8Array, { at, mask }: Damage): Uint8Array {
  const copy = data.slice();
  if (at < copy.length) copy[at]! ^= mask;
  return copy;
}
