/**
 * The positions of a simulation's hosts, and the way of a datagram between them.
 *
 * 1. It climbs from the sender's realm through one NAT box after the other until a realm has an owner of its
 *    destination: immediately, when it is sent. Each box maps its source and opens its filter. A box that is itself the
 *    destination turns the datagram around.
 * 2. It crosses the link between the two hosts.
 * 3. It descends through the boxes in front of the receiver when it arrives: mappings that were made meanwhile count.
 *
 * Its hop limit is that of IP: every router decrements it, and discards the datagram at 0. Each box is a router; `hops`
 * of them lie between a box (or a host with that option) and the other members of its realm. A datagram turned around
 * within a box passes one router.
 */

import type { SocketAddress } from '../protocol/control/index.ts';
import { NAT64_ADDRESSES, NAT64_NAME } from '../protocol/nat64.ts';
import type { SimulatedHost } from './host.ts';
import { NatBox, type NatVerdict, type Passage } from './nat-box.ts';
import { Realm } from './realm.ts';

/** A datagram in the realm of its receiver, or where its hops ended: between steps 1 and 3. */
export interface Crossing extends Passage {
  readonly realm: Realm;
  /** The box that turned it around. */
  readonly turned: NatBox | null;
}

/** The receiver of a datagram. */
export interface Arrival {
  readonly host: SimulatedHost;
  /** As the receiver sees it. */
  readonly source: SocketAddress;
  readonly destination: SocketAddress;
}

/** One end of a TCP connection: it lasts while the host has the address in this realm. */
export interface ConnectionEnd {
  readonly host: SimulatedHost;
  readonly realm: Realm;
  readonly address: string;
}

/** The way of a TCP connection. */
export interface Connection {
  readonly opener: ConnectionEnd;
  readonly acceptor: ConnectionEnd;
  /** The source that the acceptor sees. */
  readonly source: string;
}

interface Place {
  readonly realm: Realm;
  readonly hops: number;
}

/** The realms of a simulation and their members. */
export class Topology {
  readonly core = new Realm();
  readonly #inside = new Map<NatBox, Realm>();
  readonly #places = new WeakMap<SimulatedHost, Place>();

  addBox(box: NatBox, behind: NatBox | undefined): void {
    const outer = this.realmBehind(behind);
    outer.add(box);
    this.#inside.set(box, new Realm(box, outer));
  }

  addHost(host: SimulatedHost, place: Place): void {
    place.realm.add(host);
    this.#places.set(host, place);
  }

  /**
   * Takes a host from its position, applies the change, and puts it at the new one. @throws LocalError INVALID_ARGUMENT
   * when an address has an owner there
   */
  moveHost(host: SimulatedHost, place: Place, addresses: readonly string[], change: () => void): void {
    place.realm.check(addresses, host);
    this.placeOf(host).realm.remove(host);
    change();
    this.addHost(host, place);
  }

  placeOf(host: SimulatedHost): Place {
    return this.#places.get(host)!;
  }

  /** Returns the realm behind a box; the core for undefined. */
  realmBehind(box: NatBox | undefined): Realm {
    return box === undefined ? this.core : this.#inside.get(box)!;
  }

  /** Step 1 for a datagram of a host, rebound or not. @returns why a box did not pass it on */
  leave(host: SimulatedHost, source: SocketAddress, destination: SocketAddress, hopLimit: number): Crossing | NatVerdict {
    const { realm, hops } = this.placeOf(host);
    const crossing = { realm, source: realm.rebound.outward(source), destination, hops: hopLimit - hops, turned: null };
    const isHere = realm.router === null || host.isNear(destination.address);
    return isHere ? crossing : climb(crossing);
  }

  /** Step 1 for a datagram that begins in a realm. */
  start(realm: Realm, source: SocketAddress, destination: SocketAddress, hops: number): Crossing | NatVerdict {
    return climb({ realm, source, destination, hops, turned: null });
  }

  /** Returns whether its hops end before it reaches a host or a box of the realm that it crosses. */
  expires({ realm, destination, hops, turned }: Crossing): boolean {
    const target = turned ?? realm.ownerOf(destination.address);
    const left = turned !== null || target === undefined ? hops : hops - this.#hopsTo(target);
    if (left > 0) return false;
    if (target instanceof NatBox && hops > 0) target.expire();
    return true;
  }

  /**
   * Name of the host that a datagram is for at present; of a box where that cannot be determined; undefined for none.
   */
  addressee({ realm, destination, turned }: Pick<Crossing, 'realm' | 'destination' | 'turned'>): string | undefined {
    let target = turned ?? realm.ownerOf(destination.address);
    while (target instanceof NatBox) {
      const inner: Realm = this.#inside.get(target)!;
      const address = target.peek(destination);
      const next: SimulatedHost | NatBox | undefined = (address === null ? undefined : inner.ownerOf(address)) ?? inner.first();
      if (next === undefined) return target.name;
      target = next;
    }
    return target?.name;
  }

  /** Step 3. @returns why it reaches no host */
  arrive(crossing: Crossing): Arrival | NatVerdict | 'unreachable' {
    let { realm, turned }: { realm: Realm; turned: NatBox | null } = crossing;
    let target = turned ?? realm.ownerOf(crossing.destination.address);
    let passage: Passage = target === undefined || turned !== null ? crossing : shortened(crossing, this.#hopsTo(target));
    while (target instanceof NatBox) {
      const passed = target.inward(passage, turned !== null);
      if (typeof passed === 'string') return passed;
      realm = this.#inside.get(target)!;
      turned = null;
      target = realm.ownerOf(passed.destination.address);
      passage = target === undefined ? passed : shortened(passed, this.#hopsTo(target));
      if (passage.hops < 1) return ended(target);
    }
    const destination = realm.rebound.inward(passage.destination);
    return target === undefined || destination === undefined ? 'unreachable' : { host: target, source: passage.source, destination };
  }

  /**
   * Returns the way of a TCP connection through the boxes in front of its opener; null if it ends nowhere. The acceptor
   * may have been stopped.
   */
  connect(host: SimulatedHost, address: string): Connection | null {
    const own = host.sourceFor(address);
    if (own === undefined) return null;
    const opener = { host, realm: this.placeOf(host).realm, address: own };
    if (own === address) return { opener, acceptor: opener, source: own };
    let [realm, source, destination] = [opener.realm, opener.realm.rebound.outsideOf(own), address];
    while (realm.memberAt(destination) === undefined && realm.router !== null && realm.outer !== null && !host.isNear(address)) {
      const passed = realm.router.connect(source, destination);
      if (passed === null) return null;
      [realm, source, destination] = [realm.outer, passed.source, passed.destination];
    }
    const acceptor = realm.memberAt(destination);
    if (acceptor === undefined || acceptor instanceof NatBox) return null;
    return { opener, acceptor: { host: acceptor, realm, address: realm.rebound.hostAddress(destination) }, source };
  }

  /** Addresses of the routers that a host uses. */
  gatewaysOf(host: SimulatedHost): readonly string[] {
    return this.placeOf(host).realm.router?.inside ?? [];
  }

  /** Returns a host's resolver's answer for the addresses of a name: it translates them behind a NAT64. */
  resolved(asking: SimulatedHost, name: string, addresses: readonly string[]): readonly string[] {
    const found = name === NAT64_NAME ? NAT64_ADDRESSES : addresses;
    for (let realm: Realm | null = this.placeOf(asking).realm; realm !== null; realm = realm.outer) {
      const prefix = realm.router?.nat64 ?? null;
      if (prefix !== null) return prefix.synthesize(found);
    }
    return found;
  }

  /** Returns whether a host can use another's addresses: they belong to its own realm, or to one around it. */
  sees(asking: SimulatedHost, other: SimulatedHost): boolean {
    const { realm } = this.placeOf(other);
    for (let around: Realm | null = this.placeOf(asking).realm; around !== null; around = around.outer) if (around === realm) return true;
    return false;
  }

  #hopsTo(target: SimulatedHost | NatBox): number {
    return target instanceof NatBox ? target.hops : this.placeOf(target).hops;
  }
}

/** Its hops ended on the way to the next box, or host. */
function ended(target: SimulatedHost | NatBox | undefined): 'expired' {
  if (target instanceof NatBox) target.expire();
  return 'expired';
}

function shortened({ source, destination, hops }: Passage, by: number): Passage {
  return { source, destination, hops: hops - by };
}

function climb(start: Crossing): Crossing | NatVerdict {
  let crossing = start;
  for (;;) {
    const { realm, destination, hops } = crossing;
    const { router, outer } = realm;
    if (router === null || outer === null || hops < 1 || realm.ownerOf(destination.address) !== undefined) return crossing;
    const isTurned = router.owns(destination.address);
    const passed = router.outward(crossing, isTurned);
    if (typeof passed === 'string') return passed;
    // Field by field: a spread is slow, and this runs for each datagram.
    if (isTurned) return { realm, source: passed.source, destination: passed.destination, hops: passed.hops, turned: router };
    crossing = { realm: outer, source: passed.source, destination: passed.destination, hops: passed.hops - router.hops, turned: null };
    if (crossing.hops < 1) router.expire();
  }
}
