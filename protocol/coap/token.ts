/** Tokens as map keys. */

/** A string that is equal exactly for equal bytes. */
export function tokenKey(token: Uint8Array): string {
  return String.fromCharCode(...token);
}
