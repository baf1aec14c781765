/** Ends requests to the device with STOPPED when the connection is lost. */
import { LocalError, SvcError } from '../protocol/errors/index.ts';
import type { Session } from '../runtime/session/index.ts';

/** Errors of a session that the device closed or that was lost. */
const LOSSES: readonly string[] = ['CLOSED', 'TIMEOUT'];

/**
 * Returns the result of `request`.
 * @throws LocalError STOPPED when the connection was lost meanwhile, with the reason as cause; else the error of the
 *   request
 */
export async function whileConnected<T>(session: Session, request: () => Promise<T>): Promise<T> {
  try {
    return await request();
  } catch (error) {
    throw error instanceof SvcError ? lossAsStopped(session, error) : error;
  }
}

/** Returns STOPPED instead of an error that says how the session ended; any other error unchanged. */
export function lossAsStopped(session: Session, error: SvcError): SvcError {
  if (session.isOpen || !LOSSES.includes(error.code)) return error;
  return new LocalError('STOPPED', `the connection ended: ${error.message}`, { cause: error });
}
