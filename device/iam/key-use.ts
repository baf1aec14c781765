/** The days on which keys of users were used, since the device was started. */

/** Most keys; the one that was noted first goes. */
export const MAX_KEYS = 4_096;

export class KeyUse {
  readonly #days = new Map<string, string>();

  /** @param fingerprint of a user's key @param time Unix ms */
  note(fingerprint: string, time: number): void {
    const [first] = this.#days.keys();
    if (this.#days.size === MAX_KEYS && first !== undefined && !this.#days.has(fingerprint)) this.#days.delete(first);
    this.#days.set(fingerprint, dayOf(time));
  }

  /** YYYY-MM-DD, UTC */
  day(fingerprint: string): string | undefined {
    return this.#days.get(fingerprint);
  }
}

/** Returns the day, YYYY-MM-DD. @param time Unix ms */
export function dayOf(time: number): string {
  return new Date(time).toISOString().slice(0, 10);
}
