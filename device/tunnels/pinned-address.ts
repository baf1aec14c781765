/**
 * The addresses of a tunnel service: numeric, fixed when the service is added.
 *
 * A name is resolved once, and its addresses are pinned: an attacker with control of the name cannot move the service
 * later. A server often listens on one of them only (`localhost`), so they are tried in turn. Nor can a name lead to
 * link-local, metadata, unspecified, multicast or broadcast addresses. An operator who means a link-local or metadata
 * address writes it as a number; no server has one of the others. Loopback is allowed: services of the device itself.
 */

import { canonicalAddress, parseAddress } from '../../protocol/address.ts';
import { LocalError, RemoteError } from '../../protocol/errors/index.ts';
import { type AddressKind, addressKind, embeddedAddress } from '../../protocol/special-addresses.ts';

/** Addresses that no server has. */
const IMPOSSIBLE: readonly AddressKind[] = ['this-network', 'multicast', 'broadcast'];

/** Addresses that a name may not lead to. */
const NOT_BY_NAME: readonly AddressKind[] = [...IMPOSSIBLE, 'link-local', 'cloud'];

/** Our constant: most addresses of a name. */
const MAX_ADDRESSES = 8;

/** The addresses of one service. */
export class PinnedAddresses {
  readonly #host: string;
  readonly #resolve: (host: string) => Promise<string[]>;
  /** Pinned, or being resolved; null after a failure: the next caller tries again. */
  #addresses: Promise<readonly string[]> | null;
  #worked: string | undefined;

  /**
   * @param host numeric, or a name, which is resolved from now on
   * @throws LocalError INVALID_ARGUMENT for an address that no server has
   */
  constructor(host: string, resolve: (host: string) => Promise<string[]>) {
    this.#host = host;
    this.#resolve = resolve;
    const numeric = canonicalAddress(host);
    if (numeric !== null && IMPOSSIBLE.includes(addressKind(parseAddress(numeric)!)))
      throw new LocalError('INVALID_ARGUMENT', `no service can be at ${host}`);
    this.#addresses = numeric === null ? this.#pin() : Promise.resolve([numeric]);
    this.#addresses.catch(() => {});
  }

  /**
   * Returns the same addresses each time, the one that worked last first: a caller tries them in turn.
   * @throws RemoteError DNS when the name does not resolve to an allowed address
   */
  async all(): Promise<readonly string[]> {
    this.#addresses ??= this.#pin();
    const addresses = await this.#addresses;
    const worked = this.#worked;
    return worked === undefined ? addresses : [worked, ...addresses.filter((address) => address !== worked)];
  }

  /** Notes that the service answered at one of them. */
  worked(address: string): void {
    this.#worked = address;
  }

  async #pin(): Promise<readonly string[]> {
    try {
      const addresses = (await this.#resolve(this.#host)).filter(mayBeResolved).slice(0, MAX_ADDRESSES);
      if (addresses.length === 0) throw new RemoteError('DNS', `${this.#host} leads only to addresses that a tunnel service may not have`);
      return addresses;
    } catch (error) {
      this.#addresses = null;
      throw error;
    }
  }
}

/** Whether a name may lead to this numeric address. */
export function mayBeResolved(address: string): boolean {
  const bytes = parseAddress(address);
  return bytes !== null && mayLeadTo(bytes);
}

/** A translated address counts as the address inside it. */
function mayLeadTo(address: Uint8Array): boolean {
  const embedded = embeddedAddress(address);
  return embedded === null ? !NOT_BY_NAME.includes(addressKind(address)) : mayLeadTo(embedded);
}
