/** Checks whether a peer may have an address: for candidates, stated addresses, and STUN ports of a station. */
import { parseAddress } from '../../protocol/address.ts';
import { type AddressKind, addressKind, embeddedAddress } from '../../protocol/special-addresses.ts';

/** The other kinds belong to no single host, or only to this one or its link. */
const USABLE_KINDS: ReadonlySet<AddressKind> = new Set<AddressKind>(['global', 'private', 'shared', 'benchmarking', 'documentation']);

/**
 * Returns whether a peer may be at a numeric address; an IPv6 address that translates to IPv4 counts as the address
 * inside.
 */
export function isPeerAddress(address: string): boolean {
  const bytes = parseAddress(address);
  if (bytes === null || address.includes('%')) return false;
  return USABLE_KINDS.has(addressKind(embeddedAddress(bytes) ?? bytes));
}
