/** What base station and device read of the push provider's documents, which are otherwise passed on unread. */
import type { PushAnswer } from './relayed.ts';

/**
 * True when the provider says that the registration token is gone: 404 with the error code UNREGISTERED.
 * A 404 without it may be that of a gateway, or of a wrong base URL.
 *
 *     {"error": {…, "details": [{"@type": "…FcmError", "errorCode": "…"}]}}
 */
export function isUnregistered({ statusCode, body }: PushAnswer): boolean {
  if (statusCode !== 404) return false;
  const details = member(member(parsed(body), 'error'), 'details');
  return Array.isArray(details) && details.some((each) => member(each, 'errorCode') === 'UNREGISTERED');
}

/** The registration token a notification goes to; null when it has none or is no JSON. */
export function tokenOf(body: string): string | null {
  const token = member(member(parsed(body), 'message'), 'token');
  return typeof token === 'string' ? token : null;
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

function member(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null && Object.hasOwn(value, name) ? (value as Record<string, unknown>)[name] : undefined;
}
