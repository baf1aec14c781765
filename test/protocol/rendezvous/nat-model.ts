/**
 * A NAT for the tests of hard NATs: the external port of each packet, with foreign flows (Poisson, seeded) that take
 * ports in between.
 */
import type { NatSample } from '../../../protocol/rendezvous/nat-class.ts';
import type { Random } from '../../../testing/random.ts';

export interface ModelOptions {
  readonly mapping: 'independent' | 'address' | 'address-port';
  readonly ports: 'preserve' | 'sequential' | 'random';
  readonly stride?: number;
  /** Foreign flows a second. */
  readonly foreign?: number;
  /** Range of external ports. */
  readonly lowest?: number;
  readonly highest?: number;
  readonly address?: string;
}

export class ModelNat {
  readonly address: string;
  readonly #options: ModelOptions;
  readonly #random: Random;
  readonly #lowest: number;
  readonly #size: number;
  readonly #mappings = new Map<string, number>();
  readonly #taken = new Set<number>();
  #next: number;
  #nextForeign: number;

  constructor(random: Random, options: ModelOptions) {
    this.#random = random;
    this.#options = options;
    this.#lowest = options.lowest ?? 1024;
    this.#size = (options.highest ?? 0xffff) - this.#lowest + 1;
    this.address = options.address ?? '198.51.100.7';
    this.#next = Math.floor(random.fraction() * this.#size);
    this.#nextForeign = this.#pause();
  }

  /** Returns the external port of a packet that leaves at `now`; times never go back. */
  send(local: number, to: string, toPort: number, now: number): number {
    this.#foreignFlows(now);
    const { mapping } = this.#options;
    const key = mapping === 'independent' ? `${local}` : mapping === 'address' ? `${local} ${to}` : `${local} ${to} ${toPort}`;
    let port = this.#mappings.get(key);
    if (port === undefined) {
      port = this.#give(local);
      this.#mappings.set(key, port);
    }
    return port;
  }

  sample(local: number, to: string, toPort: number, at: number): NatSample {
    return { local, to, toPort, mapped: { address: this.address, port: this.send(local, to, toPort, at) }, at };
  }

  #give(local: number): number {
    const { ports, stride = 1 } = this.#options;
    if (ports === 'preserve') return this.#taken.has(local) ? this.#free() : this.#take(local);
    if (ports === 'random') return this.#free();
    this.#next = (((this.#next + stride) % this.#size) + this.#size) % this.#size;
    return this.#lowest + this.#next;
  }

  #free(): number {
    for (;;) {
      const port = this.#lowest + Math.floor(this.#random.fraction() * this.#size);
      if (!this.#taken.has(port)) return this.#take(port);
    }
  }

  #take(port: number): number {
    this.#taken.add(port);
    return port;
  }

  #foreignFlows(now: number): void {
    for (; this.#nextForeign <= now; this.#nextForeign += this.#pause()) if (this.#options.ports === 'sequential') this.#give(0);
  }

  #pause(): number {
    const { foreign = 0 } = this.#options;
    return foreign === 0 ? Number.POSITIVE_INFINITY : (-Math.log(1 - this.#random.fraction()) * 1000) / foreign;
  }
}
