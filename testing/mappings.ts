/**
 * The mappings of a NAT: which outside port stands for which inside socket, and from which sources datagrams to it are
 * admitted (RFC 4787 §4 and §5).
 *
 * 1. An outgoing datagram finds the mapping of its flow: by the inside socket, and by the destination as far as
 *    `mapping` says. If there is none it gets a new one, whose port `ports` chooses. It permits what `filter` says:
 *    everything, the destination's address, or its address and port.
 * 2. An incoming datagram finds the mapping of its destination port and passes if that permits its source.
 * 3. A permission lasts as `flow-state.ts` says, a mapping as long as one of its permissions.
 * 4. A claim is a datagram that the NAT took for itself: its source and its destination port. A flow whose port is
 *    claimed by its destination cannot have that port: it gets a mapping of its own, and the other flows of its socket
 *    keep theirs (Linux: the tuple is taken).
 *
 * An inside socket keeps one outside address (RFC 4787 §4.1, paired). Two mappings never share an outside port, not
 * even where Linux would let two destinations share one.
 */
import type { SocketAddress } from '../protocol/control/index.ts';
import { FlowStates, type FlowTimeouts } from './flow-state.ts';
import { type PortAllocation, PortAllocator } from './ports.ts';
import type { Random } from './random.ts';

/** The part of a peer that distinguishes flows of one socket, or sources: its address, or its address and port. */
export type AddressDependence = 'address' | 'address-port';

/** How a NAT maps and filters. */
export interface MappingRules extends FlowTimeouts {
  readonly mapping: 'independent' | AddressDependence;
  readonly filter: 'none' | AddressDependence;
  readonly ports: PortAllocation;
  readonly stride: number;
}

/** An inside socket and its outside address and port. */
class Mapping {
  /** Null: of a host that is not simulated. */
  readonly inside: SocketAddress | null;
  readonly outside: SocketAddress;
  /** Key in the table by flow. */
  readonly key: string;
  /** By {@link permissionKey}. */
  readonly permits: FlowStates;
  /** Set up by hand: permits everything until it is removed. */
  isFixed: boolean;

  constructor(inside: SocketAddress | null, outside: SocketAddress, key: string, timeouts: FlowTimeouts, isFixed = false) {
    this.inside = inside;
    this.outside = outside;
    this.key = key;
    this.permits = new FlowStates(timeouts);
    this.isFixed = isFixed;
  }

  isLive(now: number): boolean {
    return this.isFixed || this.permits.expires > now;
  }
}

/** Outside ports of hosts that are not simulated, as Linux chooses them. */
const EPHEMERAL = { first: 32_768, count: 28_232 };
/** Entries before the first sweep. */
const FIRST_SWEEP = 256;

/** All mappings of one NAT. */
export class Mappings {
  readonly #rules: MappingRules;
  readonly #addresses: readonly string[];
  readonly #random: Random;
  readonly #allocators: ReadonlyMap<string, PortAllocator>;
  /** By flow or inside socket ({@link flowKey}). */
  readonly #byInside = new Map<string, Mapping>();
  readonly #byOutside = new Map<string, Mapping>();
  /** By source and outside port; the value is the end time. */
  readonly #claims = new Map<string, number>();
  /** Inside address → its outside address. */
  readonly #paired = new Map<string, string>();
  #sweepAt = FIRST_SWEEP;
  #made = 0;

  /** @param addresses outside addresses, at least one */
  constructor(rules: MappingRules, addresses: readonly string[], random: Random) {
    this.#rules = rules;
    this.#addresses = addresses;
    this.#random = random;
    this.#allocators = new Map(
      addresses.map((address) => [address, new PortAllocator(rules.ports, rules.stride, random.fork(`ports ${address}`))]),
    );
  }

  /** Number of mappings ever made. */
  get made(): number {
    return this.#made;
  }

  /** Maps an outgoing datagram: returns its new source; null when no port is free. */
  outward(inside: SocketAddress, remote: SocketAddress, now: number): SocketAddress | null {
    const mapping = this.#ofFlow(inside, remote, now) ?? this.#map(inside, remote, now);
    mapping?.permits.touch(permissionKey(remote, this.#rules.filter), 'out', now);
    return mapping?.outside ?? null;
  }

  /** Maps a datagram to an outside address and port: returns the inside socket, or why there is none. */
  inward(remote: SocketAddress, outside: SocketAddress, now: number): SocketAddress | 'unmapped' | 'filtered' {
    const mapping = this.#live(this.#byOutside, key(outside), now);
    if (mapping === undefined) return 'unmapped';
    const permission = permissionKey(remote, this.#rules.filter);
    if (mapping.inside === null || !(mapping.isFixed || mapping.permits.has(permission, now))) return 'filtered';
    if (mapping.isFixed) this.#answerFrom(mapping, mapping.inside, remote, now);
    mapping.permits.touch(permission, 'in', now);
    return mapping.inside;
  }

  /** Returns the inside socket that has this outside address and port, for any source. Changes nothing. */
  peek(outside: SocketAddress, now: number): SocketAddress | null {
    return this.#live(this.#byOutside, key(outside), now)?.inside ?? null;
  }

  /** Claims a datagram for the NAT itself. */
  claim(remote: SocketAddress, outside: SocketAddress, now: number): void {
    this.#claims.set(tuple(remote, outside), now + this.#rules.timeout);
  }

  /** Begins a flow of a host that is not simulated, which sends once at `time`. */
  occupy(time: number): void {
    const wanted = EPHEMERAL.first + Math.floor(this.#random.fraction() * EPHEMERAL.count);
    const address = this.#addresses[Math.floor(this.#random.fraction() * this.#addresses.length)]!;
    const port = this.#allocate(address, wanted, time);
    if (port === null) return;
    const mapping = this.#insert(null, { address, port }, `foreign ${address} ${port}`, time);
    mapping.permits.touch('', 'out', time);
  }

  /**
   * Adds a permanent mapping that permits everything, including sources that were never sent to. It replaces an earlier
   * one of the port.
   */
  fix(inside: SocketAddress, outside: SocketAddress): () => void {
    this.#remove(this.#byOutside.get(key(outside)));
    const mapping = new Mapping(inside, outside, key(inside), this.#rules, true);
    this.#enter(mapping);
    return () => {
      mapping.isFixed = false;
      mapping.permits.clear();
      this.#remove(mapping);
    };
  }

  /** Removes all mappings and claims except the fixed mappings. */
  clear(): void {
    const fixed = [...this.#byOutside.values()].filter(({ isFixed }) => isFixed);
    for (const table of [this.#byInside, this.#byOutside, this.#claims, this.#paired]) table.clear();
    for (const mapping of fixed) this.#enter(mapping);
  }

  /**
   * Enters a fixed mapping by its inside socket; where flows of one socket have their own mappings, it belongs to none
   * of them.
   */
  #enter(mapping: Mapping): void {
    this.#byOutside.set(key(mapping.outside), mapping);
    if (this.#rules.mapping === 'independent') this.#byInside.set(mapping.key, mapping);
  }

  #ofFlow(inside: SocketAddress, remote: SocketAddress, now: number): Mapping | undefined {
    const own = this.#live(this.#byInside, flowKey(inside, remote, 'address-port'), now);
    if (own !== undefined) return own;
    const shared = this.#live(this.#byInside, flowKey(inside, remote, this.#rules.mapping), now);
    return shared === undefined || this.#isClaimed(remote, shared.outside, now) ? undefined : shared;
  }

  /**
   * Makes a new mapping: for all flows that `mapping` groups, or for this flow alone when the others have one or could
   * have the port that this one cannot.
   */
  #map(inside: SocketAddress, remote: SocketAddress, now: number): Mapping | null {
    const shared = flowKey(inside, remote, this.#rules.mapping);
    const address = this.#pair(inside.address);
    let alone = this.#byInside.has(shared);
    let port = this.#allocate(address, inside.port, now);
    if (port !== null && this.#isClaimed(remote, { address, port }, now)) {
      alone = true;
      port = this.#allocate(address, inside.port, now, (candidate) => !this.#isClaimed(remote, { address, port: candidate }, now));
    }
    if (port === null) return null;
    const flow = alone ? flowKey(inside, remote, 'address-port') : shared;
    return this.#insert(inside, { address, port }, flow, now);
  }

  #insert(inside: SocketAddress | null, outside: SocketAddress, flow: string, now: number): Mapping {
    if (this.#byOutside.size + this.#claims.size >= this.#sweepAt) this.#sweep(now);
    this.#made++;
    const mapping = new Mapping(inside, outside, flow, this.#rules);
    this.#byInside.set(flow, mapping);
    this.#byOutside.set(key(outside), mapping);
    return mapping;
  }

  /** A datagram admitted by a fixed mapping is answered from its port. */
  #answerFrom(mapping: Mapping, inside: SocketAddress, remote: SocketAddress, now: number): void {
    const flow = flowKey(inside, remote, 'address-port');
    if (this.#live(this.#byInside, flow, now) === undefined) this.#byInside.set(flow, mapping);
  }

  #allocate(address: string, wanted: number, now: number, also: (port: number) => boolean = () => true): number | null {
    const isFree = (port: number): boolean => this.#live(this.#byOutside, key({ address, port }), now) === undefined && also(port);
    return this.#allocators.get(address)!.allocate(wanted, isFree);
  }

  #pair(inside: string): string {
    let address = this.#paired.get(inside);
    if (address === undefined) {
      address = this.#addresses[this.#paired.size % this.#addresses.length]!;
      this.#paired.set(inside, address);
    }
    return address;
  }

  #isClaimed(remote: SocketAddress, outside: SocketAddress, now: number): boolean {
    return this.#claims.size > 0 && (this.#claims.get(tuple(remote, outside)) ?? 0) > now;
  }

  /** Returns the entry; removes it when it has expired. */
  #live(table: Map<string, Mapping>, at: string, now: number): Mapping | undefined {
    const mapping = table.get(at);
    if (mapping === undefined || mapping.isLive(now)) return mapping;
    table.delete(at);
    this.#remove(mapping);
    return undefined;
  }

  #remove(mapping: Mapping | undefined): void {
    if (mapping === undefined) return;
    if (this.#byInside.get(mapping.key) === mapping) this.#byInside.delete(mapping.key);
    if (this.#byOutside.get(key(mapping.outside)) === mapping) this.#byOutside.delete(key(mapping.outside));
  }

  #sweep(now: number): void {
    for (const mapping of [...this.#byOutside.values()]) if (!mapping.isLive(now)) this.#remove(mapping);
    for (const [at, until] of this.#claims) if (until <= now) this.#claims.delete(at);
    this.#sweepAt = Math.max(FIRST_SWEEP, 2 * (this.#byOutside.size + this.#claims.size));
  }
}

function key({ address, port }: SocketAddress): string {
  return `${address} ${port}`;
}

function tuple(remote: SocketAddress, outside: SocketAddress): string {
  return `${key(remote)} ${key(outside)}`;
}

/** Key of the inside socket, and of the part of the destination that the mapping depends on. */
function flowKey(inside: SocketAddress, remote: SocketAddress, depends: 'independent' | AddressDependence): string {
  if (depends === 'independent') return key(inside);
  return depends === 'address' ? `${key(inside)} ${remote.address}` : tuple(inside, remote);
}

/** Key of the part of the peer's address that the filter checks. */
function permissionKey(remote: SocketAddress, filter: 'none' | AddressDependence): string {
  if (filter === 'none') return '';
  return filter === 'address' ? remote.address : key(remote);
}
