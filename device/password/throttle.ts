/**
 * Limits password attempts (PROTOCOL.md §8). It has no clock of its own: `now` is monotonic milliseconds.
 *
 * Theory of operation. A client belongs to one of three classes with separate budgets: `paired`, a key paired to this
 * very user; `local`; `remote`. Each class has 256 slots of fixed memory. A keyed hash picks a name's slot, so known
 * and unknown names are counted alike and an attacker cannot choose which names share a slot. Per slot five failures
 * are free, then each doubles the next wait, from 1 s to 900 s, and one failure is forgiven per 900 s after the last; a
 * remote slot allows 100 failures a day. Per class, over all names, ten failures may come in a burst, then one a
 * second; and five runs may begin per second.
 *
 * An attempt is charged before it is checked and given back when it was right, so that parallel attempts cannot outrun
 * the count.
 */
import { TokenBucket } from '../../protocol/token-bucket.ts';

/** The client's class with regard to the user of that name. */
export type AttemptClass = 'paired' | 'local' | 'remote';
export const attemptClasses: readonly AttemptClass[] = ['paired', 'local', 'remote'];

export const SLOTS = 256;
/** Failures that cost no wait. */
export const FREE = 5;
/** Longest wait; also the time after which one failure is forgiven. */
export const LONGEST_WAIT = 900_000;
export const SECOND = 1000;
const DAY = 86_400_000;
/** Failures of a remote slot in a day. */
export const DAILY = 100;
/** Further failures change nothing: the wait is the longest. */
const MAX_COUNTED = FREE + Math.ceil(Math.log2(LONGEST_WAIT / SECOND));
export const DEVICE_BURST = 10;
export const DEVICE_RATE = 1;
/** Runs that may begin per second. */
export const BEGIN_RATE = 5;

/** Counters of one slot. */
interface Slot {
  failures: number;
  /** Time up to which `failures` were forgiven; at first, that of the latest failure. */
  countedAt: number;
  /** No attempt before this time. */
  blockedUntil: number;
  dayBegan: number;
  today: number;
}

interface Counters {
  readonly slots: readonly Slot[];
  readonly failures: TokenBucket;
  readonly begins: TokenBucket;
}

/**
 * The state of a class kept across a restart. Times are relative: ms before the save, and for `blocked` ms after it.
 */
export interface ThrottleClassState {
  /** Level of the bucket of failures. */
  readonly failures: number;
  /** Slots in use. */
  readonly slots: readonly (readonly [index: number, failures: number, counted: number, blocked: number, day: number, today: number])[];
}

export type ThrottleState = Readonly<Record<AttemptClass, ThrottleClassState>>;

/** A charged attempt. */
export interface Charge {
  /** Refunds the charge: the password was right. */
  giveBack(): void;
}

export class PasswordThrottle {
  readonly #hash: (text: string) => number;
  readonly #counters: Readonly<Record<AttemptClass, Counters>> = { paired: counters(), local: counters(), remote: counters() };

  /** @param hash keyed, so that an attacker cannot compute it; any integer from 0 */
  constructor(hash: (text: string) => number) {
    this.#hash = hash;
  }

  /** Whether a run, which costs work, may begin. False above the rate, or while an attempt would be refused anyway. */
  begin(kind: AttemptClass, name: string, now: number): boolean {
    const { begins } = this.#counters[kind];
    return this.#wait(kind, name, now) === 0 && begins.take(1, now);
  }

  /** Charges an attempt; null when it is refused, and then nothing is charged. */
  charge(kind: AttemptClass, name: string, now: number): Charge | null {
    if (this.#wait(kind, name, now) > 0) return null;
    const { failures } = this.#counters[kind];
    const slot = this.#slot(kind, name, now);
    const before = { ...slot };
    failures.take(1, now);
    fail(slot, now);
    return {
      giveBack() {
        failures.put(1);
        Object.assign(slot, before);
      },
    };
  }

  /** Returns the state to keep across a restart. */
  state(now: number): ThrottleState {
    const classes = attemptClasses.map((kind): [AttemptClass, ThrottleClassState] => {
      const { failures, slots } = this.#counters[kind];
      const used = slots.flatMap((slot, index) => {
        forgive(slot, now);
        const blocked = Math.max(0, slot.blockedUntil - now);
        const inUse = slot.failures > 0 || slot.today > 0 || blocked > 0;
        return inUse ? [[index, slot.failures, now - slot.countedAt, blocked, now - slot.dayBegan, slot.today] as const] : [];
      });
      return [kind, { failures: failures.level(now), slots: used }];
    });
    return Object.fromEntries(classes) as ThrottleState;
  }

  /** Resumes from a state. @param elapsed ms since then @param now ms, monotonic */
  restore(state: ThrottleState, elapsed: number, now: number): void {
    for (const kind of attemptClasses) {
      const { failures, slots } = this.#counters[kind];
      failures.take(DEVICE_BURST - Math.min(DEVICE_BURST, state[kind].failures + (elapsed * DEVICE_RATE) / SECOND), now);
      for (const [index, count, counted, blocked, day, today] of state[kind].slots) {
        const times = {
          countedAt: now - elapsed - counted,
          blockedUntil: now + Math.max(0, blocked - elapsed),
          dayBegan: now - elapsed - day,
        };
        Object.assign(slots[index]!, { failures: Math.min(MAX_COUNTED, count), today, ...times });
      }
    }
  }

  /** Empties all buckets, for when earlier use is unknown. */
  drain(now: number): void {
    for (const { failures, begins } of Object.values(this.#counters)) {
      failures.take(failures.level(now), now);
      begins.take(begins.level(now), now);
    }
  }

  /** Milliseconds until an attempt is possible; 0 = now. */
  #wait(kind: AttemptClass, name: string, now: number): number {
    const slot = this.#slot(kind, name, now);
    const daily = kind === 'remote' && slot.today >= DAILY ? slot.dayBegan + DAY - now : 0;
    return Math.max(0, slot.blockedUntil - now, daily, this.#counters[kind].failures.wait(1, now));
  }

  #slot(kind: AttemptClass, name: string, now: number): Slot {
    const slot = this.#counters[kind].slots[this.#hash(`${kind}\0${name}`) % SLOTS]!;
    forgive(slot, now);
    return slot;
  }
}

function counters(): Counters {
  return {
    slots: Array.from({ length: SLOTS }, () => ({
      failures: 0,
      countedAt: 0,
      blockedUntil: 0,
      dayBegan: Number.NEGATIVE_INFINITY,
      today: 0,
    })),
    failures: new TokenBucket(DEVICE_RATE, DEVICE_BURST),
    begins: new TokenBucket(BEGIN_RATE, BEGIN_RATE),
  };
}

function forgive(slot: Slot, now: number): void {
  const forgiven = Math.floor((now - slot.countedAt) / LONGEST_WAIT);
  if (forgiven > 0) {
    slot.failures = Math.max(0, slot.failures - forgiven);
    slot.countedAt += forgiven * LONGEST_WAIT;
  }
  if (now - slot.dayBegan >= DAY) slot.today = 0;
}

function fail(slot: Slot, now: number): void {
  slot.countedAt = now;
  if (slot.today++ === 0) slot.dayBegan = now;
  slot.failures = Math.min(MAX_COUNTED, slot.failures + 1);
  if (slot.failures < FREE) return;
  slot.blockedUntil = now + Math.min(LONGEST_WAIT, SECOND * 2 ** (slot.failures - FREE));
}
