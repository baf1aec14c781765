/** Requests to the endpoints below /iam: CBOR both ways; a refusal becomes an error. */
import { check, text } from '../../protocol/arguments.ts';
import { type CoapMethod, diagnosticText, formatPath } from '../../protocol/coap/index.ts';
import { LocalError, RemoteError } from '../../protocol/errors/index.ts';
import { CONTENT_FORMAT_CBOR } from '../../protocol/records/index.ts';
import type { Connection } from '../connection.ts';
import { decodeResponse } from '../decode-response.ts';
import type { Answer } from '../requests.ts';
import { iamError, type Meanings } from './errors.ts';

/** The part of a connection used here. */
export type IamConnection = Pick<Connection, 'request' | 'passwordAuthenticate' | 'getClientFingerprint'>;

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
 * @throws IamError; the errors of `Connection.request`; LocalError INVALID_INPUT for a name that cannot be in a path
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
  const { format, bytes } = await answered(connection, request, meanings);
  const what = formatPath(['iam', ...request.path]);
  if (format !== CONTENT_FORMAT_CBOR) throw new RemoteError('BAD_RESPONSE', `${what}: the answer is not CBOR`);
  return decodeResponse(what, decode, bytes);
}

async function answered(connection: IamConnection, { method, path, body }: IamRequest, meanings?: Meanings): Promise<Answer> {
  for (const segment of path) checkSegment(segment);
  const content = body === undefined ? {} : { body, format: CONTENT_FORMAT_CBOR };
  const answer = await connection.request(method, formatPath(['iam', ...path]), content);
  if (answer.ok) return answer;
  const { status, bytes: payload } = answer;
  throw iamError({ status, diagnostic: diagnosticText({ payload }, MAX_DIAGNOSTIC) }, meanings);
}

/** Checks a caller's name in a path. An empty one, `.` and `..` would make it another path (RFC 7252 §5.10.1). */
function checkSegment(segment: string): void {
  check('the name', segment, text);
  if (segment === '' || segment === '.' || segment === '..')
    throw new LocalError('INVALID_INPUT', 'the name must not be empty, "." or ".."');
}
