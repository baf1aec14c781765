/**
 * IP addresses as text and as bytes; numeric addresses only. The canonical text is that of RFC 5952, but IPv4-mapped
 * IPv6 (`::ffff:192.0.2.1`) is written as plain IPv4, so that each peer has one spelling. A zone
 * (`fe80::1%eth0`) is kept as it is.
 */
import { LocalError } from './errors/index.ts';

/** A UDP address. */
export interface SocketAddress {
  /** Numeric IPv4 or IPv6. */
  readonly address: string;
  readonly port: number;
}

/** Character code of the digit 0. */
const ZERO = 0x30;

/**
 * Returns the 4 or 16 bytes of a numeric address, null for anything else. An IPv4-mapped address yields 4 bytes; a zone
 * is ignored.
 */
export function parseAddress(text: string): Uint8Array | null {
  const zone = text.indexOf('%');
  const address = zone < 0 ? text : text.slice(0, zone);
  if (!address.includes(':')) return zone < 0 ? parseV4(address) : null;
  const bytes = parseV6(address);
  return bytes !== null && isMapped(bytes) ? bytes.subarray(12) : bytes;
}

/** Returns the canonical text of 4 or 16 bytes. */
export function formatAddress(bytes: Uint8Array): string {
  const plain = bytes.length === 16 && isMapped(bytes) ? bytes.subarray(12) : bytes;
  return plain.length === 4 ? plain.join('.') : formatV6(plain);
}

/**
 * Returns the key of the network that rates and limits count as one peer: an IPv4 address, or the /64 of an IPv6
 * address, within which a host can use any number of addresses (RFC 4291 §2.5.1). The key is not an address. Text that
 * is not a numeric address is its own key.
 */
export function networkOf(address: string): string {
  if (!address.includes(':')) return address;
  const bytes = parseAddress(address);
  if (bytes === null) return address;
  return bytes.length === 4 ? formatAddress(bytes) : joined(groupsOf(bytes.subarray(0, 8)));
}

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

function parseV4(text: string): Uint8Array | null {
  const bytes = new Uint8Array(4);
  let count = 0;
  /** Value of the digits so far, -1 before the first. */
  let value = -1;
  for (let index = 0; index < text.length; index++) {
    const digit = text.charCodeAt(index) - ZERO;
    if (digit >= 0 && digit <= 9) {
      if (value === 0) return null;
      value = 10 * Math.max(value, 0) + digit;
      if (value > 255) return null;
    } else {
      if (text[index] !== '.' || value < 0 || count === 3) return null;
      bytes[count++] = value;
      value = -1;
    }
  }
  if (value < 0 || count !== 3) return null;
  bytes[3] = value;
  return bytes;
}

/** RFC 4291 §2.2: eight groups, one run of zeros as `::`, the last 32 bits optionally as IPv4. */
function parseV6(text: string): Uint8Array | null {
  const halves = text.split('::');
  if (halves.length > 2) return null;
  const head = bytesOf(halves[0]!, halves.length === 1);
  const tail = halves.length === 2 ? bytesOf(halves[1]!, true) : [];
  if (head === null || tail === null) return null;
  const zeros = 16 - head.length - tail.length;
  if (halves.length === 2 ? zeros < 2 : zeros !== 0) return null;
  return Uint8Array.from([...head, ...new Array<number>(zeros).fill(0), ...tail]);
}

/** Returns the bytes of the groups between colons, null when one is not a group. */
function bytesOf(text: string, last: boolean): number[] | null {
  if (text === '') return [];
  const bytes: number[] = [];
  const parts = text.split(':');
  for (const [i, part] of parts.entries()) {
    const v4 = last && i === parts.length - 1 && part.includes('.') ? parseV4(part) : null;
    if (v4 !== null) bytes.push(...v4);
    else if (/^[0-9a-fA-F]{1,4}$/.test(part)) bytes.push(Number.parseInt(part, 16) >> 8, Number.parseInt(part, 16) & 0xff);
    else return null;
  }
  return bytes.length <= 16 ? bytes : null;
}

/** RFC 5952 §4: lower case, no leading zeros, the first longest run of two or more zero groups as `::`. */
function formatV6(bytes: Uint8Array): string {
  const words = groupsOf(bytes);
  let start = -1;
  let longest = 1;
  for (let i = 0; i < 8; i++) {
    let end = i;
    while (end < 8 && words[end] === 0) end++;
    if (end - i > longest) [start, longest] = [i, end - i];
  }
  return start < 0 ? joined(words) : `${joined(words.slice(0, start))}::${joined(words.slice(start + longest))}`;
}

/** Returns the 16-bit groups of an IPv6 address or of its first bytes. */
function groupsOf(bytes: Uint8Array): number[] {
  return Array.from({ length: bytes.length / 2 }, (_, i) => (bytes[2 * i]! << 8) | bytes[2 * i + 1]!);
}

function joined(words: readonly number[]): string {
  return words.map((word) => word.toString(16)).join(':');
}

function isMapped(bytes: Uint8Array): boolean {
  return bytes[10] === 0xff && bytes[11] === 0xff && bytes.subarray(0, 10).every((byte) => byte === 0);
}
