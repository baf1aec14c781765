/** The gateways of this host at which a port may be mapped, each with the address of ours that it sees. */
import { formatAddress, parseAddress } from '../../protocol/address.ts';
import { inPrefix, parsePrefix } from '../address.ts';
import type { HostInterface, Network } from '../environment.ts';
import { addressKind } from '../special-addresses.ts';

/** Gateways that are asked: more are a mistake of the routing table. */
const MOST_GATEWAYS = 4;

export interface Gateway {
  readonly address: string;
  /** Our own address on its network; null where the host does not tell its interfaces. */
  readonly own: string | null;
}

/** The gateways of default routes, those without an address of ours left out. */
export function gatewaysWithOwn(network: Pick<Network, 'gateways' | 'interfaces'>): Gateway[] {
  const interfaces = network.interfaces?.();
  return (network.gateways?.() ?? [])
    .flatMap((address): Gateway[] => {
      if (interfaces === undefined) return [{ address, own: null }];
      const own = ownAddressFor(address, interfaces);
      return own === null ? [] : [{ address, own }];
    })
    .slice(0, MOST_GATEWAYS);
}

/**
 * The address that a gateway sees: of its zone, or of its network; else the first of the family on an interface with a default route. Of IPv6 only a global
 * one: peers reach that address itself, once the gateway lets them through.
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
