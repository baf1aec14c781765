/**
 * The option IgnoreDeviceNotAttached: a connect through the base station that waits for a device which is not attached.
 *
 * 1. The request asks to wait, and observes: the base station answers that the device is not attached, and answers
 *    again when it attaches.
 * 2. The wait survives interruptions: a lost channel, a restart of the base station, a device that attached but did not
 *    answer. It then repeats the request, with back-off.
 * 3. An error that a person must fix ends the wait. So does any failure before the base station has said that the
 *    device is not attached: with a wrong address of the base station the wait would be pointless.
 *
 * The caller limits the total time (ConnectTimeout).
 */

import type { Environment } from '../../platform/environment.ts';
import type { CoapResponse } from '../../protocol/coap/index.ts';
import { type ConnectAnswer, decodeConnectAnswer, stationError } from '../../protocol/control/index.ts';
import { asSvcError, type ErrorCode, LocalError, RemoteError } from '../../protocol/errors/index.ts';
import { Deferred } from '../../runtime/deferred.ts';
import { pause } from '../../runtime/pause.ts';
import type { Session } from '../../runtime/session/index.ts';
import { Backoff } from '../../runtime/station/index.ts';

/** Errors that interrupt a wait without ending it. */
const PASSING: ReadonlySet<string> = new Set<ErrorCode>([
  'CLOSED',
  'CONNECTION_REFUSED',
  'DNS',
  'NOT_ATTACHED',
  'TIMEOUT',
  'TOO_MANY_REQUESTS',
]);

/** An attempt that lasted this long, ms, shows that the base station works: the next one needs no back-off. */
const STEADY = 30_000;

/**
 * Repeats an attempt to connect until it succeeds, fails permanently or the signal fires.
 * @param attempt calls `waits` when the base station says that the device is not attached
 * @param onWaiting called once, when the wait begins
 * @throws as the attempt
 */
export async function whileNotAttached<T>(
  { clock, crypto }: Environment,
  attempt: (waits: () => void) => Promise<T>,
  { signal, onWaiting }: { signal: AbortSignal; onWaiting: () => void },
): Promise<T> {
  const backoff = new Backoff(crypto);
  let waiting = false;
  const waits = (): void => {
    if (waiting || signal.aborted) return;
    waiting = true;
    onWaiting();
  };
  for (;;) {
    const began = clock.now();
    try {
      return await attempt(waits);
    } catch (error) {
      const { code } = asSvcError(error);
      // Also when the base station has not yet noticed that the device left, or cannot wait.
      if (code === 'NOT_ATTACHED') waits();
      if (signal.aborted || !waiting || !PASSING.has(code)) throw error;
    }
    if (clock.now() - began >= STEADY) backoff.reset();
    await pause(clock, backoff.next(), signal);
  }
}

/**
 * Asks the base station and waits for the answer that ends the wait; `waits` is called when the base station says that
 * it waits. When the signal fires during the wait, the base station is notified; before its first answer that is up to
 * the caller, as for any request.
 * @throws RemoteError of a refusal; the error that ends the channel; LocalError STOPPED, TIMEOUT
 */
export async function answerAfterWait(
  channel: Session,
  request: Parameters<Session['observe']>[0],
  { signal, waits }: { signal: AbortSignal; waits: () => void },
): Promise<ConnectAnswer> {
  const result = Deferred.quiet<ConnectAnswer>();
  let waiting = false;
  const stop = (): void => {
    if (!waiting) return;
    observation.cancel();
    result.reject(new LocalError('STOPPED', 'the connect was stopped'));
  };
  const take = (response: CoapResponse): void => {
    const answer = answerOf(response);
    waiting = answer.kind === 'waiting';
    if (!waiting) result.resolve(answer);
    else if (signal.aborted) stop();
    else waits();
  };
  const observation = channel.observe(
    request,
    (response) => {
      try {
        take(response);
      } catch (error) {
        result.reject(error);
      }
    },
    (error) => result.reject(error ?? new RemoteError('BAD_RESPONSE', 'the base station does not report when the device attaches')),
  );
  signal.addEventListener('abort', stop, { once: true });
  try {
    return await result.promise;
  } finally {
    signal.removeEventListener('abort', stop);
    observation.cancel();
  }
}

/** @throws RemoteError with the code of the base station's refusal, PARSE */
export function answerOf(response: CoapResponse): ConnectAnswer {
  if (response.status >= 300) throw stationError(response);
  return decodeConnectAnswer(response.payload);
}
