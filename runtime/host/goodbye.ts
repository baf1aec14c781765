/**
 * The order in which a host ends: sessions over routes first, as their last packets need the channel under the route;
 * then the channels; then the sockets.
 *
 * A channel stays until these packets have left, and for a PTO after the last session over a route was closed: a peer
 * that missed the end of its session, and sends something, is sent it again (RFC 9000 §10.2.1). A peer that has our
 * Respond holds a session already: its Complete may come in the next 100 ms, and is answered with the end.
 */

import type { Clock } from '../../platform/environment.ts';
import { CloseCode } from '../../protocol/errors/index.ts';
import { orElse } from '../../protocol/or-else.ts';
import { pause } from '../pause.ts';
import type { Session } from '../session/session.ts';
import { defaultParameters } from './defaults.ts';

/** ms that the last packets have to leave. */
const FLUSH_TIMEOUT = 1_000;
/** Most ms in which the end of a session is repeated. */
const LONGEST_REPEAT = 100;

export class Goodbye {
  readonly #clock: Clock;
  readonly #flush: () => Promise<void>;
  #repeatsUntil = 0;
  /** No repeat comes later. Peers may complete handshakes one after the other while this end leaves. */
  #latest = Number.POSITIVE_INFINITY;
  #leaving: Promise<void> | null = null;

  /** @param flush resolves when all packets have left */
  constructor(clock: Clock, flush: () => Promise<void>) {
    this.#clock = clock;
    this.#flush = flush;
  }

  /** Whether `leave` was called: no session may begin any more. */
  get isUnderWay(): boolean {
    return this.#leaving !== null;
  }

  /** Call when this end has closed a session. */
  noteClosed({ connection }: Session): void {
    const { path } = connection;
    if (path.kind !== 'route') return;
    const rtt = orElse(() => connection.paths.stats(path)?.rtt, undefined);
    // RFC 9002 §5.3, §6.2.1: the PTO after a first sample.
    const timeout = rtt === undefined ? LONGEST_REPEAT : 3 * rtt + defaultParameters.maxAckDelay;
    const until = Math.min(this.#clock.now() + Math.min(timeout, LONGEST_REPEAT), this.#latest);
    this.#repeatsUntil = Math.max(this.#repeatsUntil, until);
  }

  /**
   * Closes the sessions that peers opened and those over routes. Resolves when the channels may end. Idempotent.
   * @param isAwaited a peer may already hold a session that this end has not seen yet; its owner closes it
   */
  leave(sessions: Iterable<Session>, isAwaited: boolean): Promise<void> {
    this.#leaving ??= this.#leave(sessions, isAwaited);
    return this.#leaving;
  }

  async #leave(sessions: Iterable<Session>, isAwaited: boolean): Promise<void> {
    this.#latest = this.#clock.now() + LONGEST_REPEAT;
    if (isAwaited) this.#repeatsUntil = this.#latest;
    for (const session of [...sessions])
      if (!session.connection.initiator || session.connection.path.kind === 'route') void session.close(CloseCode.SHUTDOWN);
    const left = (): number => this.#repeatsUntil - this.#clock.now();
    if (left() <= 0) return;
    await this.within(this.#flush());
    for (let time = left(); time > 0; time = left()) await pause(this.#clock, time);
  }

  /** Waits until packets have left, at most a second. */
  async within(left: Promise<void>): Promise<void> {
    const done = new AbortController();
    await Promise.race([left, pause(this.#clock, FLUSH_TIMEOUT, done.signal)]);
    done.abort();
  }
}
