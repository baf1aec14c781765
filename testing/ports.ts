/**
 * The outside port of a new NAT mapping (RFC 4787 §4.2): the inside port if it is free, the next one of a sequence, or
 * a random one.
 *
 * A sequence moves by a constant stride modulo 65,536 and skips the ports below 1,024. When it finds no port (a stride
 * that shares a factor with 65,536 visits only some of them), or enough random draws found none, the next free port
 * above is taken.
 */
import type { Random } from './random.ts';

/** How a NAT chooses the port of a new mapping. */
export type PortAllocation = 'preserve' | 'sequential' | 'random';

/** NATs assign no port below this (RFC 6335 §6, system ports), except to an inside socket that has one itself. */
export const FIRST_PORT = 1024;
const PORTS = 65_536;
const MAX_DRAWS = 64;

/** Assigns the ports of one outside address. */
export class PortAllocator {
  readonly #allocation: PortAllocation;
  readonly #stride: number;
  /** Steps after which the sequence repeats. */
  readonly #cycle: number;
  readonly #random: Random;
  #last: number;

  /** @param stride of a sequence: any integer that is not a multiple of 65,536; negative counts down */
  constructor(allocation: PortAllocation, stride: number, random: Random) {
    this.#allocation = allocation;
    this.#stride = ((stride % PORTS) + PORTS) % PORTS;
    this.#cycle = PORTS / Math.min(this.#stride & -this.#stride || PORTS, PORTS);
    this.#random = random;
    this.#last = this.#any();
  }

  /** Returns a free port, null when there is none. @param wanted the inside port */
  allocate(wanted: number, isFree: (port: number) => boolean): number | null {
    if (this.#allocation === 'preserve') return isFree(wanted) ? wanted : nextFree(wanted, isFree);
    return this.#allocation === 'sequential' ? this.#next(isFree) : this.#draw(isFree);
  }

  #next(isFree: (port: number) => boolean): number | null {
    let port = this.#last;
    for (let steps = 0; steps < this.#cycle; steps++) {
      port = (port + this.#stride) % PORTS;
      if (port >= FIRST_PORT && isFree(port)) return this.#give(port);
    }
    return this.#give(nextFree(this.#last, isFree));
  }

  #draw(isFree: (port: number) => boolean): number | null {
    for (let draws = 0; draws < MAX_DRAWS; draws++) {
      const port = this.#any();
      if (isFree(port)) return port;
    }
    return nextFree(this.#any(), isFree);
  }

  #give(port: number | null): number | null {
    this.#last = port ?? this.#last;
    return port;
  }

  #any(): number {
    return FIRST_PORT + Math.floor(this.#random.fraction() * (PORTS - FIRST_PORT));
  }
}

/** Returns the next free port above, wrapping to {@link FIRST_PORT} after the last. */
function nextFree(port: number, isFree: (port: number) => boolean): number | null {
  const start = Math.max(port, FIRST_PORT - 1);
  for (let steps = 1; steps <= PORTS - FIRST_PORT; steps++) {
    const next = FIRST_PORT + ((start + steps - FIRST_PORT) % (PORTS - FIRST_PORT));
    if (isFree(next)) return next;
  }
  return null;
}
