/** Tokens as map keys. */

const WHOLE = 8;

/** A string that is equal exactly for equal bytes. Asked several times per exchange, so a token as ours takes the way without an iterator. */
export function tokenKey(token: Uint8Array): string {
  if (token.length !== WHOLE) return String.fromCharCode(...token);
  return String.fromCharCode(token[0]!, token[1]!, token[2]!, token[3]!, token[4]!, token[5]!, token[6]!, token[7]!);
}
