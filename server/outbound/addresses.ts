/**
 * Where a URL that somebody configured may lead: a service must not become a door into the operator's own network.
 *
 * Every address a name resolves to is looked at, also inside the forms of IPv6 that carry an IPv4 address (mapped, NAT64, 6to4). Sources: the
 * IANA special-purpose address registries (RFC 6890), RFC 6052 (NAT64), RFC 3056 (6to4).
 */
import { BlockList, isIPv4 } from 'node:net';
import { formatAddress, parseAddress } from '../../protocol/address.ts';
import { RemoteError } from '../../protocol/errors/index.ts';
import { inPrefix, type Prefix, parsePrefix } from '../../transport/address.ts';
import { CLOUD_ADDRESSES } from '../../transport/cloud-addresses.ts';

/**
 * - public: anywhere on the Internet
 * - private: this machine, or a network of the operator's; only where the operator allows it
 * - never: link-local and metadata addresses, multicast, unspecified, reserved, and what is no address
 */
export type AddressClass = 'public' | 'private' | 'never';

const clouds: readonly Prefix[] = CLOUD_ADDRESSES.map((text) => parsePrefix(text)!);
const privateV4 = list('ipv4', ['10.0.0.0/8', '100.64.0.0/10', '127.0.0.0/8', '172.16.0.0/12', '192.168.0.0/16', '198.18.0.0/15']);
const neverV4 = list('ipv4', [
  '0.0.0.0/8',
  '169.254.0.0/16',
  '192.0.0.0/24',
  '192.0.2.0/24',
  '192.88.99.0/24',
  '198.51.100.0/24',
  '203.0.113.0/24',
  '224.0.0.0/4',
  '240.0.0.0/4',
]);
const privateV6 = list('ipv6', ['::1/128', 'fc00::/7']);
/** The only global unicast there is, and what of it is not. */
const globalV6 = list('ipv6', ['2000::/3']);
const specialV6 = list('ipv6', ['2001::/23', '2001:db8::/32', '3fff::/20']);
/** Prefixes with an IPv4 address behind them, and the byte it begins at. */
const carriers = [
  { list: list('ipv6', ['64:ff9b::/96']), at: 12 },
  { list: list('ipv6', ['2002::/16']), at: 2 },
] as const;

/** What kind of address a numeric text is. */
export function addressClass(text: string): AddressClass {
  const bytes = parseAddress(text);
  if (bytes === null || clouds.some((prefix) => inPrefix(bytes, prefix))) return 'never';
  const address = formatAddress(bytes);
  if (isIPv4(address)) {
    if (neverV4.check(address, 'ipv4')) return 'never';
    return privateV4.check(address, 'ipv4') ? 'private' : 'public';
  }
  const carrier = carriers.find((each) => each.list.check(address, 'ipv6'));
  if (carrier !== undefined) return addressClass(bytes.subarray(carrier.at, carrier.at + 4).join('.'));
  if (privateV6.check(address, 'ipv6')) return 'private';
  return globalV6.check(address, 'ipv6') && !specialV6.check(address, 'ipv6') ? 'public' : 'never';
}

/**
 * The addresses of a URL's host, all of them checked: one that is not allowed forbids the host.
 * @param resolve as that of the environment's network
 * @throws RemoteError BAD_RESPONSE when the name cannot be resolved or leads where it must not
 */
export async function allowedAddresses(
  url: URL,
  resolve: (host: string) => Promise<string[]>,
  allowPrivate: boolean,
): Promise<readonly string[]> {
  const host = url.hostname.replace(/^\[|\]$/g, '');
  const addresses = await resolve(host).catch(() => {
    throw new RemoteError('BAD_RESPONSE', 'the host name cannot be resolved');
  });
  const allowed = (address: string): boolean => {
    const kind = addressClass(address);
    return kind === 'public' || (kind === 'private' && allowPrivate);
  };
  if (addresses.length === 0 || !addresses.every(allowed))
    throw new RemoteError('BAD_RESPONSE', 'the host is not at an address that is allowed');
  return addresses;
}

function list(family: 'ipv4' | 'ipv6', prefixes: readonly string[]): BlockList {
  const made = new BlockList();
  for (const prefix of prefixes) {
    const [address = '', length] = prefix.split('/');
    made.addSubnet(address, Number(length), family);
  }
  return made;
}
