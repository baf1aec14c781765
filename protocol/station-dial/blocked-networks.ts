/**
 * Networks in which UDP to a base station was silent and a WebSocket got through: there the WebSocket is tried at once, beside UDP.
 *
 * A network is known by what this host sees of it: the prefixes of its interfaces with a default route, and the routers. Two home networks
 * with the same numbers are one; then a WebSocket is opened that UDP would have made needless. The oldest of 16 makes room, and after a
 * week a network counts as unknown.
 */
const MAX_NETWORKS = 16;
/** ms */
const REMEMBERED = 7 * 24 * 3_600_000;

export class BlockedNetworks {
  /** Since when, the oldest first. */
  readonly #networks = new Map<string, number>();

  get size(): number {
    return this.#networks.size;
  }

  /** @param now ms, of the clock that `note` is given */
  has(network: string, now: number): boolean {
    const at = this.#networks.get(network);
    return at !== undefined && now - at < REMEMBERED;
  }

  /** @param isBlocked false: UDP got through */
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
 * What tells a network from others; '' where the host does not say.
 * @param addresses `address/bits` of interfaces with a default route
 * @param gateways addresses of its routers
 */
export function networkKey(addresses: readonly string[], gateways: readonly string[]): string {
  return [...addresses.map(prefixOf), ...gateways].sort().join(' ');
}

/** The numbers that a host keeps when it gets another address in the same network. */
function prefixOf(address: string): string {
  const [numeric = '', bits = ''] = address.split('/');
  if (numeric.includes(':')) return numeric.split(':').slice(0, 4).join(':');
  const kept = Number(bits) >= 24 ? 3 : 2;
  return `${numeric.split('.').slice(0, kept).join('.')}/${bits}`;
}
