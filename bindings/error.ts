/**
 * The three error classes of the whole project; the catalogue of codes is in `protocol/errors/`.
 *
 * They stand in the lowest layer because a trap of the core is already an error of the catalogue (`CORE_FAILED`). A
 * *local* error says that our own caller or our own state is at fault, a *remote* error that bytes from the network
 * are: bytes from the network may raise only remote errors.
 */

/** Base of all errors of this project: a stable code of the catalogue and a sentence for a person. */
export class SvcError extends Error {
  /** Stable name from the catalogue, e.g. `INVALID_ARGUMENT`. */
  readonly code: string;

  /** Set in each class: the bundles of the command shorten class names, and logs show this one. */
  override name = 'SvcError';

  constructor(code: string, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }
}

/** A mistake of our caller, or a fault of our own state. */
export class LocalError extends SvcError {
  override name = 'LocalError';
}

/** Caused by what the other end sent, or did not send. */
export class RemoteError extends SvcError {
  override name = 'RemoteError';
}

/** Returns whether the core has trapped, which the endpoint reports to all its connections. */
export function isCoreFailure(error: unknown): boolean {
  return error instanceof LocalError && error.code === 'CORE_FAILED';
}
