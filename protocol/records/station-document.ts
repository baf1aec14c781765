/**
 * The document through which TLS proves a base station, as JSON at {@link STATION_DOCUMENT_PATH} (PROTOCOL.md §7): the
 * key that must answer on which UDP port, and how long the document is valid. Members that are not listed here are
 * ignored.
 */
import { RemoteError } from '../errors/index.ts';
import { isFingerprint } from '../identity/index.ts';

export const STATION_DOCUMENT_PATH = '/.well-known/svc';

/** Largest document, bytes. */
export const MAX_STATION_DOCUMENT = 4_096;

/** Longest validity of a document, ms, whatever it says. */
const MAX_LIFETIME = 7 * 86_400_000;

/** ISO 8601 in UTC, seconds with or without a fraction. */
const UTC = /^(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)(?:\.\d{1,9})?Z$/;
const DAYS_BEFORE_MONTH = [0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334, 365] as const;

export interface StationDocument {
  /** Full hex fingerprint of the base station's key. */
  readonly fingerprint: string;
  /** UDP, 1 to 65535. */
  readonly port: number;
  /** End of its validity: Unix time, ms. */
  readonly expires: number;
}

/**
 * @param bytes at most {@link MAX_STATION_DOCUMENT}
 * @param now Unix time, ms
 * @throws RemoteError BAD_RESPONSE that says what is wrong
 */
export function decodeStationDocument(bytes: Uint8Array, now: number): StationDocument {
  const { fingerprint, port, expires } = parse(bytes);
  if (typeof fingerprint !== 'string' || !isFingerprint(fingerprint)) throw bad('"fingerprint" is not 64 lower-case hexadecimal digits');
  if (!Number.isInteger(port) || (port as number) < 1 || (port as number) > 0xffff) throw bad('"port" is not a number from 1 to 65535');
  const time = typeof expires === 'string' ? unixTime(expires) : Number.NaN;
  if (Number.isNaN(time)) throw bad('"expires" is not a time in UTC, as in 2030-01-31T12:00:00Z');
  if (time <= now) throw bad(`it has expired (${expires}): the base station, a proxy in front of it, or this clock is wrong`);
  return { fingerprint, port: port as number, expires: Math.min(time, now + MAX_LIFETIME) };
}

function parse(bytes: Uint8Array): Record<string, unknown> {
  let document: unknown;
  try {
    document = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes));
  } catch {
    throw bad('it is not JSON');
  }
  if (typeof document !== 'object' || document === null || Array.isArray(document)) throw bad('it is not a JSON object');
  return document as Record<string, unknown>;
}

/** Returns Unix time in ms, to the second; NaN for a text that is not a time. */
function unixTime(text: string): number {
  const [year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0] = (UTC.exec(text) ?? []).slice(1).map(Number);
  const isLeap = year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0);
  const before = DAYS_BEFORE_MONTH[month - 1];
  const after = DAYS_BEFORE_MONTH[month];
  if (before === undefined || after === undefined || year < 1970 || hour > 23 || minute > 59 || second > 60) return Number.NaN;
  if (day < 1 || day > after - before + (isLeap && month === 2 ? 1 : 0)) return Number.NaN;
  const leapDays = (until: number): number => Math.floor(until / 4) - Math.floor(until / 100) + Math.floor(until / 400);
  const days = (year - 1970) * 365 + leapDays(year - 1) - leapDays(1969) + before + (isLeap && month > 2 ? 1 : 0) + day - 1;
  return (((days * 24 + hour) * 60 + minute) * 60 + second) * 1000;
}

function bad(problem: string): RemoteError {
  return new RemoteError('BAD_RESPONSE', `the document of the base station at ${STATION_DOCUMENT_PATH} cannot be used: ${problem}`);
}
