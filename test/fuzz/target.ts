/** What the fuzzer knows of a target. */
import type { Random } from '../../transport/sim/random.ts';

export interface Target {
  /** As given on the command line. */
  readonly name: string;
  /** Its share of the time, against 1 of others: what has state deserves more. */
  readonly weight?: number;
  /** One iteration; everything comes from `random`. Throws when something is wrong, and says what. */
  iterate(random: Random): void | Promise<void>;
}
