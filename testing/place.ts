/** Where a host is: its addresses, each with the network that it is in. */
import { canonicalAddress, type Prefix, parsePrefix } from '../protocol/address.ts';
import { LocalError } from '../protocol/errors/index.ts';

/** The addresses of a host. */
export interface HostPlace {
  /** As given, `address/bits` each. */
  readonly networks: readonly string[];
  readonly addresses: readonly string[];
  readonly prefixes: readonly Prefix[];
}

/** @throws LocalError INVALID_ARGUMENT for a text other than `address/bits` */
export function checkedPlace(networks: readonly string[]): HostPlace {
  const prefixes = networks.map(checkedPrefix);
  return { networks, prefixes, addresses: networks.map((address) => canonicalAddress(address.split('/')[0]!)!) };
}

function checkedPrefix(text: string): Prefix {
  const prefix = parsePrefix(text);
  if (prefix === null) throw new LocalError('INVALID_ARGUMENT', `${text} is not an address with prefix length, such as 192.0.2.1/24`);
  return prefix;
}
