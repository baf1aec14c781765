/**
 * How many passwords may be tried (PROTOCOL.md §8), without a clock of its own: `now` is monotonic milliseconds.
 *
 * Theory of operation. Who asks is of one of three classes, and no class takes anything from another: `paired`, a key paired to this very user;
 * `local`; `remote`. Each class has 256 slots, a fixed memory; a name's slot is chosen by a keyed hash, so known and unknown names are counted alike
 * and nobody can choose whose slot to share. Per slot five failures are free, then each makes the next wait twice as long, from 1 s to
 * 900 s, and one failure is forgiven per 900 s after the last; from afar 100 failures a day are the end. Per class ten failures may come in a burst, then one
 * a second, over all names; and five runs may begin in a second.
 *
 * An attempt is charged before it is looked at and given back when it was right, so that attempts side by side cannot outrun the count.
 */
import { TokenBucket } from '../../protocol/token-bucket.ts';

/** Who asks, as seen from the user of that name. */
export type AttemptClass = 'paired' | 'local' | 'remote';
export const attemptClasses: readonly AttemptClass[] = ['paired', 'local', 'remote'];

export const SLOTS = 256;
/** Failures that cost no wait. */
const FREE = 5;
/** Longest wait; also the time after which one failure is forgiven. */
const LONGEST_WAIT = 900_000;
const SECOND = 1000;
const DAY = 86_400_000;
/** Failures of a slot in a day, from afar. */
const DAILY = 100;
/** Failures more than these change nothing: the wait is the longest. */
const MOST_COUNTED = FREE + Math.ceil(Math.log2(LONGEST_WAIT / SECOND));
const DEVICE_BURST = 10;
const DEVICE_RATE = 1;
/** Runs that begin in a second. */
const BEGIN_RATE = 5;

/** Counters of one slot. */
interface Slot {
  failures: number;
  /** Up to when `failures` were forgiven; the last one of them at first. */
  countedAt: number;
  /** No attempt before. */
  blockedUntil: number;
  dayBegan: number;
  today: number;
}

interface Counters {
  readonly slots: readonly Slot[];
  readonly failures: TokenBucket;
  readonly begins: TokenBucket;
}

/** What of a class outlives a restart. Times are relative: ms ago, and for `blocked` ms from then. */
export interface ThrottleClassState {
  /** Level of the bucket of failures. */
  readonly failures: number;
  /** Slots that are in use. */
  readonly slots: readonly (readonly [index: number, failures: number, counted: number, blocked: number, day: number, today: number])[];
}

export type ThrottleState = Readonly<Record<AttemptClass, ThrottleClassState>>;

/** A charged attempt. */
export interface Charge {
  /** The password was right: nothing happened. */
  giveBack(): void;
}

export class PasswordThrottle {
  readonly #hash: (text: string) => number;
  readonly #counters: Readonly<Record<AttemptClass, Counters>> = { paired: counters(), local: counters(), remote: counters() };

  /** @param hash keyed, so that nobody outside can compute it; any integer from 0 */
  constructor(hash: (text: string) => number) {
    this.#hash = hash;
  }

  /** Whether a run may begin, which costs work: asked before any. False above the rate, or while an attempt would be refused anyway. */
  begin(kind: AttemptClass, name: string, now: number): boolean {
    const { begins } = this.#counters[kind];
    return this.#wait(kind, name, now) === 0 && begins.take(1, now);
  }

  /** Charges an attempt; null when it is refused, and nothing is charged. */
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

  /** What is to be kept over a restart. */
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

  /** Goes on from a state. @param elapsed ms since then @param now ms, monotonic */
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
        Object.assign(slots[index]!, { failures: Math.min(MOST_COUNTED, count), today, ...times });
      }
    }
  }

  /** Empties all buckets, where it is not known what was used before. */
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
  slot.failures = Math.min(MOST_COUNTED, slot.failures + 1);
  if (slot.failures < FREE) return;
  slot.blockedUntil = now + Math.min(LONGEST_WAIT, SECOND * 2 ** (slot.failures - FREE));
}
