/** The events of a simulation in order: a binary heap by time, then phase, then order of scheduling. */

/** Order within one instant: deliveries and timers first, then deferred calls. */
export const Phase = { ARRIVAL: 0, DEFERRED: 1 } as const;
export type Phase = (typeof Phase)[keyof typeof Phase];

/** A scheduled event. */
export interface SimulationEvent {
  readonly time: number;
  readonly phase: Phase;
  readonly order: number;
  /** Null when it was cancelled. */
  run: (() => void) | null;
}

/** Scheduled events, the next one first. */
export class EventQueue {
  readonly #heap: SimulationEvent[] = [];
  #scheduled = 0;

  /** Number of events ever scheduled. */
  get scheduled(): number {
    return this.#scheduled;
  }

  push(time: number, phase: Phase, run: () => void): SimulationEvent {
    const event: SimulationEvent = { time, phase, order: this.#scheduled++, run };
    this.#heap.push(event);
    this.#rise(this.#heap.length - 1);
    return event;
  }

  /** Returns the next event that was not cancelled. */
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
    const heap = this.#heap;
    const event = heap[start]!;
    let at = start;
    while (at > 0) {
      const above = heap[(at - 1) >> 1]!;
      if (!before(event, above)) break;
      heap[at] = above;
      at = (at - 1) >> 1;
    }
    heap[at] = event;
  }

  #sink(start: number): void {
    const heap = this.#heap;
    const event = heap[start]!;
    const { length } = heap;
    let at = start;
    for (let below = 2 * at + 1; below < length; below = 2 * at + 1) {
      if (below + 1 < length && before(heap[below + 1]!, heap[below]!)) below++;
      const least = heap[below]!;
      if (!before(least, event)) break;
      heap[at] = least;
      at = below;
    }
    heap[at] = event;
  }
}

function before(a: SimulationEvent, b: SimulationEvent): boolean {
  return a.time !== b.time ? a.time < b.time : a.phase !== b.phase ? a.phase < b.phase : a.order < b.order;
}
