/** Comparison of secrets in a time that does not depend on where they differ. */

/** Returns true when both have the same length and bytes. The length may leak; the content does not. */
export function equalBytes(a: Uint8Array, b: Uint8Array): boolean {
  if (a.length !== b.length) return false;
  let difference = 0;
  for (let i = 0; i < a.length; i++) difference |= a[i]! ^ b[i]!;
  return difference === 0;
}

/** Returns true when all bytes are zero, e.g. the Diffie-Hellman result of a low-order point (RFC 7748 §6.1). */
export function isAllZero(bytes: Uint8Array): boolean {
  let any = 0;
  for (let i = 0; i < bytes.length; i++) any |= bytes[i]!;
  return any === 0;
}
