/** Finds out whether this network translates to IPv4 (RFC 7050). Sans-IO part: protocol/nat64.ts. */

import type { Environment, HostInterface, Network } from '../../platform/environment.ts';
import { isLinkLocal, parseAddress } from '../../protocol/address.ts';
import { NAT64_NAME, type Nat64Prefix, nat64Prefixes, synthesize } from '../../protocol/nat64.ts';

/**
 * ms after which a host without IPv4 that found no prefix may ask again: its network or resolver may not have been
 * ready.
 */
const ASK_AGAIN = 10_000;

/**
 * The translation to IPv4 in this host's network. `refresh` looks it up; the result is valid until the host has other
 * addresses.
 */
export class Nat64 {
  readonly #environment: Pick<Environment, 'clock' | 'network'>;
  #prefix: Nat64Prefix | null = null;
  /** Addresses of this host for which the last lookup was made; null before it. */
  #addresses: string | null = null;
  #askAgainAt = Number.POSITIVE_INFINITY;
  /** Lookups begun so far: only the answer of the last one counts. */
  #lookups = 0;

  constructor(environment: Pick<Environment, 'clock' | 'network'>) {
    this.#environment = environment;
  }

  /**
   * Returns how this host reaches an address: the address itself, or the IPv6 address that the network translates to
   * it.
   */
  reach(address: string): string {
    return this.#prefix === null ? address : (synthesize(this.#prefix, address) ?? address);
  }

  /**
   * Asks the resolver if the host's addresses have changed since the last lookup, or if that found nothing. The result
   * counts from its arrival.
   */
  refresh(): void {
    const { clock, network } = this.#environment;
    const interfaces = network.interfaces?.() ?? [];
    const addresses = interfaces.flatMap((each) => each.addresses).join();
    if (addresses === this.#addresses && clock.now() < this.#askAgainAt) return;
    this.#addresses = addresses;
    this.#prefix = null;
    this.#askAgainAt = Number.POSITIVE_INFINITY;
    const lookup = ++this.#lookups;
    void discoverNat64(network).then(([prefix = null]) => {
      if (lookup !== this.#lookups) return;
      this.#prefix = prefix;
      if (prefix === null && !hasIpv4(interfaces)) this.#askAgainAt = clock.now() + ASK_AGAIN;
    });
  }
}

/**
 * Returns the prefixes under which an IPv6-only host reaches IPv4 addresses; none where the host has IPv4, where
 * nothing translates, and where the resolver does not answer. A lying resolver can direct packets for IPv4 candidates
 * to an address of its choice, but these are checks, which need an answer under the peer's key.
 */
export async function discoverNat64(network: Pick<Network, 'resolve' | 'interfaces'>): Promise<readonly Nat64Prefix[]> {
  if (hasIpv4(network.interfaces?.() ?? [])) return [];
  return network.resolve(NAT64_NAME).then(nat64Prefixes, () => []);
}

/**
 * Returns whether these interfaces lead to IPv4: a container bridge, a VPN and a link-local address lead only to hosts
 * of their own.
 */
export function hasIpv4(interfaces: readonly HostInterface[]): boolean {
  return interfaces.some(({ kind, addresses }) => kind !== 'virtual' && addresses.some(isIpv4));
}

function isIpv4(cidr: string): boolean {
  const bytes = parseAddress(cidr.split('/')[0]!);
  return bytes?.length === 4 && !isLinkLocal(bytes);
}
