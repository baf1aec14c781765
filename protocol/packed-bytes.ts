/**
 * Bytes kept as a string with a letter (U+0000 … U+00FF) for each: engines keep such a string in a byte a letter, and 32 of them take 48 bytes where
 * a Uint8Array takes 250. For what every idle connection keeps and hardly anybody reads.
 */

export function packed(bytes: Uint8Array): string {
  return String.fromCharCode(...bytes);
}

/** What was packed. */
export function unpacked(letters: string): Uint8Array {
  const bytes = new Uint8Array(letters.length);
  for (let index = 0; index < bytes.length; index++) bytes[index] = letters.charCodeAt(index);
  return bytes;
}
