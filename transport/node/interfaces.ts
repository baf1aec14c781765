/** Prefixes of this host's own interfaces: what decides whether a peer is near (PROTOCOL.md §6). */
import { networkInterfaces } from 'node:os';
import { isNear, type Prefix, parsePrefix } from '../address.ts';

/** ms. Reading the interfaces costs far more than a look at them and they seldom change. */
const REFRESH = 3_000;

/** A test whether an address is loopback, link-local or in a prefix of one of our interfaces, as they were at most 3 s ago. */
export function ownInterfaces(): (address: string) => boolean {
  let prefixes: readonly Prefix[] = [];
  let readAt = Number.NEGATIVE_INFINITY;
  return (address) => {
    const now = performance.now();
    if (now - readAt > REFRESH) {
      prefixes = readPrefixes();
      readAt = now;
    }
    return isNear(address, prefixes);
  };
}

function readPrefixes(): Prefix[] {
  const addresses = Object.values(networkInterfaces()).flatMap((list) => list ?? []);
  return addresses.flatMap(({ cidr }) => parsePrefix(cidr ?? '') ?? []);
}
