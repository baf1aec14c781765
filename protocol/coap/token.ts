/** Tokens as map keys. */

const WHOLE = 8;

/**
 * Returns a string that is equal exactly for equal bytes. It is called several times per exchange, so tokens of our own
 * length take a path without an iterator.
 */
export function tokenKey(token: Uint8Array): string {
  if (token.length !== WHOLE) return String.fromCharCode(...token);
  return String.fromCharCode(token[0]!, token[1]!, token[2]!, token[3]!, token[4]!, token[5]!, token[6]!, token[7]!);
}
