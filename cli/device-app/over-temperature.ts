/**
 * Detects when the room becomes too hot, and when that is over, each once. The alarm ends only 1 °C below the limit, so
 * that a temperature that hovers around the limit raises one alarm.
 *
 *     normal ── at the limit or above ──▶ alarm ── 1 °C below the limit ──▶ normal
 */

/** °C below the limit at which the alarm ends. */
const HYSTERESIS = 1;

export type Edge = 'raised' | 'cleared';

export class OverTemperature {
  readonly limit: number;
  #raised: boolean;

  /** @param limit °C @param raised whether it was raised at the latest check, in an earlier run */
  constructor(limit: number, raised = false) {
    this.limit = limit;
    this.#raised = raised;
  }

  get raised(): boolean {
    return this.#raised;
  }

  /** Returns the change that this temperature causes, if any. */
  observe(temperature: number): Edge | undefined {
    const raised = this.#raised ? temperature > this.limit - HYSTERESIS : temperature >= this.limit;
    if (raised === this.#raised) return undefined;
    this.#raised = raised;
    return raised ? 'raised' : 'cleared';
  }
}
