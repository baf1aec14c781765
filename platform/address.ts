/**
 * IP addresses as text and as bytes, for paths, the `local` property and the simulator.
 *
 * Numeric addresses only; names are the resolver's. The canonical text is that of RFC 5952, with IPv4-mapped IPv6
 * (`::ffff:192.0.2.1`) written as plain IPv4, so that each peer has one spelling. A zone (`fe80::1%eth0`) is kept as it
 * is.
 */
import { formatAddress, parseAddress, type SocketAddress } from '../protocol/address.ts';
import { LocalError } from '../protocol/errors/index.ts';

export { parseAddress };

/** An address, and how many of its leading bits name the network. */
export interface Prefix {
  readonly bytes: Uint8Array;
  readonly length: number;
}

/** Returns the canonical spelling of a numeric address, null for anything else. */
export function canonicalAddress(text: string): string | null {
  const bytes = parseAddress(text);
  if (bytes === null) return null;
  const zone = text.indexOf('%');
  return formatAddress(bytes) + (zone < 0 || bytes.length === 4 ? '' : text.slice(zone));
}

/** Parses `ip:port`, with an IPv6 address in brackets. @throws LocalError INVALID_ARGUMENT */
export function parseSocketAddress(text: string): SocketAddress {
  const [, v6, v4, port = ''] = /^(?:\[([^\]%]+)\]|([^:]+)):(\d{1,5})$/.exec(text) ?? [];
  const address = canonicalAddress(v6 ?? v4 ?? '');
  if (address === null || address.includes(':') !== (v6 !== undefined) || Number(port) < 1 || Number(port) > 0xffff)
    throw new LocalError(
      'INVALID_ARGUMENT',
      `${JSON.stringify(text)} is not an address with port, such as 203.0.113.7:5593 or [2001:db8::7]:5593`,
    );
  return { address, port: Number(port) };
}

/** Parses `address` or `address/bits`. Without bits the prefix is the single address. */
export function parsePrefix(text: string): Prefix | null {
  const [address = '', bits, rest] = text.split('/');
  const bytes = parseAddress(address);
  if (bytes === null || rest !== undefined || (bits !== undefined && !/^\d{1,3}$/.test(bits))) return null;
  const length = bits === undefined ? bytes.length * 8 : Number(bits);
  return length <= bytes.length * 8 ? { bytes, length } : null;
}

/** Returns whether the address, 4 or 16 bytes, lies in the network; IPv4 and IPv6 never match each other. */
export function inPrefix(address: Uint8Array, prefix: Prefix): boolean {
  if (address.length !== prefix.bytes.length) return false;
  const whole = prefix.length >> 3;
  for (let i = 0; i < whole; i++) if (address[i] !== prefix.bytes[i]) return false;
  const mask = 0xff00 >> (prefix.length & 7);
  return (prefix.length & 7) === 0 || ((address[whole]! ^ prefix.bytes[whole]!) & mask & 0xff) === 0;
}

/** 127.0.0.0/8 (RFC 1122 §3.2.1.3) and ::1 (RFC 4291 §2.5.3). */
export function isLoopback(address: Uint8Array): boolean {
  return address.length === 4 ? address[0] === 127 : address.every((byte, i) => byte === (i === 15 ? 1 : 0));
}

/** 169.254.0.0/16 (RFC 3927) and fe80::/10 (RFC 4291 §2.5.6). */
export function isLinkLocal(address: Uint8Array): boolean {
  return address.length === 4 ? address[0] === 169 && address[1] === 254 : address[0] === 0xfe && (address[1]! & 0xc0) === 0x80;
}

/**
 * Returns whether a peer counts as near (PROTOCOL.md §6.12): loopback, link-local or in a prefix of one of our own
 * interfaces.
 * @param own the prefixes of our interfaces
 */
export function isNear(address: string, own: readonly Prefix[]): boolean {
  const bytes = parseAddress(address);
  return bytes !== null && (isLoopback(bytes) || isLinkLocal(bytes) || own.some((prefix) => inPrefix(bytes, prefix)));
}
