/**
 * Where a tunnel service is: one numeric address, fixed when the service is added.
 *
 * A name is resolved once, and its address is pinned: whoever controls the name later cannot move the service. Nor can a name lead where only
 * this host itself should get: to link-local and metadata addresses, to everybody, to nobody. An operator who means such an address writes it
 * as a number, but for those that no server has (unspecified, multicast, broadcast). Loopback is allowed: services of the device itself.
 */
import { LocalError, RemoteError } from '../../protocol/errors/index.ts';
import { canonicalAddress, inPrefix, isLinkLocal, type Prefix, parseAddress, parsePrefix } from '../../transport/address.ts';
import { CLOUD_ADDRESSES } from '../../transport/cloud-addresses.ts';

/** No server has these: unspecified (RFC 1122 §3.2.1.3, RFC 4291 §2.5.2), multicast, broadcast. */
const IMPOSSIBLE = ['0.0.0.0/8', '224.0.0.0/4', '255.255.255.255', '::', 'ff00::/8'].map(prefix);

const CLOUDS = CLOUD_ADDRESSES.map(prefix);

/** Prefixes with an IPv4 address behind them, and the byte it begins at: a translator's (RFC 6052 §2.1), 6to4 (RFC 3056 §2). */
const CARRIERS = [
  { prefix: prefix('64:ff9b::/96'), at: 12 },
  { prefix: prefix('2002::/16'), at: 2 },
];

/** The host of one service. */
export class ServiceHost {
  readonly #host: string;
  readonly #resolve: (host: string) => Promise<string[]>;
  /** Pinned, or being looked for; null after a failure: the next one to ask tries again. */
  #address: Promise<string> | null;

  /**
   * @param host numeric, or a name, which is resolved from now on
   * @throws LocalError INVALID_ARGUMENT for an address that no server has
   */
  constructor(host: string, resolve: (host: string) => Promise<string[]>) {
    this.#host = host;
    this.#resolve = resolve;
    const numeric = canonicalAddress(host);
    if (numeric !== null && isIn(numeric, IMPOSSIBLE)) throw new LocalError('INVALID_ARGUMENT', `no service can be at ${host}`);
    this.#address = numeric === null ? this.#pin() : Promise.resolve(numeric);
    this.#address.catch(() => {});
  }

  /** The same address each time. @throws RemoteError DNS when the name has none by now that a service may have */
  address(): Promise<string> {
    this.#address ??= this.#pin();
    return this.#address;
  }

  async #pin(): Promise<string> {
    try {
      const addresses = await this.#resolve(this.#host);
      const address = addresses.find(mayBeResolved);
      if (address === undefined) throw new RemoteError('DNS', `${this.#host} leads only to addresses that a tunnel service may not have`);
      return address;
    } catch (error) {
      this.#address = null;
      throw error;
    }
  }
}

/** Whether a name may lead to an address, numeric. */
export function mayBeResolved(address: string): boolean {
  const bytes = parseAddress(address);
  if (bytes === null || isLinkLocal(bytes) || isIn(address, IMPOSSIBLE) || isIn(address, CLOUDS)) return false;
  const carrier = CARRIERS.find((each) => inPrefix(bytes, each.prefix));
  return carrier === undefined || mayBeResolved(bytes.subarray(carrier.at, carrier.at + 4).join('.'));
}

function isIn(address: string, prefixes: readonly Prefix[]): boolean {
  const bytes = parseAddress(address);
  return bytes !== null && prefixes.some((prefix) => inPrefix(bytes, prefix));
}

function prefix(text: string): Prefix {
  return parsePrefix(text)!;
}
