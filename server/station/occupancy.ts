/** How many sessions each address has, so that one address cannot take every place of the base station. */
export class Occupancy {
  readonly #limit: number;
  readonly #taken = new Map<string, number>();

  constructor(limit: number) {
    this.#limit = limit;
  }

  /** Addresses with a session now. */
  get size(): number {
    return this.#taken.size;
  }

  /** @returns what gives the place back, to be called once; null when the address has all it may have */
  take(address: string): (() => void) | null {
    const taken = this.#taken.get(address) ?? 0;
    if (taken >= this.#limit) return null;
    this.#taken.set(address, taken + 1);
    return () => this.#giveBack(address);
  }

  #giveBack(address: string): void {
    const left = (this.#taken.get(address) ?? 0) - 1;
    if (left > 0) this.#taken.set(address, left);
    else this.#taken.delete(address);
  }
}
