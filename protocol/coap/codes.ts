/**
 * CoAP codes and content formats as numbers for applications: a status is class × 100 + detail (2.05 is 205), a raw
 * code on the wire is class × 32 + detail (RFC 7252 §3).
 */

/** Methods that are sent and routed (RFC 7252 §12.1.1). */
export type CoapMethod = 'GET' | 'POST' | 'PUT' | 'DELETE';

/** Raw codes of the methods. */
export const MethodCode: Readonly<Record<CoapMethod, number>> = { GET: 1, POST: 2, PUT: 3, DELETE: 4 };

/** Statuses by their names (RFC 7252 §12.1.2, RFC 7959, RFC 8132, RFC 8516). */
export const Status = {
  CREATED: 201,
  DELETED: 202,
  VALID: 203,
  CHANGED: 204,
  CONTENT: 205,
  CONTINUE: 231,
  BAD_REQUEST: 400,
  UNAUTHORIZED: 401,
  BAD_OPTION: 402,
  FORBIDDEN: 403,
  NOT_FOUND: 404,
  METHOD_NOT_ALLOWED: 405,
  NOT_ACCEPTABLE: 406,
  REQUEST_ENTITY_INCOMPLETE: 408,
  CONFLICT: 409,
  PRECONDITION_FAILED: 412,
  REQUEST_ENTITY_TOO_LARGE: 413,
  UNSUPPORTED_CONTENT_FORMAT: 415,
  UNPROCESSABLE_ENTITY: 422,
  TOO_MANY_REQUESTS: 429,
  INTERNAL_SERVER_ERROR: 500,
  NOT_IMPLEMENTED: 501,
  BAD_GATEWAY: 502,
  SERVICE_UNAVAILABLE: 503,
  GATEWAY_TIMEOUT: 504,
  PROXYING_NOT_SUPPORTED: 505,
} as const;

/** Content formats with names (RFC 7252 §12.3); any number from 0 to 65535 may be used. */
export const ContentFormat = {
  TEXT_PLAIN: 0,
  LINK_FORMAT: 40,
  APPLICATION_XML: 41,
  APPLICATION_OCTET_STREAM: 42,
  APPLICATION_JSON: 50,
  APPLICATION_CBOR: 60,
} as const;

/** Classifies a raw code: class 0 with a detail is a request, classes 2, 4 and 5 are responses. */
export function codeKind(code: number): 'empty' | 'request' | 'response' | 'other' {
  if (code === 0) return 'empty';
  const kind = code >> 5;
  if (kind === 0) return 'request';
  return kind === 2 || kind === 4 || kind === 5 ? 'response' : 'other';
}

/** Converts a raw code to a status: 0x45 → 205. */
export function statusOfCode(code: number): number {
  return (code >> 5) * 100 + (code & 31);
}

/** Formats a status in dotted form: 404 → `4.04`. */
export function formatStatus(status: number): string {
  return `${Math.floor(status / 100)}.${String(status % 100).padStart(2, '0')}`;
}

/** Converts a status to a raw code: 205 → 0x45; undefined for a number that is not a response status. */
export function codeOfStatus(status: number): number | undefined {
  const kind = Math.floor(status / 100);
  const detail = status % 100;
  const valid = Number.isInteger(status) && (kind === 2 || kind === 4 || kind === 5) && detail <= 31;
  return valid ? kind * 32 + detail : undefined;
}

/** Returns the method of a raw request code; undefined for one that is not routed (FETCH, PATCH, unassigned). */
export function methodOfCode(code: number): CoapMethod | undefined {
  return methods[code - 1];
}

const methods: readonly CoapMethod[] = ['GET', 'POST', 'PUT', 'DELETE'];
