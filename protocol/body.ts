/** Bodies of requests and answers, as an application gives them. */
import { bytesOf, isPlain, type Payload } from './arguments.ts';
import { type CborValue, encode } from './cbor/index.ts';
import { ContentFormat } from './coap/codes.ts';

/** Text, which is sent as UTF-8; bytes; or an object, which is sent as CBOR (RFC 8949). */
export type Body = Payload | CborObject;

/** A plain object or an array of values that CBOR has. */
export type CborObject = readonly CborValue[] | { readonly [key: string]: CborValue | undefined };

/**
 * Returns the bytes of a body, and its content format (RFC 7252 §12.3): 0 for text, 42 for bytes, 60 for CBOR.
 * @throws LocalError INVALID_ARGUMENT
 */
export function bodyOf(what: string, body: Body): { readonly bytes: Uint8Array; readonly format: number } {
  if (typeof body === 'string') return { bytes: bytesOf(what, body), format: ContentFormat.TEXT_PLAIN };
  if (Array.isArray(body) || isPlain(body)) return { bytes: encode(body), format: ContentFormat.APPLICATION_CBOR };
  return { bytes: bytesOf(what, body as Payload), format: ContentFormat.APPLICATION_OCTET_STREAM };
}
