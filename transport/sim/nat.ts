/**
 * Rebinding, as a NAT before a host does it: from some moment on, what the host sends appears to come from another port, or from another address and
 * port, and what is sent to the earlier one is lost. The host notices nothing.
 *
 * Mappings are made by the first datagram out and depend on the host's socket only (RFC 4787 endpoint-independent, no filter). A host that was
 * never rebound has none and is reached as it is.
 */
import type { SocketAddress } from '../../protocol/control/index.ts';

interface Mapping {
  readonly outside: string;
  /** Port inside → outside, and back. */
  readonly ports: Map<number, number>;
  readonly inside: Map<number, number>;
}

/** Ports outside, given out in turn; below the ephemeral ones of hosts. */
const FIRST_PORT = 20_000;
const PORTS = 20_000;

/** The mappings of all hosts that were rebound. */
export class Nat {
  /** By address of a host. */
  readonly #mappings = new Map<string, Mapping>();
  /** Address outside, also an earlier one → address of the host. */
  readonly #hosts = new Map<string, string>();
  #portsGiven = 0;
  #addressesGiven = 0;

  /** New mappings for an address of a host: another port for each socket, with 'address' from another address too. */
  rebind(address: string, what: 'port' | 'address'): void {
    const outside = what === 'address' ? this.#freshAddress(address) : (this.#mappings.get(address)?.outside ?? address);
    this.#mappings.set(address, { outside, ports: new Map(), inside: new Map() });
    this.#hosts.set(outside, address);
  }

  /** How the source of a datagram looks outside. */
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

  /** How an address of a host looks outside. */
  outsideOf(address: string): string {
    return this.#mappings.get(address)?.outside ?? address;
  }

  /** Where a datagram goes inside; undefined when its mapping is gone. */
  inward(destination: SocketAddress): SocketAddress | undefined {
    const address = this.hostAddress(destination.address);
    const mapping = this.#mappings.get(address);
    if (mapping === undefined) return destination;
    const port = mapping.inside.get(destination.port);
    return mapping.outside !== destination.address || port === undefined ? undefined : { address, port };
  }

  /** The host's own address behind an address that it has or had outside. */
  hostAddress(outside: string): string {
    return this.#hosts.get(outside) ?? outside;
  }

  /** From 198.18.0.0/15 (RFC 2544) or 2001:db8::/32 (RFC 3849). */
  #freshAddress(inside: string): string {
    const number = ++this.#addressesGiven;
    return inside.includes(':') ? `2001:db8::${number.toString(16)}` : `198.18.${(number >> 8) & 0xff}.${number & 0xff}`;
  }
}
