/** The interface of a fuzz target. */
import type { Random } from '../../testing/random.ts';

export interface Target {
  /** As given on the command line. */
  readonly name: string;
  /** Its share of the time, where others have 1: stateful targets deserve more. */
  readonly weight?: number;
  /** One iteration; all randomness comes from `random`. Throws with a description when something is wrong. */
  iterate(random: Random): void | Promise<void>;
}
