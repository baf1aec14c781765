/** Requests to the device and the end of the connection (reference §4.2: what is under way when it is lost ends with STOPPED). */
import { LocalError, SvcError } from '../protocol/errors/index.ts';
import type { Session } from '../transport/session/index.ts';

/** What a session ends with when the device closes it or is gone. */
const LOSSES: readonly string[] = ['CLOSED', 'TIMEOUT'];

/**
 * The result of `request`.
 * @throws LocalError STOPPED when the connection was lost meanwhile, its cause says why; else what the request fails with
 */
export async function whileConnected<T>(session: Session, request: () => Promise<T>): Promise<T> {
  try {
    return await request();
  } catch (error) {
    throw error instanceof SvcError ? lossAsStopped(session, error) : error;
  }
}

/** STOPPED in place of an error that says how the session ended; any other as it is. */
export function lossAsStopped(session: Session, error: SvcError): SvcError {
  if (session.isOpen || !LOSSES.includes(error.code)) return error;
  return new LocalError('STOPPED', `the connection ended: ${error.message}`, { cause: error });
}
