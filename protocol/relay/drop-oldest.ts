/**
 * A small bounded queue that drops its oldest element when it is full: for packets, old ones are worth least. A ring,
 * so that neither end needs a shift.
 */
export class DropOldestQueue<Element> {
  readonly #ring: (Element | undefined)[];
  #head = 0;
  #length = 0;

  /** @param capacity elements, at least 1 */
  constructor(capacity: number) {
    this.#ring = new Array<Element | undefined>(capacity).fill(undefined);
  }

  get length(): number {
    return this.#length;
  }

  /** @returns the dropped element, or undefined */
  push(element: Element): Element | undefined {
    const dropped = this.#length === this.#ring.length ? this.shift() : undefined;
    this.#ring[(this.#head + this.#length) % this.#ring.length] = element;
    this.#length++;
    return dropped;
  }

  /** Returns the oldest element without removing it; undefined when empty. */
  peek(): Element | undefined {
    return this.#length === 0 ? undefined : this.#ring[this.#head];
  }

  /** Removes and returns the oldest element; undefined when empty. */
  shift(): Element | undefined {
    if (this.#length === 0) return undefined;
    const element = this.#ring[this.#head];
    this.#ring[this.#head] = undefined;
    this.#head = (this.#head + 1) % this.#ring.length;
    this.#length--;
    return element;
  }
}
