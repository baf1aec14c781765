/** Cutting of a text to a number of UTF-8 bytes without splitting a character. */

/** Returns the text itself, or as many whole characters of it as fit. @param max UTF-8 bytes */
export function cutText(text: string, max: number): string {
  const bytes = new TextEncoder().encode(text);
  if (bytes.length <= max) return text;
  let end = max;
  while (end > 0 && isContinuation(bytes[end]!)) end--;
  return new TextDecoder('utf-8', { ignoreBOM: true }).decode(bytes.subarray(0, end));
}

/** Returns whether it is not the first byte of a character. */
function isContinuation(byte: number): boolean {
  return (byte & 0xc0) === 0x80;
}
