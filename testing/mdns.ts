/**
 * Multicast DNS of a simulated host: one link for each of its networks. Hosts with addresses in the same network hear
 * each other, over the simulation's links between them; messages travel as objects.
 */

import type { MdnsHandlers, MdnsLink, MdnsNetwork, MdnsSocket } from '../platform/mdns.ts';
import { inPrefix, parseAddress, parsePrefix } from '../protocol/address.ts';
import { type DnsMessage, MDNS_PORT, type MdnsSource } from '../protocol/discovery/index.ts';

type Transmit = (source: string, message: DnsMessage, to: MdnsSource | null) => void;

interface Place {
  readonly network: string;
  readonly handlers: MdnsHandlers;
}

export class SimulatedMdns implements MdnsNetwork {
  readonly #transmit: Transmit;
  readonly #places = new Set<Place>();
  #networks: readonly string[];

  /** @param networks each `address/bits` */
  constructor(networks: readonly string[], transmit: Transmit) {
    this.#networks = networks;
    this.#transmit = transmit;
  }

  links(): readonly MdnsLink[] {
    return this.#networks.map((network) => ({ name: network, addresses: [addressOf(network)] }));
  }

  /** Replaces the networks that the host has a link to; links of removed ones fail. Affects multicast DNS alone. */
  setNetworks(networks: readonly string[]): void {
    this.#networks = networks;
    for (const place of [...this.#places]) {
      if (networks.includes(place.network)) continue;
      this.#places.delete(place);
      place.handlers.failed(new Error(`${place.network} is gone`));
    }
  }

  open({ name }: MdnsLink, handlers: MdnsHandlers): MdnsSocket {
    const place = { network: name, handlers };
    this.#places.add(place);
    return {
      send: (message, to) => {
        if (this.#places.has(place)) this.#transmit(addressOf(name), message, to);
      },
      close: async () => void this.#places.delete(place),
    };
  }

  /** For the simulation: the first address in the network of another one, undefined when the host has no link there. */
  addressNear(address: string): string | undefined {
    const bytes = parseAddress(address)!;
    const network = this.#networks.find((network) => inPrefix(bytes, parsePrefix(network)!));
    return network === undefined ? undefined : addressOf(network);
  }

  /** For the simulation: delivers a message to one of our addresses. */
  deliver(address: string, message: DnsMessage, source: string): void {
    for (const { network, handlers } of [...this.#places]) {
      if (addressOf(network) === address) handlers.received(message, { address: source, port: MDNS_PORT }, source === address);
    }
  }

  stop(): void {
    this.#places.clear();
  }
}

function addressOf(network: string): string {
  return network.split('/')[0]!;
}
