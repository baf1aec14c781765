/** The gateways of this host that may map a port, each with the address of this host that it sees. */

import type { HostInterface, Network } from '../../platform/environment.ts';
import { formatAddress, inPrefix, parseAddress, parsePrefix } from '../../protocol/address.ts';
import { addressKind } from '../../protocol/special-addresses.ts';

/** Most gateways to ask: more indicate a mistake in the routing table. */
export const MAX_GATEWAYS = 4;

export interface Gateway {
  readonly address: string;
  /** Our own address on its network; null if the host does not report its interfaces. */
  readonly own: string | null;
}

/** Returns the gateways of default routes, except those without an address of this host. */
export function gatewaysWithOwn(network: Pick<Network, 'gateways' | 'interfaces'>): Gateway[] {
  const interfaces = network.interfaces?.();
  return (network.gateways?.() ?? [])
    .flatMap((address): Gateway[] => {
      if (interfaces === undefined) return [{ address, own: null }];
      const own = ownAddressFor(address, interfaces);
      return own === null ? [] : [{ address, own }];
    })
    .slice(0, MAX_GATEWAYS);
}

/**
 * Returns the address that a gateway sees: of its zone, or of its network; else the first of the family on an interface
 * with a default route. For IPv6 only a global one: peers reach that address itself, once the gateway admits them.
 */
function ownAddressFor(gateway: string, interfaces: readonly HostInterface[]): string | null {
  const bytes = parseAddress(gateway);
  if (bytes === null) return null;
  const zone = gateway.split('%')[1];
  const ours = interfaces.flatMap(({ name, addresses, kind }) =>
    addresses.flatMap((cidr) => {
      const prefix = parsePrefix(cidr);
      if (prefix === null || prefix.bytes.length !== bytes.length || (bytes.length === 16 && addressKind(prefix.bytes) !== 'global'))
        return [];
      return [{ address: formatAddress(prefix.bytes), name, kind, isNear: inPrefix(bytes, prefix) }];
    }),
  );
  if (zone !== undefined) return ours.find(({ name }) => name === zone)?.address ?? null;
  return (ours.find(({ isNear }) => isNear) ?? ours.find(({ kind }) => kind === 'default'))?.address ?? null;
}
