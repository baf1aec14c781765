/**
 * Numbers that end a connection (CONNECTION_CLOSE) or a stream (RESET_STREAM, STOP_SENDING), their names, and the error
 * that each becomes for the application.
 *
 * Transport codes keep the numbers of RFC 9000 §20.1. Our own start at 0x1000 for connections and 0x2000 for streams,
 * so that a logged number shows its kind; 0 means "no error" in both. This file does not decide when a code is sent.
 */
import { RemoteError, type SvcError } from '../../bindings/error.ts';
import type { ErrorCode } from './catalogue.ts';

/** Transport codes, RFC 9000 §20.1. CRYPTO_ERROR and the TLS codes do not occur here. */
export const TransportCode = {
  NO_ERROR: 0x00,
  INTERNAL_ERROR: 0x01,
  CONNECTION_REFUSED: 0x02,
  FLOW_CONTROL_ERROR: 0x03,
  STREAM_LIMIT_ERROR: 0x04,
  STREAM_STATE_ERROR: 0x05,
  FINAL_SIZE_ERROR: 0x06,
  FRAME_ENCODING_ERROR: 0x07,
  TRANSPORT_PARAMETER_ERROR: 0x08,
  CONNECTION_ID_LIMIT_ERROR: 0x09,
  PROTOCOL_VIOLATION: 0x0a,
  INVALID_TOKEN: 0x0b,
  APPLICATION_ERROR: 0x0c,
  KEY_UPDATE_ERROR: 0x0e,
  AEAD_LIMIT_REACHED: 0x0f,
  NO_VIABLE_PATH: 0x10,
} as const;

/** Our codes of CONNECTION_CLOSE. */
export const CloseCode = {
  /** The application closed the connection. */
  NO_ERROR: 0,
  /** The responder has no connection slot left. */
  BUSY: 0x1001,
  /** The end that closes is shutting down; another attempt may reach its successor. */
  SHUTDOWN: 0x1002,
  /** The same identity attached again; the newest connection wins. */
  REPLACED: 0x1003,
  /** The channel that carried the route ended. */
  ROUTE_CLOSED: 0x1004,
  /** An offer or a proof in the handshake is not acceptable. */
  HANDSHAKE_REJECTED: 0x1005,
  /** The peer proved a different key than the pinned one. */
  FINGERPRINT_MISMATCH: 0x1006,
  /** Access was revoked while the connection was open. */
  FORBIDDEN: 0x1007,
  /** A message violates the formats of the protocol. */
  BAD_MESSAGE: 0x1008,
} as const;

/** Our codes of RESET_STREAM and STOP_SENDING. */
export const StreamCode = {
  /** The reader needs no more data. */
  NO_ERROR: 0,
  /** No listener on that port, or the listener refused this stream. */
  STREAM_REFUSED: 0x2001,
  /** The limit on open streams is reached. */
  STREAM_LIMIT: 0x2002,
  /** The application aborted the stream. */
  ABORTED: 0x2003,
  /** The stream was not accepted in time. */
  ACCEPT_TIMEOUT: 0x2004,
  /** The preface of the stream is not valid. */
  BAD_PREFACE: 0x2005,
  /** The service behind the stream could not be reached or failed. */
  SERVICE_FAILED: 0x2006,
  /** The caller is not allowed to use the service behind the stream. */
  FORBIDDEN: 0x2007,
  /** The host of the service behind the stream refused the TCP connection. */
  SERVICE_REFUSED: 0x2008,
  /** The service behind the stream, or its host, does not answer. */
  SERVICE_UNREACHABLE: 0x2009,
  /** A limit on connections to services is reached: of the service, its type, the client, or in all. */
  TUNNEL_LIMIT: 0x200a,
} as const;

const closeMeanings: ReadonlyMap<number, { readonly error: ErrorCode; readonly text: string }> = new Map([
  [CloseCode.NO_ERROR, { error: 'CLOSED', text: 'the peer closed the connection' }],
  [CloseCode.BUSY, { error: 'DEVICE_INTERNAL_ERROR', text: 'the peer has reached its limit of connections' }],
  [CloseCode.SHUTDOWN, { error: 'CLOSED', text: 'the peer is shutting down' }],
  [CloseCode.REPLACED, { error: 'REPLACED', text: 'the same identity attached again' }],
  [CloseCode.ROUTE_CLOSED, { error: 'CLOSED', text: 'the route through the base station ended' }],
  [CloseCode.HANDSHAKE_REJECTED, { error: 'CLOSED', text: 'the peer rejected the handshake' }],
  [CloseCode.FINGERPRINT_MISMATCH, { error: 'FINGERPRINT_MISMATCH', text: 'the peer expected a different key' }],
  [CloseCode.FORBIDDEN, { error: 'FORBIDDEN', text: 'the peer revoked access' }],
  [CloseCode.BAD_MESSAGE, { error: 'CLOSED', text: 'the peer received a malformed message' }],
]);

const streamTexts: ReadonlyMap<number, string> = new Map([
  [StreamCode.NO_ERROR, 'the peer needs no further data'],
  [StreamCode.STREAM_REFUSED, 'no listener accepts streams on that port'],
  [StreamCode.STREAM_LIMIT, 'the peer has reached its limit of streams'],
  [StreamCode.ABORTED, 'the peer aborted the stream'],
  [StreamCode.ACCEPT_TIMEOUT, 'the peer did not accept the stream in time'],
  [StreamCode.BAD_PREFACE, 'the stream began with an invalid preface'],
  [StreamCode.SERVICE_FAILED, 'the service behind the stream failed'],
  [StreamCode.FORBIDDEN, 'the peer does not allow this stream'],
  [StreamCode.SERVICE_REFUSED, 'the service refuses connections (ECONNREFUSED)'],
  [StreamCode.SERVICE_UNREACHABLE, 'the service does not answer'],
  [
    StreamCode.TUNNEL_LIMIT,
    'the device has reached its limit of tunnel connections: close some, or raise it there, with svc device --tunnel-connections or --tunnel-connections-per-client',
  ],
]);

/**
 * Returns the error that a CONNECTION_CLOSE from the peer becomes.
 * @param code number of the frame, our own or one of RFC 9000 §20.1
 * @param reason reason phrase of the frame, already cleaned for display; may be empty
 */
export function closeError(code: number, reason = ''): SvcError {
  const meaning = closeMeanings.get(code) ?? { error: 'CLOSED' as const, text: `the connection ended with ${closeCodeName(code)}` };
  return new RemoteError(meaning.error, reason === '' || reason === meaning.text ? meaning.text : `${meaning.text}: ${reason}`);
}

/** Returns the error that a RESET_STREAM or STOP_SENDING from the peer becomes. */
export function streamError(code: number): SvcError {
  const text = streamTexts.get(code) ?? `the peer reset the stream with ${streamCodeName(code)}`;
  return new RemoteError(code === StreamCode.FORBIDDEN ? 'FORBIDDEN' : 'STOPPED', text);
}

/** Returns the name of a connection close code for logs, e.g. `BUSY` or `0x1fff`. */
export function closeCodeName(code: number): string {
  return nameOf(CloseCode, code) ?? nameOf(TransportCode, code) ?? hex(code);
}

/** Returns the name of a stream code for logs. */
export function streamCodeName(code: number): string {
  return nameOf(StreamCode, code) ?? hex(code);
}

function nameOf(table: Readonly<Record<string, number>>, code: number): string | undefined {
  return Object.entries(table).find(([, value]) => value === code)?.[0];
}

function hex(code: number): string {
  return `0x${code.toString(16)}`;
}
