/**
 * The option IgnoreDeviceNotAttached: a connect through the base station that waits for a device which is not attached.
 *
 * 1. The request asks to wait, and observes: the base station says that the device is not attached, and answers once more when it attaches.
 * 2. The wait outlives what interrupts it: the channel is lost, the base station restarts, or the device attached and did not answer. Then it is asked again,
 *    with back-off.
 * 3. What must be mended by a person ends it, and so does any failure before it is known that the device is not attached: a wrong address of the base station
 *    would be waited for in vain.
 *
 * How long it waits altogether is the caller's (ConnectTimeout).
 */
import type { CoapResponse } from '../../protocol/coap/index.ts';
import { type ConnectAnswer, decodeConnectAnswer, stationError } from '../../protocol/control/index.ts';
import { asSvcError, type ErrorCode, LocalError, RemoteError } from '../../protocol/errors/index.ts';
import { Deferred } from '../../transport/deferred.ts';
import type { Environment } from '../../transport/environment.ts';
import { pause } from '../../transport/pause.ts';
import type { Session } from '../../transport/session/index.ts';
import { Backoff } from '../../transport/station/index.ts';

/** What interrupts a wait without ending it. */
const PASSING: ReadonlySet<string> = new Set<ErrorCode>([
  'CLOSED',
  'CONNECTION_REFUSED',
  'DNS',
  'NOT_ATTACHED',
  'TIMEOUT',
  'TOO_MANY_REQUESTS',
]);

/** ms after which an attempt says that the base station is well: the next one need not hold back. */
const STEADY = 30_000;

/**
 * Attempts to connect until it succeeds, fails for good or the signal fires.
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
      // Also of a device that has gone and is not missed yet, and of a base station that does not know how to wait.
      if (code === 'NOT_ATTACHED') waits();
      if (signal.aborted || !waiting || !PASSING.has(code)) throw error;
    }
    if (clock.now() - began >= STEADY) backoff.reset();
    await pause(clock, backoff.next(), signal);
  }
}

/**
 * Asks the base station and waits for the answer that ends the wait; `waits` is called when it says that there is a wait.
 * When the signal fires meanwhile the base station is told; before its first answer that is the caller's, as for any request.
 * @throws RemoteError of a refusal; what ends the channel; LocalError STOPPED, TIMEOUT
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
    (error) => result.reject(error ?? new RemoteError('BAD_RESPONSE', 'the base station does not say when the device attaches')),
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
