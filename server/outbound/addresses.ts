/**
 * Checks where a URL that the operator configured may lead: a service must not open up the operator's own network.
 *
 * Every address that a name resolves to is checked, including an IPv4 address inside IPv6 (mapped, NAT64, 6to4,
 * ISATAP).
 * `protocol/special-addresses.ts` classifies addresses; this file decides which of them a service may have.
 */

import { parseAddress } from '../../protocol/address.ts';
import { RemoteError } from '../../protocol/errors/index.ts';
import { type AddressKind, addressKind, embeddedAddress } from '../../protocol/special-addresses.ts';

/**
 * - public: anywhere on the Internet
 * - private: this machine, or a network of the operator; only where the operator allows it
 * - never: link-local and metadata addresses, multicast, unspecified, reserved, and anything but an address
 */
export type AddressClass = 'public' | 'private' | 'never';

/** The policy. A translated address counts as the address inside it. */
const classes: Readonly<Record<Exclude<AddressKind, 'translated'>, AddressClass>> = {
  global: 'public',
  private: 'private',
  shared: 'private',
  benchmarking: 'private',
  loopback: 'private',
  'link-local': 'never',
  cloud: 'never',
  'this-network': 'never',
  multicast: 'never',
  broadcast: 'never',
  protocol: 'never',
  documentation: 'never',
  'relay-anycast': 'never',
  reserved: 'never',
};

export const NOT_ALLOWED = 'the host is not at an address that is allowed';

/** Returns the class of a numeric address. */
export function addressClass(text: string): AddressClass {
  const bytes = parseAddress(text);
  return bytes === null ? 'never' : classOf(bytes);
}

function classOf(address: Uint8Array): AddressClass {
  const kind = addressKind(address);
  return kind === 'translated' ? classOf(embeddedAddress(address)!) : classes[kind];
}

/**
 * Returns the addresses of a URL's host, all checked: a single forbidden one excludes the host.
 * @param resolve as that of the environment's network
 * @param allowPrivate whether a private address is allowed
 * @throws RemoteError BAD_RESPONSE when the name cannot be resolved or leads to a forbidden address
 */
export async function allowedAddresses(
  url: URL,
  resolve: (host: string) => Promise<string[]>,
  allowPrivate: (address: string) => boolean,
): Promise<readonly string[]> {
  const host = url.hostname.replace(/^\[|\]$/g, '');
  const addresses = await resolve(host).catch(() => {
    throw new RemoteError('BAD_RESPONSE', 'the host name cannot be resolved');
  });
  const allowed = (address: string): boolean => {
    const kind = addressClass(address);
    return kind === 'public' || (kind === 'private' && allowPrivate(address));
  };
  if (addresses.length === 0 || !addresses.every(allowed)) throw new RemoteError('BAD_RESPONSE', NOT_ALLOWED);
  return addresses;
}
