/**
 * Events and their listeners. Listeners run in the order in which they were added. A listener that throws is logged;
 * the others still run, and `emit` never throws. Adding or removing a listener during an emission takes effect with the
 * next one.
 */
import type { Log } from '../platform/environment.ts';
import { signal as aSignal, callback, check, checkOptions } from '../protocol/arguments.ts';
import { LocalError } from '../protocol/errors/index.ts';
import { Subscription } from './subscription.ts';

/** An event as `events` gives it: its name, and the properties of its value. */
export type EventOf<Events> = { [K in keyof Events]: { readonly type: K } & Events[K] }[keyof Events];

/** Events that an iterator keeps for a slow reader. */
export const MAX_EVENTS = 64;

interface Listener {
  readonly call: (value: never) => void;
}

let emitOn: <Events>(on: Listenable<Events>, event: keyof Events, value: unknown) => void;
let endOf: <Events>(of: Listenable<Events>) => void;

/** An object with events. Applications listen with `on`, `once`, `off` and `events`. */
export abstract class Listenable<Events> {
  readonly #log: Log;
  #listeners: Map<keyof Events, Set<Listener>> | null = null;
  /** The subscription of each array of events that wait for its reader. */
  #readers: Map<EventOf<Events>[], Subscription<EventOf<Events>>> | null = null;
  #isOver = false;

  static {
    emitOn = (on, event, value) => on.#emit(event, value);
    endOf = (of) => of.#end();
  }

  protected constructor(log: Log) {
    this.#log = log;
  }

  /**
   * Calls `listener` with each of these events. A function that is added twice is called twice.
   * @returns a function that stops listening; harmless to call twice
   * @throws LocalError INVALID_ARGUMENT
   */
  on<K extends keyof Events>(event: K, listener: (value: Events[K]) => void): () => void {
    check('the listener', listener, callback);
    return this.#add(event, { call: listener });
  }

  /** Calls `listener` with the next of these events only. @returns and @throws as `on` */
  once<K extends keyof Events>(event: K, listener: (value: Events[K]) => void): () => void {
    check('the listener', listener, callback);
    const call = (value: Events[K]): void => {
      stop();
      listener(value);
    };
    const stop = this.#add(event, { call });
    return stop;
  }

  /** Stops listening with a function that `on` was given, once per call; any other one has no effect. */
  off<K extends keyof Events>(event: K, listener: (value: Events[K]) => void): void {
    for (const each of this.#listeners?.get(event) ?? []) {
      if (each.call !== listener) continue;
      this.#remove(event, each);
      return;
    }
  }

  /**
   * Iterates over all events from now on, until the object has ended, `signal` fires or the loop is left. 64 events are
   * kept for a slow reader; the iterator throws OUT_OF_MEMORY after them when more have come.
   * @throws LocalError INVALID_ARGUMENT
   */
  events(options: { readonly signal?: AbortSignal } = {}): Subscription<EventOf<Events>> {
    checkOptions('events', options, { signal: aSignal });
    const kept: EventOf<Events>[] = [];
    const ended = (): void => void this.#readers?.delete(kept);
    const subscription = new Subscription<EventOf<Events>>({ take: () => kept.shift(), ended }, options.signal);
    if (this.#isOver) subscription.end('ended');
    if (this.#isOver || options.signal?.aborted === true) return subscription;
    this.#readers ??= new Map();
    this.#readers.set(kept, subscription);
    return subscription;
  }

  #emit(event: keyof Events, value: unknown): void {
    for (const { call } of [...(this.#listeners?.get(event) ?? [])]) {
      guarded(this.#log, `listener of ${String(event)}`, () => (call as (value: unknown) => void)(value));
    }
    for (const [kept, subscription] of this.#readers ?? [])
      keep(kept, subscription, { type: event, ...(value as object) } as EventOf<Events>);
  }

  #end(): void {
    this.#isOver = true;
    for (const subscription of this.#readers?.values() ?? []) subscription.end('ended');
    this.#readers = null;
  }

  #add(event: keyof Events, listener: Listener): () => void {
    this.#listeners ??= new Map();
    const listeners = this.#listeners.get(event) ?? new Set();
    this.#listeners.set(event, listeners.add(listener));
    return () => this.#remove(event, listener);
  }

  /** Leaves nothing behind for an event that had a listener only briefly: there may be many emitters. */
  #remove(event: keyof Events, listener: Listener): void {
    const listeners = this.#listeners?.get(event);
    if (listeners?.delete(listener) === true && listeners.size === 0) this.#listeners?.delete(event);
  }
}

/** Emits an event of an object. For the object itself. */
export function emit<Events, K extends keyof Events>(on: Listenable<Events>, event: K, value: Events[K]): void {
  emitOn(on, event, value);
}

/** No event of the object follows: ends its iterators. For the object itself. */
export function endEvents<Events>(of: Listenable<Events>): void {
  endOf(of);
}

/** Events of a part, which emits them through this object. */
export class Emitter<Events> extends Listenable<Events> {
  constructor(log: Log) {
    super(log);
  }

  emit<K extends keyof Events>(event: K, value: Events[K]): void {
    emitOn(this, event, value);
  }
}

function keep<T>(kept: T[], subscription: Subscription<T>, event: T): void {
  if (kept.length >= MAX_EVENTS) {
    subscription.end(new LocalError('OUT_OF_MEMORY', `more than ${MAX_EVENTS} events were not read`));
    return;
  }
  kept.push(event);
  subscription.wake();
}

/** Runs code of the application: an exception is logged under `what` and not rethrown. @returns false when it threw */
export function guarded(log: Log, what: string, run: () => void): boolean {
  try {
    run();
    return true;
  } catch (error) {
    log.error(`${what} threw`, { error: error instanceof Error ? (error.stack ?? error.message) : String(error) });
    return false;
  }
}
