/** Requests to the endpoints below /iam: CBOR both ways; a refusal becomes an error. */
import { check, text } from '../../protocol/arguments.ts';
import { type CoapMethod, type CoapResponse, diagnosticText, formatPath } from '../../protocol/coap/index.ts';
import { LocalError, RemoteError } from '../../protocol/errors/index.ts';
import { CONTENT_FORMAT_CBOR } from '../../protocol/records/index.ts';
import type { Connection } from '../connection.ts';
import { decodeResponse } from '../decode-response.ts';
import { iamError, type Meanings } from './errors.ts';

/** The part of a connection used here. */
export type IamConnection = Pick<Connection, 'createCoap' | 'passwordAuthenticate' | 'getClientFingerprint'>;

export interface IamRequest {
  readonly method: CoapMethod;
  /** Decoded segments below /iam. */
  readonly path: readonly string[];
  /** CBOR. */
  readonly body?: Uint8Array;
}

/** Bytes of a diagnostic text that are shown. */
const MAX_DIAGNOSTIC = 256;

/**
 * Sends a request whose answer has no body.
 * @param meanings special meanings of statuses for this request
 * @throws IamError; the errors of `Coap.execute`; LocalError INVALID_INPUT for a name that cannot be in a path
 */
export async function send(connection: IamConnection, request: IamRequest, meanings?: Meanings): Promise<void> {
  await answered(connection, request, meanings);
}

/**
 * Sends a request whose answer is a record.
 * @throws as `send`; RemoteError BAD_RESPONSE when the record cannot be decoded
 */
export async function fetch<T>(
  connection: IamConnection,
  request: IamRequest,
  decode: (payload: Uint8Array) => T,
  meanings?: Meanings,
): Promise<T> {
  const { contentFormat, payload } = await answered(connection, request, meanings);
  const what = formatPath(['iam', ...request.path]);
  if (contentFormat !== CONTENT_FORMAT_CBOR) throw new RemoteError('BAD_RESPONSE', `${what}: the answer is not CBOR`);
  return decodeResponse(what, decode, payload);
}

async function answered(connection: IamConnection, { method, path, body }: IamRequest, meanings?: Meanings): Promise<CoapResponse> {
  for (const segment of path) checkSegment(segment);
  const coap = connection.createCoap(method, formatPath(['iam', ...path]));
  if (body !== undefined) coap.setRequestPayload(CONTENT_FORMAT_CBOR, body);
  await coap.execute();
  const response = coap.getResponse();
  const { status } = response;
  if (status >= 200 && status < 300) return response;
  throw iamError({ status, diagnostic: diagnosticText(response, MAX_DIAGNOSTIC) }, meanings);
}

/** Checks a caller's name in a path. An empty one, `.` and `..` would make it another path (RFC 7252 §5.10.1). */
function checkSegment(segment: string): void {
  check('the name', segment, text);
  if (segment === '' || segment === '.' || segment === '..')
    throw new LocalError('INVALID_INPUT', 'the name must not be empty, "." or ".."');
}
