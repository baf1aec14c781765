/**
 * Converts a service's HTTP answer for the device (docs/outbound.md, "Services"): no body is NONE, `application/json`
 * with `{"message": base64}` is BINARY, `text/*` is TEXT in UTF-8. Anything else is an error.
 */
import { MAX_SERVICE_MESSAGE, type ServiceAnswer } from '../../protocol/control/index.ts';
import { RemoteError } from '../../protocol/errors/index.ts';
import { orElse } from '../../protocol/or-else.ts';
import type { HttpAnswer } from '../outbound/http.ts';

/** Most bytes of a body: the largest message in base64, in JSON. */
export const ANSWER_LIMIT = 2 * MAX_SERVICE_MESSAGE;

/** @throws RemoteError BAD_RESPONSE that says what is wrong with the service's answer */
export function serviceAnswer({ status, headers, body, cut }: HttpAnswer): ServiceAnswer {
  if (cut) bad('is too large');
  if (body.length === 0) return { statusCode: status, message: body, messageFormat: 'NONE' };
  const encoding = headers['content-encoding'] ?? 'identity';
  if (encoding !== 'identity') bad('is compressed');
  const [type = '', ...parameters] = (headers['content-type'] ?? '').toLowerCase().split(';');
  if (/^\s*text\/[^\s/]+\s*$/.test(type)) return { statusCode: status, message: limited(utf8(body, parameters)), messageFormat: 'TEXT' };
  if (type.trim() === 'application/json') return { statusCode: status, message: limited(message(body)), messageFormat: 'BINARY' };
  return bad(type === '' ? 'has no content type' : 'has a content type that is not supported');
}

/** Returns the text in UTF-8, converted from another character set if needed. */
function utf8(body: Uint8Array, parameters: readonly string[]): Uint8Array {
  const charset = /^\s*charset\s*=\s*"?([^"\s]+)"?\s*$/;
  const label = parameters.map((each) => charset.exec(each)?.[1]).find((each) => each !== undefined) ?? 'utf-8';
  try {
    return new TextEncoder().encode(new TextDecoder(label, { fatal: true, ignoreBOM: true }).decode(body));
  } catch {
    return bad('is not text in its character set');
  }
}

function message(body: Uint8Array): Uint8Array {
  const decoder = new TextDecoder('utf-8', { fatal: true });
  const text = orElse(() => (JSON.parse(decoder.decode(body)) as { message?: unknown }).message, null);
  // The whole alphabet, padded or not: Node's decoder would skip other characters.
  if (typeof text !== 'string' || !/^[A-Za-z0-9+/]*={0,2}$/.test(text) || text.replace(/=+$/, '').length % 4 === 1)
    return bad('has no message in base64');
  return new Uint8Array(Buffer.from(text, 'base64'));
}

function limited(bytes: Uint8Array): Uint8Array {
  return bytes.length <= MAX_SERVICE_MESSAGE ? bytes : bad('is too large');
}

function bad(problem: string): never {
  throw new RemoteError('BAD_RESPONSE', `the answer of the service ${problem}`);
}
