/**
 * Rebinding, as by a NAT in front of a host: from some moment on, the host's datagrams appear to come from another
 * port, or from another address and port, and datagrams to the earlier one are lost. The host notices nothing.
 *
 * The first outgoing datagram makes a mapping, which depends on the host's socket only (RFC 4787 endpoint-independent,
 * no filter). A host that was never rebound has none and is reached directly.
 */
import type { SocketAddress } from '../protocol/control/index.ts';

interface Mapping {
  readonly outside: string;
  /** Inside port → outside port, and back. */
  readonly ports: Map<number, number>;
  readonly inside: Map<number, number>;
}

/** Outside ports, assigned in turn; below the ephemeral ones of hosts. */
const FIRST_PORT = 20_000;
const PORTS = 20_000;

/** The mappings of all rebound hosts. */
export class Nat {
  /** By host address. */
  readonly #mappings = new Map<string, Mapping>();
  /** Outside address, including earlier ones → host address. */
  readonly #hosts = new Map<string, string>();
  #portsGiven = 0;
  #addressesGiven = 0;

  /** Replaces the mappings of a host address: another port for each socket, with 'address' also another address. */
  rebind(address: string, what: 'port' | 'address'): void {
    const outside = what === 'address' ? this.#freshAddress(address) : (this.#mappings.get(address)?.outside ?? address);
    this.#mappings.set(address, { outside, ports: new Map(), inside: new Map() });
    this.#hosts.set(outside, address);
  }

  /** Returns the source of a datagram as seen outside. */
  outward(source: SocketAddress): SocketAddress {
    const mapping = this.#mappings.get(source.address);
    if (mapping === undefined) return source;
    let port = mapping.ports.get(source.port);
    if (port === undefined) {
      port = FIRST_PORT + (this.#portsGiven++ % PORTS);
      mapping.ports.set(source.port, port);
      mapping.inside.set(port, source.port);
    }
    return { address: mapping.outside, port };
  }

  /** Returns a host address as seen outside. */
  outsideOf(address: string): string {
    return this.#mappings.get(address)?.outside ?? address;
  }

  /** Returns the inside destination of a datagram; undefined when its mapping is gone. */
  inward(destination: SocketAddress): SocketAddress | undefined {
    const address = this.hostAddress(destination.address);
    const mapping = this.#mappings.get(address);
    if (mapping === undefined) return destination;
    const port = mapping.inside.get(destination.port);
    return mapping.outside !== destination.address || port === undefined ? undefined : { address, port };
  }

  /** Returns the host's own address for an outside address that it has or had. */
  hostAddress(outside: string): string {
    return this.#hosts.get(outside) ?? outside;
  }

  /** From 198.18.0.0/15 (RFC 2544) or 2001:db8::/32 (RFC 3849). */
  #freshAddress(inside: string): string {
    const number = ++this.#addressesGiven;
    return inside.includes(':') ? `2001:db8::${number.toString(16)}` : `198.18.${(number >> 8) & 0xff}.${number & 0xff}`;
  }
}
