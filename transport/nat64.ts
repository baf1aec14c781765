/** Whether this network translates to IPv4 (RFC 7050). Sans-IO part: protocol/nat64.ts. */
import { parseAddress } from '../protocol/address.ts';
import { NAT64_NAME, type Nat64Prefix, nat64Prefixes } from '../protocol/nat64.ts';
import { isLinkLocal } from './address.ts';
import type { HostInterface, Network } from './environment.ts';

/**
 * The prefixes under which an IPv6-only host reaches IPv4 addresses; none where it has IPv4, where nothing translates, and where the resolver does not answer. A
 * resolver that lies gets packets for IPv4 candidates sent to an address of its choice: these are checks, which need an answer under the peer's key.
 */
export async function discoverNat64(network: Pick<Network, 'resolve' | 'interfaces'>): Promise<readonly Nat64Prefix[]> {
  if (hasIpv4(network.interfaces?.() ?? [])) return [];
  try {
    return nat64Prefixes(await network.resolve(NAT64_NAME));
  } catch {
    return [];
  }
}

/** Whether these interfaces lead to IPv4: a container bridge, a VPN and a link-local address lead only to hosts of their own. */
export function hasIpv4(interfaces: readonly HostInterface[]): boolean {
  return interfaces.some(({ kind, addresses }) => kind !== 'virtual' && addresses.some(isIpv4));
}

function isIpv4(cidr: string): boolean {
  const bytes = parseAddress(cidr.split('/')[0]!);
  return bytes?.length === 4 && !isLinkLocal(bytes);
}
