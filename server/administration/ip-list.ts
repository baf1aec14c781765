/**
 * IP allow lists of API keys: single addresses and CIDR prefixes, IPv4 and IPv6.
 *
 * IPv4-mapped IPv6 (`::ffff:a.b.c.d`, RFC 4291 §2.5.5.2) counts as the IPv4 address it carries, on either side of the
 * comparison: a dual-stack socket reports IPv4 peers in that form. Otherwise the families do not mix: `::/0` admits no
 * IPv4 peer. Zone ids (`%eth0`) are dropped from peers and refused in entries.
 */
import { BlockList, isIPv4, isIPv6, SocketAddress } from 'node:net';

interface Prefix {
  address: string;
  family: 'ipv4' | 'ipv6';
  length: number;
}

/** Returns true for an address or prefix that is valid in an allow list. */
export function isIpEntry(text: string): boolean {
  return parseEntry(text) !== null;
}

/** Returns true when the peer's address is in one of the entries. Entries that do not parse admit no address. */
export function ipAllowed(entries: readonly string[], peer: string): boolean {
  const address = parseEntry(peer.replace(/%.*$/, ''));
  if (address === null) return false;
  const list = new BlockList();
  for (const entry of entries) {
    const prefix = parseEntry(entry);
    if (prefix?.family === address.family) list.addSubnet(prefix.address, prefix.length, prefix.family);
  }
  return list.check(address.address, address.family);
}

function parseEntry(text: string): Prefix | null {
  const [address = '', length, ...rest] = text.split('/');
  if (rest.length > 0 || (length !== undefined && !/^(0|[1-9][0-9]{0,2})$/.test(length))) return null;
  const family = isIPv4(address) ? 'ipv4' : isIPv6(address) && !address.includes('%') ? 'ipv6' : null;
  if (family === null) return null;
  const bits = family === 'ipv4' ? 32 : 128;
  const prefix = { address, family, length: length === undefined ? bits : Number(length) } as const;
  return prefix.length > bits ? null : unmapped(prefix);
}

/** Converts a prefix inside ::ffff:0:0/96 to the IPv4 prefix that it means; returns others unchanged. */
function unmapped(prefix: Prefix): Prefix {
  if (prefix.family === 'ipv4' || prefix.length < 96) return prefix;
  const { address } = new SocketAddress({ address: prefix.address, family: 'ipv6' });
  const dotted = /^::ffff:([0-9.]+)$/.exec(address)?.[1];
  return dotted === undefined ? prefix : { address: dotted, family: 'ipv4', length: prefix.length - 96 };
}
