/**
 * Converts addresses between the kernel's `struct sockaddr_in` and `sockaddr_in6` (ip(7), ipv6(7)) and Node's text and
 * port.
 */
import { formatAddress, parseAddress } from '../../../protocol/address.ts';
import type { SystemCalls } from './system-calls.ts';

/** System calls for looking up zones. */
export type ZoneCalls = Pick<SystemCalls, 'if_nametoindex' | 'if_indextoname'>;

const AF_INET = 2;
const AF_INET6 = 10;
/** Bytes of either structure. */
const LENGTH_IPV4 = 16;
export const LENGTH_IPV6 = 28;
/** Offsets of their fields. */
const PORT = 2;
const ADDRESS_IPV4 = 4;
const ADDRESS_IPV6 = 8;
const SCOPE = 24;
/** Bytes of the name of an interface (IF_NAMESIZE). */
const NAME_SIZE = 16;

/** @param address numeric, with a zone if it has one. @returns null for a zone this host does not have */
export function encodeSocketAddress(address: string, port: number, calls: ZoneCalls): Uint8Array | null {
  const ip = parseAddress(address);
  if (ip === null) return null;
  const bytes = new Uint8Array(ip.length === 4 ? LENGTH_IPV4 : LENGTH_IPV6);
  const view = new DataView(bytes.buffer);
  new Uint16Array(bytes.buffer, 0, 1)[0] = ip.length === 4 ? AF_INET : AF_INET6;
  view.setUint16(PORT, port);
  bytes.set(ip, ip.length === 4 ? ADDRESS_IPV4 : ADDRESS_IPV6);
  const zone = address.indexOf('%');
  if (zone < 0) return bytes;
  const name = address.slice(zone + 1);
  const scope = /^\d+$/.test(name) ? Number(name) : calls.if_nametoindex(name);
  if (scope === 0) return null;
  new Uint32Array(bytes.buffer, SCOPE, 1)[0] = scope;
  return bytes;
}

/**
 * Reads addresses that the kernel wrote. It creates a string only for an address other than the previous one: most
 * datagrams have the sender of the previous datagram.
 */
export class SocketAddressReader {
  /** Numeric text as Node writes it, with the zone of a link-local address. */
  address = '';
  port = 0;
  readonly #calls: ZoneCalls;
  readonly #known = new Uint32Array(LENGTH_IPV6 / 4);
  readonly #bytes = new Uint8Array(this.#known.buffer);
  readonly #family = new Uint16Array(this.#known.buffer, 0, 1);

  constructor(calls: ZoneCalls) {
    this.#calls = calls;
  }

  /** @param words where a `struct sockaddr_in` or `sockaddr_in6` begins at index `at` */
  read(words: Uint32Array, at: number): void {
    const known = this.#known;
    // The first two words of an IPv4 address suffice: the rest is padding, or left over from another address.
    if (words[at] === known[0] && words[at + 1] === known[1]) {
      if (this.#family[0] === AF_INET) return;
      let i = 2;
      while (i < known.length && words[at + i] === known[i]) i++;
      if (i === known.length) return;
    }
    for (let i = 0; i < known.length; i++) known[i] = words[at + i]!;
    this.port = (this.#bytes[PORT]! << 8) | this.#bytes[PORT + 1]!;
    this.address =
      this.#family[0] === AF_INET ? this.#text(ADDRESS_IPV4, 4) : this.#text(ADDRESS_IPV6, 16) + zoneOf(known[SCOPE / 4]!, this.#calls);
  }

  #text(start: number, length: number): string {
    return formatAddress(this.#bytes.subarray(start, start + length));
  }
}

/** Suffix of an address: empty if it needs no zone, the zone's number if the interface is gone. */
function zoneOf(scope: number, calls: ZoneCalls): string {
  if (scope === 0) return '';
  const name = new Uint8Array(NAME_SIZE);
  if (!calls.if_indextoname(scope, name)) return `%${scope}`;
  return `%${String.fromCharCode(...name.subarray(0, name.indexOf(0)))}`;
}
