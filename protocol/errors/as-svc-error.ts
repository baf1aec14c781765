/** Conversion of thrown values to errors of the catalogue. */
import { LocalError, SvcError } from '../../bindings/error.ts';

/** Returns the error itself if it is an SvcError; wraps anything else in UNKNOWN with the original as its cause. */
export function asSvcError(error: unknown): SvcError {
  if (error instanceof SvcError) return error;
  return new LocalError('UNKNOWN', error instanceof Error ? error.message : String(error), { cause: error });
}
