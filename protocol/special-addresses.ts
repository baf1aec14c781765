/**
 * Special-purpose IP addresses: one table of prefixes, each with its kind and its source.
 *
 * It says what an address is, not what is allowed: base station and device each have their own policy for the kinds.
 * The most specific prefix decides. Sources: the IANA special-purpose address registries (RFC 6890), the RFCs named in
 * the table, and the documentation of the clouds.
 */
import { inPrefix, type Prefix, parsePrefix } from './address.ts';

/**
 * - global: anywhere on the Internet
 * - private, shared, benchmarking, loopback: in a network of the operator, of its provider, of a test bed, of this host
 * - link-local: on one link; clouds have their metadata service there
 * - cloud: a metadata or platform service of a cloud at an address that is not link-local. A caller that reaches one
 *   acts as the machine
 * - this-network, multicast, broadcast: no single host has it
 * - translated: an IPv6 address with an IPv4 address inside, also one of ISATAP, see {@link embeddedAddress}
 * - protocol, documentation, relay-anycast, reserved: no host has it, or none that offers a service
 */
export type AddressKind =
  | 'global'
  | 'private'
  | 'shared'
  | 'benchmarking'
  | 'loopback'
  | 'link-local'
  | 'cloud'
  | 'this-network'
  | 'multicast'
  | 'broadcast'
  | 'translated'
  | 'protocol'
  | 'documentation'
  | 'relay-anycast'
  | 'reserved';

/** Prefix, kind, source. */
export const SPECIAL_ADDRESSES: readonly (readonly [prefix: string, kind: AddressKind, source: string])[] = [
  ['0.0.0.0/0', 'global', 'RFC 791'],
  ['0.0.0.0/8', 'this-network', 'RFC 1122 §3.2.1.3'],
  ['10.0.0.0/8', 'private', 'RFC 1918'],
  ['100.64.0.0/10', 'shared', 'RFC 6598'],
  ['127.0.0.0/8', 'loopback', 'RFC 1122 §3.2.1.3'],
  ['169.254.0.0/16', 'link-local', 'RFC 3927'],
  ['172.16.0.0/12', 'private', 'RFC 1918'],
  ['192.0.0.0/24', 'protocol', 'RFC 6890 §2.1'],
  ['192.0.2.0/24', 'documentation', 'RFC 5737'],
  ['192.88.99.0/24', 'relay-anycast', 'RFC 7526'],
  ['192.168.0.0/16', 'private', 'RFC 1918'],
  ['198.18.0.0/15', 'benchmarking', 'RFC 2544'],
  ['198.51.100.0/24', 'documentation', 'RFC 5737'],
  ['203.0.113.0/24', 'documentation', 'RFC 5737'],
  ['224.0.0.0/4', 'multicast', 'RFC 5771'],
  ['240.0.0.0/4', 'reserved', 'RFC 1112 §4'],
  ['255.255.255.255/32', 'broadcast', 'RFC 919 §7'],

  ['::/0', 'reserved', 'RFC 4291 §2.4'],
  ['::/128', 'this-network', 'RFC 4291 §2.5.2'],
  ['::1/128', 'loopback', 'RFC 4291 §2.5.3'],
  ['64:ff9b::/96', 'translated', 'RFC 6052 §2.1'],
  ['2000::/3', 'global', 'RFC 4291 §2.4'],
  ['2001::/23', 'protocol', 'RFC 2928'],
  ['2001:db8::/32', 'documentation', 'RFC 3849'],
  ['2002::/16', 'translated', 'RFC 3056 §2'],
  ['3fff::/20', 'documentation', 'RFC 9637'],
  ['fc00::/7', 'private', 'RFC 4193'],
  ['fe80::/10', 'link-local', 'RFC 4291 §2.5.6'],
  ['ff00::/8', 'multicast', 'RFC 4291 §2.7'],

  ['100.100.100.200/32', 'cloud', 'Alibaba Cloud'],
  ['168.63.129.16/32', 'cloud', 'Azure'],
  ['192.0.0.192/32', 'cloud', 'Oracle Cloud'],
  ['fd00:42::42/128', 'cloud', 'Scaleway'],
  ['fd00:c1::a9fe:a9fe/128', 'cloud', 'Oracle Cloud'],
  ['fd00:ec2::/32', 'cloud', 'Amazon EC2'],
  ['fd20:ce::254/128', 'cloud', 'Google Cloud'],
];

/**
 * Where a prefix of kind `translated` has its IPv4 address: the index of its first byte, by the length of the prefix.
 */
const EMBEDDED_AT: ReadonlyMap<number, number> = new Map([
  [96, 12],
  [16, 2],
]);

interface Entry {
  readonly prefix: Prefix;
  readonly kind: AddressKind;
}

/** Interface identifiers of ISATAP, under any prefix: these four bytes before an IPv4 address (RFC 5214 §6.1). */
const ISATAP: readonly (readonly number[])[] = [
  [0, 0, 0x5e, 0xfe],
  [2, 0, 0x5e, 0xfe],
];
const INTERFACE_AT = 8;

/** Most specific first. */
const entries: readonly Entry[] = SPECIAL_ADDRESSES.map(([prefix, kind]) => ({ prefix: parsePrefix(prefix)!, kind })).sort(
  (a, b) => b.prefix.length - a.prefix.length,
);

/**
 * Returns the kind of an address.
 * @param address 4 or 16 bytes, as `parseAddress` returns them: an IPv4-mapped one is IPv4
 */
export function addressKind(address: Uint8Array): AddressKind {
  return isIsatap(address) ? 'translated' : entryOf(address).kind;
}

/** Returns the 4 bytes of the IPv4 address inside an address of kind `translated`; null for any other. */
export function embeddedAddress(address: Uint8Array): Uint8Array | null {
  if (isIsatap(address)) return address.subarray(12);
  const { kind, prefix } = entryOf(address);
  const at = kind === 'translated' ? EMBEDDED_AT.get(prefix.length)! : null;
  return at === null ? null : address.subarray(at, at + 4);
}

/** Only global ones: any other kind is no public address anyway. */
function isIsatap(address: Uint8Array): boolean {
  const marked = ISATAP.some((mark) => mark.every((byte, index) => address[INTERFACE_AT + index] === byte));
  return marked && entryOf(address).kind === 'global';
}

function entryOf(address: Uint8Array): Entry {
  return entries.find(({ prefix }) => inPrefix(address, prefix))!;
}
