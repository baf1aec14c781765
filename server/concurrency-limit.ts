/**
 * Limits how many operations of a kind run at a time, for each key (an address, a device) and in total, so that one
 * peer cannot take every slot: sessions of an address, calls of a device to the outside.
 */

/** Concurrent slots; unlimited where a number is missing. */
export interface ConcurrencyLimits {
  readonly perKey?: number;
  /**
   * Replaces `perKey`, where it is less, while half of the total or more is in use: the rest is for other keys.
   * Default: `perKey`.
   */
  readonly perKeyAboveHalf?: number;
  readonly total?: number;
}

/** Counts the slots in use. A key without slots takes no memory. */
export class ConcurrencyLimit {
  readonly #perKey: number;
  readonly #perKeyAboveHalf: number;
  readonly #total: number;
  readonly #inUse = new Map<string, number>();
  #size = 0;

  constructor({ perKey = Number.POSITIVE_INFINITY, perKeyAboveHalf = perKey, total = Number.POSITIVE_INFINITY }: ConcurrencyLimits) {
    this.#perKey = perKey;
    this.#perKeyAboveHalf = Math.min(perKey, perKeyAboveHalf);
    this.#total = total;
  }

  /** Slots in use. */
  get size(): number {
    return this.#size;
  }

  /** Slots in use by the key. */
  inUse(key: string): number {
    return this.#inUse.get(key) ?? 0;
  }

  /**
   * Takes a slot.
   * @returns a function that releases it, safe to call twice; null when the key or the total has reached its limit
   */
  acquire(key: string): (() => void) | null {
    const inUse = this.inUse(key);
    if (inUse >= this.#share || this.#size >= this.#total) return null;
    this.#inUse.set(key, inUse + 1);
    this.#size++;
    let isHeld = true;
    return () => {
      if (isHeld) this.#release(key);
      isHeld = false;
    };
  }

  /** Slots that a key may have now. */
  get #share(): number {
    return this.#size < Math.floor(this.#total / 2) ? this.#perKey : this.#perKeyAboveHalf;
  }

  #release(key: string): void {
    const left = this.#inUse.get(key)! - 1;
    if (left === 0) this.#inUse.delete(key);
    else this.#inUse.set(key, left);
    this.#size--;
  }
}
