/** Shortening the provider's answers. */

/** The text itself, or as many whole characters of it as fit. @param max UTF-8 bytes */
export function cutText(text: string, max: number): string {
  const bytes = new TextEncoder().encode(text);
  // A decoder that waits for more leaves a character that is cut in two out.
  return bytes.length <= max ? text : new TextDecoder('utf-8', { ignoreBOM: true }).decode(bytes.subarray(0, max), { stream: true });
}
