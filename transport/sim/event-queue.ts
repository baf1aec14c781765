/** The events of a simulation in the order they happen: a binary heap by time, then phase, then order of scheduling. */

/** What happens within one instant: deliveries and timers first, then what was deferred until after them. */
export const Phase = { ARRIVAL: 0, DEFERRED: 1 } as const;
export type Phase = (typeof Phase)[keyof typeof Phase];

/** Something that is to happen. */
export interface SimulationEvent {
  readonly time: number;
  readonly phase: Phase;
  readonly order: number;
  /** Null when it was cancelled. */
  run: (() => void) | null;
}

/** What is to happen, the next first. */
export class EventQueue {
  readonly #heap: SimulationEvent[] = [];
  #scheduled = 0;

  /** How many events were ever scheduled. */
  get scheduled(): number {
    return this.#scheduled;
  }

  push(time: number, phase: Phase, run: () => void): SimulationEvent {
    const event: SimulationEvent = { time, phase, order: this.#scheduled++, run };
    this.#heap.push(event);
    this.#rise(this.#heap.length - 1);
    return event;
  }

  /** The next event that was not cancelled. */
  peek(): SimulationEvent | undefined {
    while (this.#heap.length > 0 && this.#heap[0]!.run === null) this.#removeFirst();
    return this.#heap[0];
  }

  pop(): SimulationEvent | undefined {
    const event = this.peek();
    if (event !== undefined) this.#removeFirst();
    return event;
  }

  #removeFirst(): void {
    const last = this.#heap.pop()!;
    if (this.#heap.length === 0) return;
    this.#heap[0] = last;
    this.#sink(0);
  }

  #rise(start: number): void {
    for (let i = start; i > 0; ) {
      const parent = (i - 1) >> 1;
      if (!this.#swapIfBefore(i, parent)) return;
      i = parent;
    }
  }

  #sink(start: number): void {
    for (let i = start; ; ) {
      const left = 2 * i + 1;
      if (left >= this.#heap.length) return;
      const right = left + 1;
      const least = right < this.#heap.length && before(this.#heap[right]!, this.#heap[left]!) ? right : left;
      if (!this.#swapIfBefore(least, i)) return;
      i = least;
    }
  }

  #swapIfBefore(child: number, parent: number): boolean {
    const [low, high] = [this.#heap[child]!, this.#heap[parent]!];
    if (!before(low, high)) return false;
    this.#heap[child] = high;
    this.#heap[parent] = low;
    return true;
  }
}

function before(a: SimulationEvent, b: SimulationEvent): boolean {
  return a.time !== b.time ? a.time < b.time : a.phase !== b.phase ? a.phase < b.phase : a.order < b.order;
}
