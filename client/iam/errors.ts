/** Refusals by a device's access control, as errors with the specification's names (docs/iam.md). */
import { formatStatus, Status } from '../../protocol/coap/index.ts';
import { type ErrorCode, RemoteError } from '../../protocol/errors/index.ts';

/** The device refused a request of `IamUtil`. Each operation lists its codes. */
export class IamError extends RemoteError {
  override name = 'IamError';
  /** Status of the answer, class × 100 + detail. */
  readonly status: number;
  /** The device's text for people; may be empty. */
  readonly diagnostic: string;

  constructor(code: ErrorCode, message: string, { status, diagnostic }: Refusal, options?: ErrorOptions) {
    super(code, message, options);
    this.status = status;
    this.diagnostic = diagnostic;
  }
}

/** An answer other than success. */
export interface Refusal {
  readonly status: number;
  readonly diagnostic: string;
}

/** Statuses with a special meaning for one operation. */
export type Meanings = Readonly<Record<number, Meaning>>;
export type Meaning = readonly [ErrorCode, string];

const general: Meanings = {
  [Status.BAD_REQUEST]: ['INVALID_INPUT', 'the device does not accept this value'],
  [Status.UNAUTHORIZED]: ['AUTHENTICATION_ERROR', 'the device requires a password first'],
  [Status.FORBIDDEN]: ['BLOCKED_BY_DEVICE_CONFIGURATION', 'the device does not allow this client to do that'],
  [Status.NOT_FOUND]: ['IAM_NOT_SUPPORTED', 'the device does not offer this'],
  [Status.REQUEST_ENTITY_TOO_LARGE]: ['INVALID_INPUT', 'the value is too long for the device'],
  [Status.TOO_MANY_REQUESTS]: ['TOO_MANY_REQUESTS', 'too many requests: try again later'],
  [Status.INTERNAL_SERVER_ERROR]: ['FAILED', 'the device could not do it'],
  [Status.SERVICE_UNAVAILABLE]: ['FAILED', 'the device cannot do it now: try again later'],
};

/** Returns the error of a refusal; an unknown status is BAD_RESPONSE. */
export function iamError(refusal: Refusal, meanings: Meanings = {}): IamError {
  const { status } = refusal;
  const [code, message] = meanings[status] ?? general[status] ?? ['BAD_RESPONSE', 'the device returned an unexpected answer'];
  return errorOf(code, message, refusal);
}

/** Adds the device's answer to `message`. */
export function errorOf(code: ErrorCode, message: string, refusal: Refusal): IamError {
  const { status, diagnostic } = refusal;
  const said = diagnostic === '' ? '' : `: "${diagnostic}"`;
  return new IamError(code, `${message} (the device answered ${formatStatus(status)}${said})`, refusal);
}
