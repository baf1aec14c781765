/** Which addresses are reached from this machine alone. */

/** @param address numeric */
export function isLoopback(address: string): boolean {
  return address === '::1' || /^127\./.test(address);
}

/** Where a program of this machine reaches what listens on an address: any address of it, and so loopback, where that is the wildcard. */
export function reachedAt(address: string): string {
  if (address === '0.0.0.0') return '127.0.0.1';
  return /^[0:]+$/.test(address) ? '::1' : address;
}
