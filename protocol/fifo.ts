/**
 * A queue with constant-time operations at both ends, whatever its length. A queue that is emptied repeatedly keeps its
 * array and allocates nothing.
 */

/** Slots kept in an empty queue, and the number of used slots from which they are cut off. */
const ROOM = 1024;

export class Fifo<T> {
  #items: (T | undefined)[] = [];
  #head = 0;
  #tail = 0;

  get size(): number {
    return this.#tail - this.#head;
  }

  push(item: T): void {
    this.#items[this.#tail++] = item;
  }

  shift(): T | undefined {
    if (this.#head === this.#tail) return undefined;
    const item = this.#items[this.#head];
    this.#items[this.#head++] = undefined;
    if (this.#head === this.#tail) this.#clear();
    else if (this.#head >= ROOM && 2 * this.#head >= this.#tail) this.#compact();
    return item;
  }

  #clear(): void {
    if (this.#items.length > ROOM) this.#items = [];
    this.#head = 0;
    this.#tail = 0;
  }

  #compact(): void {
    this.#items = this.#items.slice(this.#head, this.#tail);
    this.#tail -= this.#head;
    this.#head = 0;
  }
}
