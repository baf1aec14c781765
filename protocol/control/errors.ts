/**
 * The error body of a base station, `{Error: {Code, Message}}` in CBOR: from station code to reply and from response to
 * error. The codes and their meanings are in `errors/station-codes.ts`.
 */
import { decode, encode, map, mapField, optionalText, uint } from '../cbor/index.ts';
import { type CoapReply, type CoapResponse, diagnosticText, formatStatus, printable, Status } from '../coap/index.ts';
import { type ErrorCode, RemoteError, type StationCode, stationCodeMeaning } from '../errors/index.ts';
import { MAX_ERROR_TEXT } from './field-bounds.ts';
import { CONTENT_FORMAT_CBOR } from './paths.ts';

/** Station code and a text for display. */
export interface ErrorBody {
  readonly code: number;
  readonly message: string;
}

/** The error body of a base station. */
export function encodeErrorBody({ code, message }: ErrorBody): Uint8Array {
  return encode({ Error: { Code: code, Message: message } });
}

/** @throws RemoteError PARSE */
export function decodeErrorBody(payload: Uint8Array): ErrorBody {
  const error = mapField(map(decode(payload)), 'Error');
  return { code: uint(error, 'Code', { max: 0xffff }), message: optionalText(error, 'Message', { max: MAX_ERROR_TEXT }) ?? '' };
}

/** Returns the reply of a base station for a station code. */
export function stationReply(code: StationCode, message = stationCodeMeaning(code)!.message): CoapReply {
  const { status } = stationCodeMeaning(code)!;
  return { status, contentFormat: CONTENT_FORMAT_CBOR, payload: encodeErrorBody({ code, message }) };
}

/**
 * Returns the error for a response with a status of 4.00 or above, whether it has an error body or a text. Never
 * throws. `status` and `stationCode` (that of the body) let callers act on them.
 */
export function stationError(
  response: Pick<CoapResponse, 'status' | 'contentFormat' | 'payload'>,
): RemoteError & { readonly status: number; readonly stationCode?: number } {
  const body = response.contentFormat === CONTENT_FORMAT_CBOR ? errorBody(response.payload) : undefined;
  const meaning = body === undefined ? undefined : stationCodeMeaning(body.code);
  const code = meaning?.error ?? errorOfStatus.get(response.status) ?? 'BAD_RESPONSE';
  const reason = printable(body?.message || meaning?.message || diagnosticText(response, MAX_ERROR_TEXT));
  const error = new RemoteError(code, `the base station refused (${formatStatus(response.status)})${reason === '' ? '' : `: ${reason}`}`);
  const { status } = response;
  return Object.assign(error, body === undefined ? { status } : { status, stationCode: body.code });
}

const errorOfStatus: ReadonlyMap<number, ErrorCode> = new Map<number, ErrorCode>([
  [Status.BAD_REQUEST, 'BAD_REQUEST'],
  [Status.UNAUTHORIZED, 'UNAUTHORIZED'],
  [Status.FORBIDDEN, 'FORBIDDEN'],
  [Status.NOT_FOUND, 'NOT_FOUND'],
  [Status.TOO_MANY_REQUESTS, 'TOO_MANY_REQUESTS'],
  [Status.SERVICE_UNAVAILABLE, 'TOO_MANY_REQUESTS'],
  [Status.GATEWAY_TIMEOUT, 'NOT_ATTACHED'],
]);

function errorBody(payload: Uint8Array): ErrorBody | undefined {
  try {
    return decodeErrorBody(payload);
  } catch (error) {
    if (error instanceof RemoteError) return undefined;
    throw error;
  }
}
