/**
 * Paths and queries as strings and as options (RFC 7252 §6.4, §6.5). In a string, `/` separates segments and any other
 * byte may be percent-encoded; in options each segment is separate and decoded. `/` alone has no segment. A path has at
 * most 256 bytes, counted as a string with decoded segments.
 */
import { utf8Length } from '../cbor/index.ts';
import { LocalError } from '../errors/index.ts';

/** Maximum bytes of a path, slashes included. */
export const MAX_PATH = 256;
/** Maximum bytes of all query arguments together. */
const MAX_QUERY = 512;

const MAX_SEGMENT = 255;

/**
 * Returns the decoded segments of a path string.
 * @throws LocalError INVALID_ARGUMENT when it does not begin with `/`, is too long, has a bad percent-encoding or a dot
 *   segment
 */
export function parsePath(path: string): string[] {
  if (!path.startsWith('/')) invalid(path, 'must begin with /');
  if (path === '/') return [];
  const segments = path
    .slice(1)
    .split('/')
    .map((segment) => decodeSegment(path, segment));
  const problem = pathProblem(segments);
  if (problem !== undefined) invalid(path, problem);
  return segments;
}

/** Returns the problem of the segments of a path, undefined when they are valid. */
export function pathProblem(segments: readonly string[]): string | undefined {
  const lengths = segments.map(utf8Length);
  if (lengths.some((length) => length > MAX_SEGMENT)) return `has a segment of more than ${MAX_SEGMENT} bytes`;
  if (lengths.reduce((sum, length) => sum + 1 + length, 0) > MAX_PATH) return `is longer than ${MAX_PATH} bytes`;
  // RFC 7252 §5.10.1: in a URI a dot segment would change its meaning.
  return segments.some((segment) => segment === '.' || segment === '..') ? 'has a dot segment' : undefined;
}

/** Returns the path string of decoded segments, percent-encoded where RFC 3986 requires it. */
export function formatPath(segments: readonly string[]): string {
  return `/${segments.map(encodeSegment).join('/')}`;
}

/**
 * Checks query arguments (`key=value`, decoded).
 * @throws LocalError INVALID_ARGUMENT
 */
export function checkQuery(query: readonly string[]): readonly string[] {
  const lengths = query.map(utf8Length);
  const tooLong = lengths.some((length) => length > MAX_SEGMENT) || lengths.reduce((sum, length) => sum + 1 + length, 0) > MAX_QUERY;
  if (tooLong || query.some(hasLoneSurrogate)) throw new LocalError('INVALID_ARGUMENT', 'CoAP: the query is too long or not text');
  return query;
}

function encodeSegment(segment: string): string {
  return encodeURIComponent(segment).replace(/%(?:24|26|2B|2C|3A|3B|3D|40)/g, (escaped) =>
    String.fromCharCode(Number.parseInt(escaped.slice(1), 16)),
  );
}

function decodeSegment(path: string, segment: string): string {
  if (hasLoneSurrogate(segment)) invalid(path, 'is not text');
  try {
    return decodeURIComponent(segment);
  } catch {
    return invalid(path, 'has a bad percent-encoding');
  }
}

function hasLoneSurrogate(text: string): boolean {
  return /\p{Surrogate}/u.test(text);
}

function invalid(path: string, problem: string): never {
  throw new LocalError('INVALID_ARGUMENT', `CoAP: the path ${path.slice(0, 64)} ${problem}`);
}
