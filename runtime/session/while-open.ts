/** Calls on a connection that may just have ended, before its events were seen. */
import { LocalError } from '../../protocol/errors/index.ts';

/**
 * Returns the result of `call`, or `instead` when the connection is over (or its core failed): the event that ends
 * everything on it is on its way, so this call need not fail.
 */
export function whileOpen<T>(call: () => T, instead: T): T {
  try {
    return call();
  } catch (error) {
    return otherwise(error, instead);
  }
}

/** The same for a caller with its own catch. */
export function otherwise<T>(error: unknown, instead: T): T {
  if (error instanceof LocalError && overCodes.has(error.code)) return instead;
  throw error;
}

const overCodes: ReadonlySet<string> = new Set(['CLOSED', 'NOT_CONNECTED', 'CORE_FAILED']);
