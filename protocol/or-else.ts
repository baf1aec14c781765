/** Computes a value that needs no error: what is missing, unreadable or malformed counts as another value. */

export function orElse<T, U>(compute: () => T, otherwise: U): T | U {
  try {
    return compute();
  } catch {
    return otherwise;
  }
}
