/**
 * Packs bytes into a string with one character (U+0000 … U+00FF) for each. Engines store such a string in one byte per
 * character: 32 bytes take 48 bytes, where a Uint8Array takes 250. For data that every idle connection keeps and rarely
 * reads.
 */

export function packed(bytes: Uint8Array): string {
  return String.fromCharCode(...bytes);
}

/** Returns the bytes that were packed. */
export function unpacked(letters: string): Uint8Array {
  const bytes = new Uint8Array(letters.length);
  for (let index = 0; index < bytes.length; index++) bytes[index] = letters.charCodeAt(index);
  return bytes;
}
