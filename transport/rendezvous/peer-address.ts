/** Whether a peer may be at an address: what a candidate, a stated one, and a STUN port of a station have to be. */
import { parseAddress } from '../address.ts';
import { type AddressKind, addressKind, embeddedAddress } from '../special-addresses.ts';

/** What is left out belongs to no single host, or only to this one or its link. */
const USABLE_KINDS: ReadonlySet<AddressKind> = new Set<AddressKind>(['global', 'private', 'shared', 'benchmarking', 'documentation']);

/** Whether a peer may be at a numeric address; one that is translated to IPv4 is as good as the address inside. */
export function isPeerAddress(address: string): boolean {
  const bytes = parseAddress(address);
  if (bytes === null || address.includes('%')) return false;
  return USABLE_KINDS.has(addressKind(embeddedAddress(bytes) ?? bytes));
}
