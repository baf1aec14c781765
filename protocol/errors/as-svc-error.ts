/** What was thrown, as an error of the catalogue. */
import { LocalError, SvcError } from '../../bindings/error.ts';

/** The error itself when it is one of ours; anything else becomes UNKNOWN with the original as its cause. */
export function asSvcError(error: unknown): SvcError {
  if (error instanceof SvcError) return error;
  return new LocalError('UNKNOWN', error instanceof Error ? error.message : String(error), { cause: error });
}
