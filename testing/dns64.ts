/** A network that translates IPv6 to IPv4 (NAT64), and its resolver (DNS64: RFC 6147, RFC 7050). */
import { formatAddress, inPrefix, type Prefix, parseAddress, parsePrefix } from '../protocol/address.ts';
import { LocalError } from '../protocol/errors/index.ts';
import { synthesize } from '../protocol/nat64.ts';

const PREFIX_BITS = 96;

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
    return synthesize(this.#prefix, address)!;
  }

  /** Returns a name's addresses as DNS64 does: its own, preceded by translated ones for a name without IPv6. */
  synthesize(addresses: readonly string[]): readonly string[] {
    if (addresses.some((address) => address.includes(':'))) return addresses;
    return [...addresses.map((address) => this.toV6(address)), ...addresses];
  }
}
