/**
 * The path that a connection should use (docs/transport.md §7): the local network before IPv6, IPv4 and the relay. A
 * voluntary migration waits until 10 s after the last one, so that a connection does not alternate between two similar
 * paths.
 */

/** The network of a path. */
export type PathClass = 'lan' | 'ipv6' | 'ipv4' | 'relay';

const ORDER: readonly PathClass[] = ['lan', 'ipv6', 'ipv4', 'relay'];
/** ms between two voluntary migrations. */
export const VOLUNTARY_PAUSE = 10_000;

/** Returns a negative number when `a` is preferred. */
export function comparePaths(a: PathClass, b: PathClass): number {
  return ORDER.indexOf(a) - ORDER.indexOf(b);
}

/**
 * Returns when the connection may migrate from `active` to `other`, which is validated; Infinity when it should not.
 * @param migratedAt time of the last voluntary migration
 */
export function migrateAt(active: PathClass, other: PathClass, migratedAt: number): number {
  return comparePaths(other, active) < 0 ? migratedAt + VOLUNTARY_PAUSE : Number.POSITIVE_INFINITY;
}
