/** Calls on a connection that may have ended a moment ago without its events having been seen yet. */
import { LocalError } from '../../protocol/errors/index.ts';

/**
 * The result of `call`, or `instead` when the connection is over (or its core failed): what ends everything on it is on its way as an event, so
 * this is not the place to fail.
 */
export function whileOpen<T>(call: () => T, instead: T): T {
  try {
    return call();
  } catch (error) {
    return otherwise(error, instead);
  }
}

/** The same for who catches by himself. */
export function otherwise<T>(error: unknown, instead: T): T {
  if (error instanceof LocalError && overCodes.has(error.code)) return instead;
  throw error;
}

const overCodes: ReadonlySet<string> = new Set(['CLOSED', 'NOT_CONNECTED', 'CORE_FAILED']);
