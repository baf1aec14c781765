/**
 * Limits how often this host queries STUN ports. Otherwise peers would decide that, as each round begins with a
 * sampling, and a base station decides where the requests go.
 *
 * 1. Callers that want the same at the same time share the answers.
 * 2. There is one limit a minute for trusted peers and one for all others.
 */

import type { Cancel, Clock } from '../../platform/environment.ts';
import { TokenBucket } from '../../protocol/token-bucket.ts';

/**
 * Samplings at once, and as many again in a minute: each is at most 9 requests of 20 bytes to ports that do not answer.
 */
export const OF_TRUSTED = 20;
export const OF_OTHERS = 10;
const MINUTE = 60;

/** @typeParam F the findings */
export class Samplings<F> {
  readonly #clock: Pick<Clock, 'now'>;
  readonly #running = new Map<string, { readonly waiting: Set<(found: F) => void>; end: Cancel }>();
  readonly #ofTrusted = new TokenBucket(OF_TRUSTED / MINUTE, OF_TRUSTED);
  readonly #ofOthers = new TokenBucket(OF_OTHERS / MINUTE, OF_OTHERS);

  constructor(clock: Pick<Clock, 'now'>) {
    this.#clock = clock;
  }

  /**
   * Joins the sampling under `key`, or begins it.
   * @param begin starts the queries, and calls back later, once
   * @returns a function that ends the wait, but not the sampling, whose answers serve the next caller; null beyond the
   *   limit
   */
  ask(key: string, isTrusted: boolean, begin: (onFound: (found: F) => void) => Cancel, onFound: (found: F) => void): Cancel | null {
    let running = this.#running.get(key);
    if (running === undefined) {
      const mayAsk = isTrusted ? this.#ofTrusted : this.#ofOthers;
      if (!mayAsk.take(1, this.#clock.now())) return null;
      running = { waiting: new Set(), end: () => {} };
      this.#running.set(key, running);
      running.end = begin((found) => this.#found(key, found));
    }
    const { waiting } = running;
    waiting.add(onFound);
    return () => waiting.delete(onFound);
  }

  /** Ends all samplings. */
  close(): void {
    for (const { end } of this.#running.values()) end();
    this.#running.clear();
  }

  #found(key: string, found: F): void {
    const waiting = this.#running.get(key)?.waiting ?? new Set();
    this.#running.delete(key);
    for (const onFound of [...waiting]) onFound(found);
  }
}
