/**
 * NAT64 (RFC 6146) as an IPv6-only host sees it: the prefix that its network puts in front of IPv4 addresses (RFC
 * 7050), and the IPv6 address of an IPv4 address under it (RFC 6052). The caller decides what to resolve and when.
 */
import { formatAddress, parseAddress } from './address.ts';

/** The name whose AAAA records reveal the prefix: it has no AAAA records of its own (RFC 7050 §8.2). */
export const NAT64_NAME = 'ipv4only.arpa';
/** Its well-known IPv4 addresses. */
export const NAT64_ADDRESSES: readonly string[] = ['192.0.0.170', '192.0.0.171'];
const WELL_KNOWN = NAT64_ADDRESSES.map((address) => parseAddress(address)!);
/** Positions of the IPv4 address bytes, by the prefix length in bits (RFC 6052 §2.2): byte 8 is always 0. */
const POSITIONS: ReadonlyMap<number, readonly number[]> = new Map([
  [96, [12, 13, 14, 15]],
  [64, [9, 10, 11, 12]],
  [56, [7, 9, 10, 11]],
  [48, [6, 7, 9, 10]],
  [40, [5, 6, 7, 9]],
  [32, [4, 5, 6, 7]],
]);
/** The octet "u" of RFC 6052 §2.2. It lies inside a 96-bit prefix. */
const RESERVED = 8;

export interface Nat64Prefix {
  /** 16 bytes, zeros after the prefix. */
  readonly bytes: Uint8Array;
  /** Bits: 32, 40, 48, 56, 64 or 96. */
  readonly length: number;
}

/**
 * Returns the prefixes that the resolved addresses of {@link NAT64_NAME} reveal; none where there is no NAT64. Prefixes
 * revealed by both well-known addresses are preferred to those revealed by one: bytes of a prefix may look like an
 * address (RFC 7050 §3).
 */
export function nat64Prefixes(addresses: readonly string[]): Nat64Prefix[] {
  const shown = new Map<string, { readonly prefix: Nat64Prefix; readonly by: Set<number> }>();
  for (const address of addresses) {
    for (const { prefix, wellKnown } of prefixesIn(parseAddress(address))) {
      const key = `${prefix.bytes.join()}/${prefix.length}`;
      const entry = shown.get(key) ?? { prefix, by: new Set() };
      shown.set(key, entry);
      entry.by.add(wellKnown);
    }
  }
  const all = [...shown.values()];
  const both = all.filter(({ by }) => by.size === WELL_KNOWN.length);
  return (both.length > 0 ? both : all).map(({ prefix }) => prefix);
}

/**
 * Returns the IPv6 address that a network with this prefix translates to `ipv4`; null when that is not a numeric IPv4
 * address.
 */
export function synthesize(prefix: Nat64Prefix, ipv4: string): string | null {
  const embedded = parseAddress(ipv4);
  if (embedded?.length !== 4) return null;
  const bytes = new Uint8Array(prefix.bytes);
  POSITIONS.get(prefix.length)!.forEach((at, i) => {
    bytes[at] = embedded[i]!;
  });
  return formatAddress(bytes);
}

function prefixesIn(bytes: Uint8Array | null): { prefix: Nat64Prefix; wellKnown: number }[] {
  if (bytes?.length !== 16) return [];
  return [...POSITIONS].flatMap(([length, positions]) => {
    if (length < 96 && bytes[RESERVED] !== 0) return [];
    const wellKnown = WELL_KNOWN.findIndex((address) => positions.every((at, i) => bytes[at] === address[i]));
    return wellKnown < 0 ? [] : [{ prefix: prefixOf(bytes, length), wellKnown }];
  });
}

function prefixOf(bytes: Uint8Array, length: number): Nat64Prefix {
  const prefix = new Uint8Array(16);
  prefix.set(bytes.subarray(0, length / 8));
  return { bytes: prefix, length };
}
