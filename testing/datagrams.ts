/**
 * How the datagrams of a simulation travel, each in these steps: it leaves its host, unless a firewall drops it; the
 * test may intervene; a box on the way may refuse it; its hops are counted; the link delays, changes or loses it; and
 * the socket that has the address on arrival receives it. The test sees each fate. Messages of multicast DNS go over
 * the links of neighbours only.
 */
import type { SocketAddress } from '../protocol/control/index.ts';
import type { DnsMessage, MdnsSource } from '../protocol/discovery/index.ts';
import type { Path } from '../protocol/path.ts';
import { Phase, type SimulationEvent } from './event-queue.ts';
import { damaged } from './faults.ts';
import type { SimulatedHost } from './host.ts';
import type { Link } from './link.ts';
import type { NatBox } from './nat-box.ts';
import type { PacketFate, SimulatedPacket } from './options.ts';
import type { Arrival, Crossing, Topology } from './topology.ts';

/** Size of a multicast DNS message on a link, bytes. */
const MDNS_SIZE = 500;
/** The usual default of systems (RFC 1700, IP time to live). */
const DEFAULT_HOP_LIMIT = 64;

/** What datagrams need of the simulation. */
export interface DatagramWorld {
  readonly now: number;
  readonly onPacket: ((packet: SimulatedPacket) => undefined | 'drop' | Uint8Array | readonly Uint8Array[]) | undefined;
  readonly onTrace: ((packet: SimulatedPacket, fate: PacketFate, time: number) => void) | undefined;
  direction(from: string | SimulatedHost, to: string | SimulatedHost): Link;
  isBlocked(host: SimulatedHost, protocol: 'udp'): boolean;
  at(time: number, phase: Phase, run: () => void): SimulationEvent;
}

interface Origin {
  readonly address: string | undefined;
  readonly port: number;
}

export class Datagrams {
  readonly #world: DatagramWorld;
  readonly #topology: Topology;
  readonly #hosts: ReadonlyMap<string, SimulatedHost>;

  constructor(world: DatagramWorld, topology: Topology, hosts: ReadonlyMap<string, SimulatedHost>) {
    this.#world = world;
    this.#topology = topology;
    this.#hosts = hosts;
  }

  /**
   * Sends a datagram of a socket.
   * @param from the socket's port, and the address that it is bound to, if any
   */
  transmit(host: SimulatedHost, from: Origin, data: Uint8Array, path: Path, hopLimit = DEFAULT_HOP_LIMIT): void {
    if (!host.awake) return;
    const address = host.sourceFor(path.address, from.address);
    const source = { address: address ?? '', port: from.port };
    const destination = { address: path.address, port: path.port };
    const packet = { time: this.#world.now, from: host.name, to: undefined, source, destination, hopLimit, data };
    if (address === path.address) {
      this.#intercept({ ...packet, to: host.name }, null);
      return;
    }
    const isBlocked = this.#world.isBlocked(host, 'udp') ? 'blocked' : null;
    const crossing = address === undefined ? 'unreachable' : (isBlocked ?? this.#topology.leave(host, source, destination, hopLimit));
    if (typeof crossing === 'string') this.#trace(packet, crossing);
    else this.#intercept(this.#onLink(packet, crossing), crossing);
  }

  /**
   * Sends a multicast DNS message to all hosts in the network of `source`, or to one address there. A host hears
   * itself, too.
   */
  multicast(host: SimulatedHost, source: string, message: DnsMessage, to: MdnsSource | null): void {
    for (const other of this.#hosts.values()) {
      const address = other.mdns.addressNear(source);
      if (!other.awake || !this.#areNeighbours(host, other) || address === undefined || (to !== null && to.address !== address)) continue;
      if (this.#world.isBlocked(host, 'udp') || this.#world.isBlocked(other, 'udp')) continue;
      this.#world.direction(host, other).offer(MDNS_SIZE, this.#world.now, (time) =>
        this.#world.at(time, Phase.ARRIVAL, () => {
          if (other.awake) other.mdns.deliver(address, message, source);
        }),
      );
    }
  }

  /** As `Simulation.inject`. */
  inject(source: SocketAddress, destination: SocketAddress, data: Uint8Array, within: NatBox | undefined): void {
    const realm = this.#topology.realmBehind(within);
    const from = this.#topology.addressee({ realm, destination: source, turned: null }) ?? 'nobody';
    const crossing = this.#topology.start(realm, source, destination, DEFAULT_HOP_LIMIT);
    const packet = { time: this.#world.now, from, to: undefined, source, destination, hopLimit: DEFAULT_HOP_LIMIT, data: data.slice() };
    if (typeof crossing === 'string') this.#trace(packet, crossing);
    else this.#carry(this.#onLink(packet, crossing), crossing);
  }

  #onLink(packet: SimulatedPacket, crossing: Crossing): SimulatedPacket {
    const { time, from, hopLimit, data } = packet;
    const { source, destination } = crossing;
    return { time, from, to: this.#topology.addressee(crossing), source, destination, hopLimit, data };
  }

  /** @param crossing null for a datagram that a host sends to itself */
  #intercept(packet: SimulatedPacket, crossing: Crossing | null): void {
    const verdict = this.#world.onPacket?.(packet);
    if (verdict === undefined) this.#carry(packet, crossing);
    else if (verdict === 'drop') this.#trace(packet, 'intercepted');
    else for (const data of verdict instanceof Uint8Array ? [verdict] : verdict) this.#carry({ ...packet, data: data.slice() }, crossing);
  }

  #carry(packet: SimulatedPacket, crossing: Crossing | null): void {
    const { from, to, data } = packet;
    if (crossing !== null && this.#topology.expires(crossing)) {
      this.#trace(packet, 'expired');
    } else if (to === undefined) {
      this.#trace(packet, 'unreachable');
    } else {
      const verdict = this.#world.direction(from, to).offer(data.length, this.#world.now, (time, change) => {
        const arriving = change === null ? packet : { ...packet, data: damaged(data, change) };
        this.#world.at(time, Phase.ARRIVAL, () => this.#arrive(arriving, crossing));
      });
      this.#trace(packet, verdict);
    }
  }

  /**
   * Looks up the host on arrival: it may have been replaced meanwhile. Each arrival is a copy, as the receiver may
   * change it.
   */
  #arrive(packet: SimulatedPacket, crossing: Crossing | null): void {
    const arrival = crossing === null ? this.#itself(packet) : this.#topology.arrive(crossing);
    if (typeof arrival === 'string') {
      this.#trace(packet, arrival);
      return;
    }
    const { host, source, destination } = arrival;
    if (crossing !== null && this.#world.isBlocked(host, 'udp')) {
      this.#trace(packet, 'blocked');
      return;
    }
    const socket = host.awake ? host.socketFor(destination.address, destination.port) : undefined;
    this.#trace(host.name === packet.to ? packet : { ...packet, to: host.name }, socket === undefined ? 'unreachable' : 'delivered');
    socket?.deliver(packet.data.slice(), source.address, source.port);
  }

  #itself({ from, source, destination }: SimulatedPacket): Arrival | 'unreachable' {
    const host = this.#hosts.get(from);
    return host?.alive === true ? { host, source, destination } : 'unreachable';
  }

  #areNeighbours(one: SimulatedHost, other: SimulatedHost): boolean {
    return this.#topology.placeOf(one).realm === this.#topology.placeOf(other).realm;
  }

  #trace(packet: SimulatedPacket, fate: PacketFate): void {
    this.#world.onTrace?.(packet, fate, this.#world.now);
  }
}
