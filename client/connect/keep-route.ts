/**
 * Gets a route through the base station for a connection that stands and has lost its own (PROTOCOL.md §6).
 *
 *   at rest   it takes the place of the last path, and the connection goes on
 *   direct    it is added behind the direct path and kept warm
 *
 * Each attempt uses the client's channel to the base station, or makes one; between attempts lies a back-off, and a device that is not attached is waited for.
 * What no wait can mend ends a connection at rest with that error, and leaves a direct one without a route. How long a rest may last the connection knows.
 */
import { Status } from '../../protocol/coap/index.ts';
import { asSvcError, CloseCode, type ErrorCode, RemoteError, type SvcError } from '../../protocol/errors/index.ts';
import type { Path } from '../../protocol/path.ts';
import type { Clock } from '../../transport/environment.ts';
import type { Host } from '../../transport/host/index.ts';
import { pause } from '../../transport/pause.ts';
import type { Session } from '../../transport/session/index.ts';
import { Backoff, type StationConnector } from '../../transport/station/index.ts';
import type { EffectiveOptions } from '../options.ts';
import { askBareRoute } from './relay.ts';

/** Answers of the base station that another attempt may mend. */
const PASSING: ReadonlySet<string> = new Set<ErrorCode>(['CLOSED', 'NOT_ATTACHED', 'STOPPED', 'TIMEOUT', 'TOO_MANY_REQUESTS']);

/** ms between two attempts at most while the connection rests. */
const REST_DELAY = 2_000;
/** ms of an attempt after which the next one need not hold back. */
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
  return restReason !== null || !paths.some(({ kind }) => kind === 'route');
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

/** Less long at rest, and not at all when a rest begins meanwhile. */
async function holdBack({ session, signal }: RouteSearchOptions, clock: Clock, delay: number): Promise<void> {
  const rests = new AbortController();
  const stopListening = session.on('resting', () => rests.abort());
  await pause(clock, session.restReason === null ? delay : Math.min(delay, REST_DELAY), AbortSignal.any([signal, rests.signal]));
  stopListening();
}

/** @returns null when it went well, or another attempt may; else what no wait can mend */
async function attempt({ session, host, options, connector, keepInterval, signal }: RouteSearchOptions): Promise<SvcError | null> {
  // When the rest is over, as by a packet on another path, nothing is waited for.
  const over = new AbortController();
  const stop = (): void => over.abort();
  const stopListening = session.on('resumed', stop);
  signal.addEventListener('abort', stop, { once: true });
  try {
    const answer = await askBareRoute(host, connector, options, session.connection.remoteId(), over.signal);
    if ('refused' in answer) return over.signal.aborted ? null : refusalOf(answer.refused);
    if (session.restReason === null) session.addPath(answer.path, { keepInterval });
    else await resume(session, answer.path);
  } catch (error) {
    // On the way to the base station everything may change: even a certificate, where a network asks to log in first.
    host.environment.log.debug('the base station cannot be asked for a route', { reason: asSvcError(error).message });
  } finally {
    stopListening();
    signal.removeEventListener('abort', stop);
  }
  return null;
}

/** What a refusal means for a connection at rest: null when another attempt may have another answer. */
function refusalOf(error: SvcError): SvcError | null {
  const { code } = error;
  if (PASSING.has(code)) return null;
  if (code === 'NOT_FOUND') return new RemoteError('CLOSED', 'the device has lost the state of the connection');
  if (isTooOld(error))
    return new RemoteError('CLOSED', 'the device or the base station is too old for the connection to go on over another route');
  // Whatever answers in another way, as a web server that stands in for the base station while it restarts, says nothing of the connection.
  return code === 'BAD_RESPONSE' ? null : error;
}

/** A device of before answers such a request with 5.01 (Not Implemented), and a base station of before with 5.02 (Bad Gateway). */
function isTooOld(error: SvcError & { readonly status?: number }): boolean {
  return error.status === Status.NOT_IMPLEMENTED || error.status === Status.BAD_GATEWAY;
}

/** Goes on over the route, which is asked until an answer comes or it ends. */
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
      session.on('probed', (probe) => probe.path === path && !probe.answered && session.probe(path)),
    ];
    if (!session.resume(path)) over();
  });
}

function refused(session: Session, { environment }: Host, error: SvcError): void {
  environment.log.debug('no other route', { code: error.code, reason: error.message });
  if (session.restReason !== null) session.end(error, CloseCode.ROUTE_CLOSED);
}
