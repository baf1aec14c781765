/**
 * This host's own interfaces: their prefixes decide whether a peer is near (PROTOCOL.md §6), their MTU bounds packet
 * sizes.
 */
import { readFileSync } from 'node:fs';
import { networkInterfaces } from 'node:os';
import { isNear, type Prefix, parsePrefix } from '../../protocol/address.ts';
import { orElse } from '../../protocol/or-else.ts';
import { MIN_MTU } from '../udp-path.ts';
import { reachableAddresses, readInterfaces, recent } from './host-interfaces.ts';

/** ms. Reading the interfaces costs far more than checking them, and they seldom change. */
const REFRESH = 3_000;

const ETHERNET_MTU = 1500;

/**
 * Returns a test for addresses that are loopback, link-local or in a prefix of one of our interfaces, as they were at
 * most 3 s ago.
 */
export function ownInterfaces(): (address: string) => boolean {
  let prefixes: readonly Prefix[] = [];
  const current = recent(() => {
    // A process without free file descriptors cannot ask.
    prefixes = orElse(readPrefixes, prefixes);
    return prefixes;
  }, REFRESH);
  return (address) => isNear(address, current(performance.now()));
}

/**
 * Returns the smallest MTU of our interfaces except loopback, if the system reports it (Linux); undefined when it is
 * that of Ethernet or more, which says nothing about the path. A larger packet would leave this host in fragments.
 */
export function smallLinkMtu(): number | undefined {
  const used = Object.entries(networkInterfaces()).filter(([, list]) => list?.some(({ internal }) => !internal));
  const least = Math.min(...used.map(([name]) => mtuOf(name)));
  return least < ETHERNET_MTU ? Math.max(least, MIN_MTU) : undefined;
}

/**
 * Returns an address at which other hosts on the network reach this one, preferably IPv4; loopback without a network.
 */
export function ownAddress(): string {
  return ownAddresses()[0] ?? '127.0.0.1';
}

/** Returns all such addresses, see `reachableAddresses`; none without a network. */
export function ownAddresses(): string[] {
  return reachableAddresses(readInterfaces([]));
}

/** @param name may contain the label of an alias, as in `eth0:1` */
function mtuOf(name: string): number {
  const mtu = orElse(() => readFileSync(`/sys/class/net/${name.replace(/:.*/, '')}/mtu`, 'latin1'), '');
  return Number(mtu) || Number.POSITIVE_INFINITY;
}

function readPrefixes(): Prefix[] {
  const addresses = Object.values(networkInterfaces()).flatMap((list) => list ?? []);
  return addresses.flatMap(({ cidr }) => parsePrefix(cidr ?? '') ?? []);
}
