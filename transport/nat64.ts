/** Whether this network translates to IPv4 (RFC 7050). Sans-IO part: protocol/nat64.ts. */
import { parseAddress } from '../protocol/address.ts';
import { NAT64_NAME, type Nat64Prefix, nat64Prefixes } from '../protocol/nat64.ts';
import type { Network } from './environment.ts';

/**
 * The prefixes under which an IPv6-only host reaches IPv4 addresses; none where it has IPv4, where nothing translates, and where the resolver does not answer. A
 * resolver that lies gets packets for IPv4 candidates sent to an address of its choice: these are checks, which need an answer under the peer's key.
 */
export async function discoverNat64(network: Pick<Network, 'resolve' | 'interfaces'>): Promise<readonly Nat64Prefix[]> {
  const own = network.interfaces?.().flatMap(({ addresses }) => addresses) ?? [];
  if (own.some((cidr) => parseAddress(cidr.split('/')[0]!)?.length === 4)) return [];
  try {
    return nat64Prefixes(await network.resolve(NAT64_NAME));
  } catch {
    return [];
  }
}
