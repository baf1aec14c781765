/** Reading and shortening the provider's answers. */

/**
 * True when the provider says that the registration token is gone: 404 with the error code UNREGISTERED.
 * @param body `{"error": {…, "details": [{"@type": "…FcmError", "errorCode": "…"}]}}`
 */
export function isUnregistered(status: number, body: string): boolean {
  if (status !== 404) return false;
  const details = member(member(parsed(body), 'error'), 'details');
  return Array.isArray(details) && details.some((each) => member(each, 'errorCode') === 'UNREGISTERED');
}

/** The registration token a notification goes to; null when it has none or is no JSON. */
export function tokenOf(body: string): string | null {
  const token = member(member(parsed(body), 'message'), 'token');
  return typeof token === 'string' ? token : null;
}

/** The text itself, or as many whole characters of it as fit. @param max UTF-8 bytes */
export function cutText(text: string, max: number): string {
  const bytes = new TextEncoder().encode(text);
  // A decoder that waits for more leaves a character that is cut in two out.
  return bytes.length <= max ? text : new TextDecoder('utf-8', { ignoreBOM: true }).decode(bytes.subarray(0, max), { stream: true });
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
