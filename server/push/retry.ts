/**
 * Decides when a push is retried. Pure: time and randomness are arguments.
 *
 * Not after an answer that a retry would not change (2xx, 3xx, 4xx). After 429, 5xx, and attempts without an answer:
 * after a random time below a doubling bound (full jitter), and not before Retry-After; a 429 without one means a
 * minute. Never beyond the time of a notification: then the last answer is returned.
 */

/** ms that a notification may take in total; a device waits 120 s for the answer. */
export const PUSH_TIME = 100_000;

/** ms before a retry after a 429 without Retry-After. */
const QUOTA_DELAY = 60_000;
/** Bound of the first random delay, and the largest, ms. */
const FIRST_BOUND = 1_000;
const GREATEST_BOUND = 32_000;

/** The end of an attempt. */
export interface AttemptResult {
  /** HTTP status; null: no answer. */
  readonly status: number | null;
  /** ms that the answer asks to wait; null: not stated. */
  readonly retryAfter: number | null;
}

/**
 * @param attempts made so far, at least 1
 * @param elapsed ms since the first began
 * @param random from 0 to less than 1
 * @returns ms to wait before the next attempt; null: none follows
 */
export function retryDelay({ status, retryAfter }: AttemptResult, attempts: number, elapsed: number, random: number): number | null {
  if (!isPassing(status)) return null;
  const bound = Math.min(GREATEST_BOUND, FIRST_BOUND * 2 ** (attempts - 1));
  const delay = Math.max(retryAfter ?? (status === 429 ? QUOTA_DELAY : 0), random * bound);
  return elapsed + delay < PUSH_TIME ? delay : null;
}

function isPassing(status: number | null): boolean {
  return status === null || status === 429 || status >= 500;
}

/**
 * Parses Retry-After (RFC 9110 §10.2.3): seconds or an HTTP date.
 * @param wallTime Unix ms
 * @returns ms, not negative; null when it is missing or malformed
 */
export function parseRetryAfter(value: string | undefined, wallTime: number): number | null {
  if (value === undefined) return null;
  if (/^\d{1,9}$/.test(value)) return Number(value) * 1000;
  const date = /^[A-Z][a-z]{2,8},? /.test(value) ? Date.parse(value) : Number.NaN;
  return Number.isNaN(date) ? null : Math.max(0, date - wallTime);
}
