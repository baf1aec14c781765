/** Measures a device's response time: one small request and its answer, over the current path. */
import { type Connection, LocalError } from '../../client/node.ts';
import type { Clock } from '../../platform/environment.ts';

/** A path reserved for the SDK that no device serves: it is answered 4.04 without authorization. */
const NOWHERE = '/p2p/ping';

/**
 * Returns the milliseconds until any answer.
 * @throws TIMEOUT after `timeout` ms; STOPPED by `signal`, or when the connection ends; NOT_CONNECTED
 */
export async function roundTrip(connection: Pick<Connection, 'get'>, clock: Clock, timeout: number, signal?: AbortSignal): Promise<number> {
  const late = new AbortController();
  const cancel = clock.schedule(timeout, () => late.abort());
  const began = clock.now();
  try {
    await connection.get(NOWHERE, { signal: signal === undefined ? late.signal : AbortSignal.any([late.signal, signal]) });
    return clock.now() - began;
  } catch (error) {
    throw late.signal.aborted && signal?.aborted !== true ? new LocalError('TIMEOUT', `no answer within ${timeout / 1000} s`) : error;
  } finally {
    cancel();
  }
}

/** `12.3 ms`. */
export function milliseconds(time: number): string {
  return `${time.toFixed(time < 100 ? 1 : 0)} ms`;
}
