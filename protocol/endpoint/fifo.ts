/** A queue whose both ends cost nothing, whatever its length. */

export class Fifo<T> {
  #items: (T | undefined)[] = [];
  #head = 0;

  get size(): number {
    return this.#items.length - this.#head;
  }

  push(item: T): void {
    this.#items.push(item);
  }

  shift(): T | undefined {
    if (this.#head === this.#items.length) return undefined;
    const item = this.#items[this.#head];
    this.#items[this.#head++] = undefined;
    if (this.#head === this.#items.length) this.#clear();
    else if (this.#head >= 1024 && 2 * this.#head >= this.#items.length) this.#compact();
    return item;
  }

  #clear(): void {
    this.#items.length = 0;
    this.#head = 0;
  }

  #compact(): void {
    this.#items = this.#items.slice(this.#head);
    this.#head = 0;
  }
}
