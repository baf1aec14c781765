/**
 * Networks in which UDP to a base station was silent and a WebSocket worked: there a WebSocket is tried immediately,
 * beside UDP.
 *
 * A network is identified by its properties that this host sees: the prefixes of its interfaces with a default route,
 * and the routers. Two home networks with the same numbers count as one; then a WebSocket is opened although UDP would
 * have worked. The oldest of 16 is replaced, and after a week a network counts as unknown.
 */
const MAX_NETWORKS = 16;
/** ms */
const REMEMBERED = 7 * 24 * 3_600_000;

export class BlockedNetworks {
  /** Time of the last note, the oldest first. */
  readonly #networks = new Map<string, number>();

  get size(): number {
    return this.#networks.size;
  }

  /** @param now ms, on the clock of `note` */
  has(network: string, now: number): boolean {
    const at = this.#networks.get(network);
    return at !== undefined && now - at < REMEMBERED;
  }

  /** @param isBlocked false: UDP worked */
  note(network: string, isBlocked: boolean, now: number): void {
    this.#networks.delete(network);
    if (!isBlocked) return;
    this.#networks.set(network, now);
    for (const oldest of this.#networks.keys()) {
      if (this.#networks.size <= MAX_NETWORKS) return;
      this.#networks.delete(oldest);
    }
  }
}

/**
 * Returns a key that identifies a network; '' where the platform reports none.
 * @param addresses `address/bits` of interfaces with a default route
 * @param gateways addresses of its routers
 */
export function networkKey(addresses: readonly string[], gateways: readonly string[]): string {
  return [...addresses.map(prefixOf), ...gateways].sort().join(' ');
}

/** Returns the part of an address that a host keeps when it gets another address in the same network. */
function prefixOf(address: string): string {
  const [numeric = '', bits = ''] = address.split('/');
  if (numeric.includes(':')) return numeric.split(':').slice(0, 4).join(':');
  const kept = Number(bits) >= 24 ? 3 : 2;
  return `${numeric.split('.').slice(0, kept).join('.')}/${bits}`;
}
