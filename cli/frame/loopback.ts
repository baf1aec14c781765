/** Numeric addresses to listen on: which are reached only from this machine, and which stand for all. */

/** @param address numeric */
export function isLoopback(address: string): boolean {
  return address === '::1' || /^127\./.test(address);
}

/** Whether it stands for all addresses of the host. */
export function isWildcard(address: string): boolean {
  return address === '0.0.0.0' || /^[0:]+$/.test(address);
}

/** The address by which a program of this machine reaches a listener: loopback, where that is the wildcard. */
export function reachedAt(address: string): string {
  if (!isWildcard(address)) return address;
  return address.includes(':') ? '::1' : '127.0.0.1';
}
