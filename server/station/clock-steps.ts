/**
 * Keeps the lifetimes of invitations when the wall clock is set, as on a board without a battery whose clock begins in
 * the past until NTP sets it, and removes those that are over.
 *
 * Wall clock and running time are compared every few seconds and before each join. After a step of a minute or more
 * the times of the invitations that were made in this run move by that step, so they expire after their lifetime in
 * running time. Earlier invitations keep their times. Nothing else removes invitations: a command that the operator
 * runs between the step and the comparison would take those of this run for expired.
 */
import type { Cancel, Clock } from '../../platform/environment.ts';
import type { LogTally } from '../../runtime/log-tally.ts';
import { InvitationLifetime, type InvitationStore } from '../storage/invitation-store.ts';

export interface ClockStepsOptions {
  readonly clock: Clock;
  readonly invitations: Pick<InvitationStore, 'shift' | 'forget'>;
  readonly tally: LogTally;
}

/** ms between two comparisons. */
const INTERVAL = 10_000;
/** ms between two removals: the least lifetime, so that no more than one further set of a product's slots piles up. */
const REMOVAL = InvitationLifetime.MIN;
/** ms of a step that counts; less is a clock that is being corrected. */
const LEAST = 60_000;

export class ClockSteps {
  readonly #options: ClockStepsOptions;
  /** Running time of the start. */
  readonly #began: number;
  /** Wall clock minus running time. */
  #offset: number;
  /** Running time of the next removal. */
  #removal: number;
  #looking: Promise<void> | null = null;
  #cancel: Cancel;

  constructor(options: ClockStepsOptions) {
    const { clock } = options;
    this.#options = options;
    this.#began = clock.now();
    this.#removal = this.#began;
    this.#offset = clock.wallTime() - clock.now();
    this.#cancel = this.#schedule();
  }

  /** Resolves when the invitations have the times of the clock as it is now. Rejects when the storage fails. */
  look(): Promise<void> {
    this.#looking ??= this.#look().finally(() => (this.#looking = null));
    return this.#looking;
  }

  stop(): void {
    this.#cancel();
  }

  #schedule(): Cancel {
    return this.#options.clock.schedule(INTERVAL, () => {
      this.#cancel = this.#schedule();
      // The next comparison tries again.
      this.#forget().catch((error: unknown) =>
        this.#options.tally.log.error('invitations could not be corrected', { error: String(error) }),
      );
    });
  }

  async #forget(): Promise<void> {
    await this.look();
    const { clock, invitations } = this.#options;
    if (clock.now() < this.#removal) return;
    this.#removal = clock.now() + REMOVAL;
    const now = clock.wallTime();
    await invitations.forget(new Date(now).toISOString(), new Date(now - InvitationLifetime.USED).toISOString());
  }

  async #look(): Promise<void> {
    const { clock, invitations, tally } = this.#options;
    const now = clock.now();
    const by = Math.round(clock.wallTime() - now - this.#offset);
    if (Math.abs(by) < LEAST) return;
    const timeOf = (running: number): string => new Date(this.#offset + running).toISOString();
    await invitations.shift({ from: timeOf(this.#began), to: timeOf(now), by });
    this.#offset += by;
    tally.log.warn('the clock was set: invitations made since the start expire later or earlier by that much', {
      seconds: Math.round(by / 1000),
    });
  }
}
