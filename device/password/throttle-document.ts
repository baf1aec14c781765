/**
 * The state of the password throttle that is kept across a restart, as a JSON document:
 *
 *     {Version: 1, Saved, Clean, Classes: {paired, local, remote:
 *       {Failures, Slots: [[index, failures, counted, blocked, day, today], …]}}}
 *
 * `Saved` is Unix time in ms; `Failures` is the level of the class's bucket. In a slot, `counted` and `day` are ms
 * before `Saved`, `blocked` is ms after it. `Clean`: the device was closed after it was saved, so nothing can be
 * missing.
 */
import { type AttemptClass, attemptClasses, SLOTS, type ThrottleClassState, type ThrottleState } from './throttle.ts';

/** The stored state, and when it was saved. */
export interface StoredThrottle {
  readonly state: ThrottleState;
  readonly savedAt: number;
  readonly isClean: boolean;
}

/** @param savedAt Unix time, ms */
export function throttleDocument({ state, savedAt, isClean }: StoredThrottle): unknown {
  const classes = attemptClasses.map((name) => [name, { Failures: state[name].failures, Slots: state[name].slots }]);
  return { Version: 1, Saved: savedAt, Clean: isClean, Classes: Object.fromEntries(classes) };
}

/** Null for anything but a document of this version. */
export function readThrottleDocument(value: unknown): StoredThrottle | null {
  const document = value as { Version?: unknown; Saved?: unknown; Clean?: unknown; Classes?: Record<string, unknown> } | null | undefined;
  if (document?.Version !== 1 || !isNumber(document.Saved) || typeof document.Clean !== 'boolean') return null;
  const state: Partial<Record<AttemptClass, ThrottleClassState>> = {};
  for (const name of attemptClasses) {
    const read = readClass(document.Classes?.[name]);
    if (read === null) return null;
    state[name] = read;
  }
  return { state: state as ThrottleState, savedAt: document.Saved, isClean: document.Clean };
}

function readClass(value: unknown): ThrottleClassState | null {
  const { Failures, Slots } = (value ?? {}) as { Failures?: unknown; Slots?: unknown };
  if (!isNumber(Failures) || !Array.isArray(Slots) || Slots.length > SLOTS || !Slots.every(isSlot)) return null;
  return { failures: Failures, slots: Slots };
}

function isSlot(value: unknown): value is ThrottleClassState['slots'][number] {
  return Array.isArray(value) && value.length === 6 && value.every(isNumber) && Number.isInteger(value[0]) && value[0] < SLOTS;
}

function isNumber(value: unknown): value is number {
  return typeof value === 'number' && Number.isFinite(value) && value >= 0;
}
