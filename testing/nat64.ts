/**
 * Addresses of NAT64: IPv4 addresses under an IPv6 prefix of 96 bits (RFC 6052 §2.2), and a resolver's use of them (RFC
 * 6147, RFC 7050).
 */

import { inPrefix, type Prefix, parseAddress, parsePrefix } from '../platform/address.ts';
import { formatAddress } from '../protocol/address.ts';
import { LocalError } from '../protocol/errors/index.ts';

const PREFIX_BITS = 96;
/** RFC 7050 §8.2: the name with two well-known IPv4 addresses and no IPv6 one. */
export const IPV4_ONLY_NAME = 'ipv4only.arpa';
export const IPV4_ONLY_ADDRESSES: readonly string[] = ['192.0.0.170', '192.0.0.171'];

/** The prefix of a NAT64. */
export class TranslationPrefix {
  readonly #prefix: Prefix;

  /**
   * @param text `64:ff9b::`, with or without `/96`. @throws LocalError INVALID_ARGUMENT unless it is an IPv6 prefix of
   *   96 bits
   */
  constructor(text: string) {
    const prefix = parsePrefix(text.includes('/') ? text : `${text}/${PREFIX_BITS}`);
    if (prefix?.bytes.length !== 16 || prefix.length !== PREFIX_BITS)
      throw new LocalError('INVALID_ARGUMENT', `${text} is not a NAT64 prefix of 96 bits, such as 64:ff9b::`);
    this.#prefix = prefix;
  }

  /** Returns the IPv4 address in an address of this prefix, null for any other address. */
  toV4(address: string): string | null {
    const bytes = address.includes(':') ? parseAddress(address) : null;
    return bytes !== null && inPrefix(bytes, this.#prefix) ? formatAddress(bytes.subarray(12)) : null;
  }

  /** @param address IPv4 */
  toV6(address: string): string {
    const bytes = this.#prefix.bytes.slice();
    bytes.set(parseAddress(address)!, 12);
    return formatAddress(bytes);
  }

  /** Returns a name's addresses as DNS64 does: its own, preceded by translated ones for a name without IPv6. */
  synthesize(addresses: readonly string[]): readonly string[] {
    if (addresses.some((address) => address.includes(':'))) return addresses;
    return [...addresses.map((address) => this.toV6(address)), ...addresses];
  }
}
