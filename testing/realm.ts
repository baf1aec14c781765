/**
 * A realm of addresses: hosts and NAT boxes that reach one another without translation. One is the core, and each NAT
 * box has one behind it. Two realms may use the same addresses.
 */

import { inPrefix, parseAddress } from '../protocol/address.ts';
import { LocalError } from '../protocol/errors/index.ts';
import type { SimulatedHost } from './host.ts';
import { Nat } from './nat.ts';
import { NatBox } from './nat-box.ts';

export class Realm {
  /** Mappings of rebound hosts in this realm. */
  readonly rebound = new Nat();
  /** The router that leads out, with the realm beyond it; null for the core. */
  readonly router: NatBox | null;
  readonly outer: Realm | null;
  /** By address; a host may have been stopped. */
  readonly #owners = new Map<string, SimulatedHost | NatBox>();
  /** Boxes with IPv6 prefixes. */
  readonly #boxes: NatBox[] = [];

  constructor(router: NatBox | null = null, outer: Realm | null = null) {
    this.router = router;
    this.outer = outer;
  }

  /** @throws LocalError INVALID_ARGUMENT when one of the addresses has an owner, other than this host */
  check(addresses: readonly string[], host?: SimulatedHost): void {
    for (const address of addresses) {
      const owner = this.ownerOf(address);
      if (owner !== undefined && owner !== host) throw new LocalError('INVALID_ARGUMENT', `${address} already belongs to ${owner.name}`);
    }
  }

  /** Removes a host and frees its addresses. */
  remove(host: SimulatedHost): void {
    for (const address of host.addresses) if (this.#owners.get(address) === host) this.#owners.delete(address);
  }

  /** Adds a host or a box. @throws LocalError INVALID_ARGUMENT when one of the addresses has an owner */
  add(member: SimulatedHost | NatBox): void {
    this.check(member.addresses);
    for (const address of member.addresses) this.#owners.set(address, member);
    if (member instanceof NatBox && member.prefixes.length > 0) this.#boxes.push(member);
  }

  /** Returns the living host, or the box, that receives datagrams to this address. */
  ownerOf(address: string): SimulatedHost | NatBox | undefined {
    const owner = this.#owners.get(this.rebound.hostAddress(address));
    if (owner === undefined) return this.#boxes.length === 0 ? undefined : this.#forwarderOf(address);
    return owner instanceof NatBox || owner.alive ? owner : undefined;
  }

  /** Returns the host or box that an address was assigned to, stopped hosts included. */
  memberAt(address: string): SimulatedHost | NatBox | undefined {
    return this.#owners.get(this.rebound.hostAddress(address));
  }

  /**
   * Returns the first living host, or the first box: it stands for the realm while a datagram's destination is unknown
   * in it.
   */
  first(): SimulatedHost | NatBox | undefined {
    const members = [...this.#owners.values(), ...this.#boxes];
    return members.find((member) => !(member instanceof NatBox) && member.alive) ?? members.find((member) => member instanceof NatBox);
  }

  #forwarderOf(address: string): NatBox | undefined {
    const bytes = parseAddress(address);
    return bytes === null ? undefined : this.#boxes.find(({ prefixes }) => prefixes.some((prefix) => inPrefix(bytes, prefix)));
  }
}
