/**
 * Finds another route through the base station for an open connection that has lost its route (PROTOCOL.md §6).
 *
 *   at rest   the route replaces the last path, and the connection continues
 *   direct    the route is added behind the direct path and kept warm
 *
 * Each attempt uses the client's channel to the base station, or opens one, with a back-off between attempts; it waits
 * for a device that is not attached. A permanent error ends a connection at rest, and leaves a direct one without a
 * route. The connection limits how long a rest may last.
 */

import type { Clock } from '../../platform/environment.ts';
import { asSvcError, CloseCode, type ErrorCode, RemoteError, type SvcError } from '../../protocol/errors/index.ts';
import type { Path } from '../../protocol/path.ts';
import type { Host } from '../../runtime/host/index.ts';
import { pause } from '../../runtime/pause.ts';
import type { Session } from '../../runtime/session/index.ts';
import { Backoff, type StationConnector } from '../../runtime/station/index.ts';
import type { EffectiveOptions } from '../options.ts';
import { askBareRoute } from './relay.ts';

/** Errors after which another attempt may succeed. */
const PASSING: ReadonlySet<string> = new Set<ErrorCode>(['CLOSED', 'NOT_ATTACHED', 'STOPPED', 'TIMEOUT', 'TOO_MANY_REQUESTS']);

/** Longest time between two attempts while the connection rests, ms. */
const REST_DELAY = 2_000;
/** An attempt that lasted this long, ms, needs no back-off before the next. */
const STEADY = 10_000;

export interface RouteSearchOptions {
  readonly session: Session;
  readonly host: Host;
  readonly options: EffectiveOptions;
  readonly connector: StationConnector;
  /** ms between challenges that keep the route warm behind a direct path. */
  readonly keepInterval: number;
  /** Ends the search. */
  readonly signal: AbortSignal;
}

/** Whether the session has lost the route it once had, or its last path. */
export function needsRoute({ restReason, paths }: Session): boolean {
  return restReason !== null || !paths.all.some(({ kind }) => kind === 'route');
}

/** Resolves when the session has a route, has ended, or can get none. Never rejects. */
export async function searchRoute(search: RouteSearchOptions): Promise<void> {
  const { session, host, signal } = search;
  const { clock, crypto } = host.environment;
  const backoff = new Backoff(crypto);
  while (session.isOpen && needsRoute(session) && !signal.aborted) {
    const began = clock.now();
    const refusal = await attempt(search);
    if (refusal !== null) {
      refused(session, host, refusal);
      return;
    }
    if (clock.now() - began >= STEADY) backoff.reset();
    const delay = backoff.next();
    if (session.isOpen && needsRoute(session)) await holdBack(search, clock, delay);
  }
}

/** Waits before the next attempt: less at rest, and no longer once a rest begins. */
async function holdBack({ session, signal }: RouteSearchOptions, clock: Clock, delay: number): Promise<void> {
  const rests = new AbortController();
  const stopListening = session.on('resting', () => rests.abort());
  await pause(clock, session.restReason === null ? delay : Math.min(delay, REST_DELAY), AbortSignal.any([signal, rests.signal]));
  stopListening();
}

/** @returns null when it succeeded, or another attempt may; else a permanent error */
async function attempt({ session, host, options, connector, keepInterval, signal }: RouteSearchOptions): Promise<SvcError | null> {
  // Stops waiting when the rest is over, for example because a packet arrived on another path.
  const over = new AbortController();
  const stop = (): void => over.abort();
  const stopListening = session.on('resumed', stop);
  signal.addEventListener('abort', stop, { once: true });
  try {
    const answer = await askBareRoute(host, connector, options, session.connection.paths.remoteId(), over.signal);
    if ('refused' in answer) return over.signal.aborted ? null : refusalOf(answer.refused);
    if (session.restReason === null) session.paths.add(answer.path, { keepInterval });
    else await resume(session, answer.path);
  } catch (error) {
    // Any error on the way to the base station can be temporary: even a wrong certificate, where a network asks to log
    // in first.
    host.environment.log.debug('the base station cannot be reached for a route', { reason: asSvcError(error).message });
  } finally {
    stopListening();
    signal.removeEventListener('abort', stop);
  }
  return null;
}

/** Maps a refusal for a connection at rest: null when another attempt may succeed. */
function refusalOf(error: SvcError): SvcError | null {
  const { code } = error;
  if (PASSING.has(code)) return null;
  if (code === 'NOT_FOUND') return new RemoteError('CLOSED', 'the device has lost the state of the connection');
  // An unexpected answer, such as that of a web server that replaces the base station while it restarts, says nothing
  // about the connection.
  return code === 'BAD_RESPONSE' ? null : error;
}

/** Continues over the route: probes it until it answers or the attempt ends. */
function resume(session: Session, path: Path): Promise<void> {
  return new Promise((resolve) => {
    const over = (): void => {
      for (const stop of stops) stop();
      resolve();
    };
    const stops = [
      session.on('resumed', over),
      session.on('resting', over),
      session.on('closed', over),
      // A packet on another path ended the rest, and that path is in use.
      session.on('path', (moved) => moved.path !== path && over()),
      session.on('probed', (probe) => probe.path === path && !probe.answered && session.paths.probe(path)),
    ];
    if (!session.paths.resume(path)) over();
  });
}

function refused(session: Session, { environment }: Host, error: SvcError): void {
  environment.log.debug('no other route', { code: error.code, reason: error.message });
  if (session.restReason !== null) session.end(error, CloseCode.ROUTE_CLOSED);
}
