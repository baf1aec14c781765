/**
 * Timers of many owners: a binary heap by time, with each owner at most once. Finding the next is constant, changing
 * one is O(log n).
 */

/** The heap's fields in its owners. */
export interface Timed {
  /** ms; Infinity when not in the heap. */
  timerAt: number;
  /** Position in the heap, -1 when not in it. */
  timerIndex: number;
}

export class Timers<T extends Timed> {
  readonly #heap: T[] = [];

  get size(): number {
    return this.#heap.length;
  }

  /** Returns the time of the earliest timer, Infinity when there is none. */
  next(): number {
    return this.#heap[0]?.timerAt ?? Number.POSITIVE_INFINITY;
  }

  /** Sets or changes the owner's timer; Infinity removes it. */
  set(owner: T, at: number): void {
    if (at === Number.POSITIVE_INFINITY) {
      this.remove(owner);
      return;
    }
    if (owner.timerIndex < 0) {
      owner.timerIndex = this.#heap.length;
      this.#heap.push(owner);
    }
    const earlier = at < owner.timerAt;
    owner.timerAt = at;
    if (earlier) this.#up(owner);
    else this.#down(owner);
  }

  remove(owner: T): void {
    const index = owner.timerIndex;
    if (index < 0) return;
    const last = this.#heap.pop()!;
    owner.timerIndex = -1;
    owner.timerAt = Number.POSITIVE_INFINITY;
    if (last === owner) return;
    this.#place(last, index);
    this.#up(last);
    this.#down(last);
  }

  /** Removes and returns the earliest owner whose time has come, undefined when there is none. */
  due(now: number): T | undefined {
    const first = this.#heap[0];
    if (first === undefined || first.timerAt > now) return undefined;
    this.remove(first);
    return first;
  }

  #up(owner: T): void {
    let index = owner.timerIndex;
    while (index > 0) {
      const parent = this.#heap[(index - 1) >> 1]!;
      if (parent.timerAt <= owner.timerAt) break;
      this.#place(parent, index);
      index = (index - 1) >> 1;
    }
    this.#place(owner, index);
  }

  #down(owner: T): void {
    let index = owner.timerIndex;
    for (;;) {
      let child = 2 * index + 1;
      if (child >= this.#heap.length) break;
      if (child + 1 < this.#heap.length && this.#heap[child + 1]!.timerAt < this.#heap[child]!.timerAt) child++;
      if (this.#heap[child]!.timerAt >= owner.timerAt) break;
      this.#place(this.#heap[child]!, index);
      index = child;
    }
    this.#place(owner, index);
  }

  #place(owner: T, index: number): void {
    this.#heap[index] = owner;
    owner.timerIndex = index;
  }
}
