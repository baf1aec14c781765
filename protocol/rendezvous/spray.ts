/**
 * Ports to spray at a random NAT, from an end with one port.
 *
 * The hard side opens 256 plain sockets towards us, which have 256 of the 64,512 ports of its NAT. We send to random
 * ports, each once: one of n hits with probability 1 - (1 - 256 / 64,512)^n, which is a half after 174 ports and 98 of
 * 100 after 1,024. At 100 a second that is 1.7 s and 10.2 s.
 *
 * Not here: whether to spray, towards which peer (send-budget.ts), and the packets.
 */

/** Most ports of one spray (PROTOCOL.md §6). */
export const SPRAY_PORTS = 1024;
/** Sockets that the hard side opens, if its process may. */
export const SPRAY_SOCKETS = 256;
/** ms from one port to the next. */
export const SPRAY_INTERVAL = 10;

const LOWEST = 1024;
const HIGHEST = 65_535;
/** Our constant: the most that leave at once after a late timer; the rest of the backlog leaves later. */
const MAX_AT_ONCE = 5;

/** Random ports, each once, at their times. Poll `next` until it returns null, and again at `nextTimeout`. */
export class SprayPlan {
  readonly #random: () => number;
  readonly #count: number;
  /** Entries of the shuffled range that differ from their own index. */
  readonly #swapped = new Map<number, number>();
  #given = 0;
  #due: number;

  /**
   * @param random from 0 up to but not including 1;
   * @param now ms, when the first port is due;
   * @param count 1 to SPRAY_PORTS
   */
  constructor(random: () => number, now: number, count = SPRAY_PORTS) {
    this.#random = random;
    this.#count = Math.min(count, SPRAY_PORTS);
    this.#due = now;
  }

  /** Returns the next port, null when none is due or all were returned. */
  next(now: number): number | null {
    if (this.done || now < this.#due) return null;
    this.#due = Math.max(this.#due, now - (MAX_AT_ONCE - 1) * SPRAY_INTERVAL) + SPRAY_INTERVAL;
    return this.#draw();
  }

  /** Returns when the next port is due, Infinity when all were returned. */
  nextTimeout(): number {
    return this.done ? Number.POSITIVE_INFINITY : this.#due;
  }

  /** True when all were returned. */
  get done(): boolean {
    return this.#given >= this.#count;
  }

  /** One step of Fisher and Yates: an undrawn entry takes the position of the drawn one. */
  #draw(): number {
    const first = LOWEST + this.#given++;
    const place = first + Math.floor(this.#random() * (HIGHEST + 1 - first));
    const port = this.#swapped.get(place) ?? place;
    this.#swapped.set(place, this.#swapped.get(first) ?? first);
    this.#swapped.delete(first);
    return port;
  }
}
