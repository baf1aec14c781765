/**
 * Messages that a device sends through its base station to services on the Internet: push notifications
 * (`POST /device/push/send`) and service invocations (`POST /device/service/invoke`). See PROTOCOL.md §7.11. Of the
 * push provider's documents, base station and device inspect two parts, and pass them on unread otherwise.
 */
import { bytes, decode, encode, map, optionalBytes, optionalUint, text, uint } from '../cbor/index.ts';
import { RemoteError } from '../errors/index.ts';
import { orElse } from '../or-else.ts';
import { MAX_PROJECT_ID, MAX_PUSH_ANSWER, MAX_PUSH_BODY, MAX_SERVICE_ID, MAX_SERVICE_MESSAGE } from './field-bounds.ts';

/** A push notification for a project of the provider. */
export interface PushRequest {
  readonly projectId: string;
  /** JSON document for the provider. */
  readonly body: string;
}

/** The provider's answer. */
export interface PushAnswer {
  /** HTTP status of the provider. */
  readonly statusCode: number;
  /** Body of the provider's response. */
  readonly body: string;
}

/** A message for a service that the base station knows. */
export interface ServiceRequest {
  readonly serviceId: string;
  readonly message: Uint8Array;
}

/** Form of the service's answer: bytes, none, or text. */
export type MessageFormat = 'BINARY' | 'NONE' | 'TEXT';

/** The service's answer. */
export interface ServiceAnswer {
  /** HTTP status of the service. */
  readonly statusCode: number;
  readonly message: Uint8Array;
  readonly messageFormat: MessageFormat;
}

/** The index is the number on the wire. */
const messageFormats: readonly MessageFormat[] = ['BINARY', 'NONE', 'TEXT'];

/** Body of `POST /device/push/send`. */
export function encodePushRequest({ projectId, body }: PushRequest): Uint8Array {
  return encode({ ProjectId: projectId, Body: body });
}

/** @throws RemoteError PARSE */
export function decodePushRequest(payload: Uint8Array): PushRequest {
  const body = map(decode(payload));
  return { projectId: text(body, 'ProjectId', { min: 1, max: MAX_PROJECT_ID }), body: text(body, 'Body', { min: 1, max: MAX_PUSH_BODY }) };
}

/** Body of the 2.01 response. */
export function encodePushAnswer({ statusCode, body }: PushAnswer): Uint8Array {
  return encode({ StatusCode: statusCode, Body: body });
}

/** Decodes the answer; cuts the body to what a device keeps. @throws RemoteError PARSE */
export function decodePushAnswer(payload: Uint8Array): PushAnswer {
  const body = map(decode(payload));
  return {
    statusCode: uint(body, 'StatusCode', { max: 0xffff }),
    body: cutText(text(body, 'Body', { max: MAX_PUSH_BODY }), MAX_PUSH_ANSWER),
  };
}

/** Body of `POST /device/service/invoke`. */
export function encodeServiceRequest({ serviceId, message }: ServiceRequest): Uint8Array {
  return encode({ ServiceId: serviceId, Message: message });
}

/** @throws RemoteError PARSE */
export function decodeServiceRequest(payload: Uint8Array): ServiceRequest {
  const body = map(decode(payload));
  return {
    serviceId: text(body, 'ServiceId', { min: 1, max: MAX_SERVICE_ID }),
    message: bytes(body, 'Message', { max: MAX_SERVICE_MESSAGE }),
  };
}

/** Body of the 2.01 response. */
export function encodeServiceAnswer({ statusCode, message, messageFormat }: ServiceAnswer): Uint8Array {
  return encode({ StatusCode: statusCode, Message: message, MessageFormat: messageFormats.indexOf(messageFormat) });
}

/** Decodes a missing format as BINARY and a missing message as empty. @throws RemoteError PARSE */
export function decodeServiceAnswer(payload: Uint8Array): ServiceAnswer {
  const body = map(decode(payload));
  const messageFormat = messageFormats[optionalUint(body, 'MessageFormat') ?? 0];
  if (messageFormat === undefined) throw new RemoteError('PARSE', 'MessageFormat is not known');
  return {
    statusCode: uint(body, 'StatusCode', { max: 0xffff }),
    message: optionalBytes(body, 'Message', { max: MAX_SERVICE_MESSAGE }) ?? new Uint8Array(0),
    messageFormat,
  };
}

/** Returns the text itself, or as many whole characters of it as fit. @param max UTF-8 bytes */
export function cutText(text: string, max: number): string {
  const bytes = new TextEncoder().encode(text);
  if (bytes.length <= max) return text;
  let end = max;
  while (end > 0 && isContinuation(bytes[end]!)) end--;
  return new TextDecoder('utf-8', { ignoreBOM: true }).decode(bytes.subarray(0, end));
}

/** Returns whether it is not the first byte of a character. */
function isContinuation(byte: number): boolean {
  return (byte & 0xc0) === 0x80;
}

/**
 * Returns true when the provider reports that the registration token is gone: 404 with the error code UNREGISTERED. A
 * 404 without it may come from a gateway, or from a wrong base URL.
 *
 *     {"error": {…, "details": [{"@type": "…FcmError", "errorCode": "…"}]}}
 */
export function isUnregistered({ statusCode, body }: PushAnswer): boolean {
  if (statusCode !== 404) return false;
  const details = member(member(parsed(body), 'error'), 'details');
  return Array.isArray(details) && details.some((each) => member(each, 'errorCode') === 'UNREGISTERED');
}

/** Returns the registration token of a notification; null when it has none or is not JSON. */
export function tokenOf(body: string): string | null {
  const token = member(member(parsed(body), 'message'), 'token');
  return typeof token === 'string' ? token : null;
}

function parsed(text: string): unknown {
  return orElse(() => JSON.parse(text), null);
}

function member(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null && Object.hasOwn(value, name) ? (value as Record<string, unknown>)[name] : undefined;
}
