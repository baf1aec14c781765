/** How many calls to the outside run at a time, of one device and over all: what bounds their memory. */

export class Places {
  readonly #perKey: number;
  readonly #total: number;
  readonly #taken = new Map<string, number>();
  #all = 0;

  constructor(limits: { perKey: number; total: number }) {
    this.#perKey = limits.perKey;
    this.#total = limits.total;
  }

  /** Calls that run. */
  get size(): number {
    return this.#all;
  }

  /** Takes a place. @returns what gives it back, to be called once; null when there is none */
  take(key: string): (() => void) | null {
    const count = this.#taken.get(key) ?? 0;
    if (count >= this.#perKey || this.#all >= this.#total) return null;
    this.#taken.set(key, count + 1);
    this.#all++;
    return () => this.#leave(key);
  }

  #leave(key: string): void {
    const count = this.#taken.get(key)!;
    if (count === 1) this.#taken.delete(key);
    else this.#taken.set(key, count - 1);
    this.#all--;
  }
}
