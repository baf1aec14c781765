/**
 * The parts of the push provider's documents that base station and device inspect; otherwise they pass the documents on
 * unread.
 */

import { orElse } from '../or-else.ts';
import type { PushAnswer } from './relayed.ts';

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
