/**
 * A router with a NAT or a firewall, as found in front of the hosts of a home or of a provider: decides what happens to
 * a datagram that arrives from either side.
 *
 * Outward, in this order: no hop left → expired; UDP is blocked → dropped; an IPv6 destination in the NAT64 prefix →
 * translated to IPv4; other IPv6 → forwarded from its own prefixes only, and remembered by the firewall; IPv4 → its
 * source is mapped (mappings.ts).
 * Inward, in this order: blocked; IPv6 → as the firewall decides; IPv4 → as the mappings decide, and refused datagrams
 * are dropped or claimed; no hop left → expired. A datagram that expires at the box opens nothing; one that expires
 * behind it has opened mapping and filter.
 *
 * The box only decides. The topology knows which realm a datagram is in, and how many routers lie between.
 */

import { canonicalAddress, inPrefix, type Prefix, parseAddress, parsePrefix } from '../protocol/address.ts';
import type { SocketAddress } from '../protocol/control/index.ts';
import { LocalError } from '../protocol/errors/index.ts';
import { CrossTraffic } from './cross-traffic.ts';
import { TranslationPrefix } from './dns64.ts';
import { FlowStates } from './flow-state.ts';
import { type AddressDependence, type MappingRules, Mappings } from './mappings.ts';
import type { PortAllocation } from './ports.ts';
import type { Random } from './random.ts';

/** Behaviour of a NAT box. The defaults are those of a home router whose firewall drops unexpected datagrams. */
export interface NatOptions {
  /**
   * Its outside addresses: IPv4 addresses that the hosts behind it share, and `address/bits` of IPv6 prefixes that it
   * forwards to them.
   */
  outside: readonly string[];
  /**
   * Its inside addresses: the gateway of the hosts behind it. No host owns them, unless one is made with them. Default
   * none.
   */
  inside?: readonly string[];
  /** The part of the destination that a mapping depends on (RFC 4787 §4.1). Default independent. */
  mapping?: 'independent' | AddressDependence;
  /**
   * Which sources reach a mapped port (RFC 4787 §5): all, an address that was sent to, or an address and port. Default
   * address-port.
   */
  filter?: 'none' | AddressDependence;
  /** The port of a new mapping. `preserve`: that of the socket, or the next free one above. Default preserve. */
  ports?: PortAllocation;
  /** Step between ports of a sequence, modulo 65,536; negative counts down. Default 1. */
  stride?: number;
  /** ms that a flow is remembered after a datagram. Default 30,000. */
  timeout?: number;
  /** The same for a flow with traffic both ways for more than 2 s. Default 120,000. */
  streamTimeout?: number;
  /** Whether hosts behind it reach one another at their outside addresses (RFC 4787 §6). Default false. */
  hairpin?: boolean;
  /**
   * The fate of unsolicited IPv4 datagrams. `claim`: the box takes them for itself, as Linux does
   * without a firewall, and for `timeout` ms no flow from inside to that source can have that port. Default drop.
   */
  inbound?: 'drop' | 'claim';
  /**
   * The box in front of this one, to whose realm the outside addresses belong. Default none: they belong to the core.
   */
  behind?: NatBox;
  /**
   * IPv6 of hosts behind it: forwarded, forwarded by a firewall that admits only answers (by address and port), or not
   * carried. Default none.
   */
  v6?: 'forward' | 'firewall' | 'none';
  /**
   * The /96 under which IPv6 hosts behind it reach IPv4 (RFC 6146), such as `64:ff9b::`. Their resolver returns such
   * addresses (RFC 6147). Default none.
   */
  nat64?: string;
  /** No UDP passes, except from and to the addresses in `allow`. Default false. */
  blocked?: boolean;
  allow?: readonly string[];
  /** Routers between it and the core, or the other members of its realm. Default 3. */
  hops?: number;
}

/**
 * Why a box did not pass a datagram on; `expired`: its hop limit ended at the box, or at the routers in front of it.
 */
export type NatVerdict = 'unmapped' | 'filtered' | 'claimed' | 'blocked' | 'exhausted' | 'unrouted' | 'hairpin' | 'expired';

/** Counters of a box. */
export interface NatStats extends Readonly<Record<NatVerdict, number>> {
  /** Datagrams passed. */
  readonly out: number;
  readonly in: number;
  /** Mappings made, those of foreign flows included. */
  readonly mappings: number;
  readonly foreign: number;
}

/** A datagram at a box. */
export interface Passage {
  readonly source: SocketAddress;
  readonly destination: SocketAddress;
  /** Routers that it may still pass: at least 1. */
  readonly hops: number;
}

/** Linux: net.netfilter.nf_conntrack_udp_timeout and nf_conntrack_udp_timeout_stream. */
const TIMEOUT = 30_000;
const STREAM_TIMEOUT = 120_000;
/** Two homes are then 8 routers apart: a hop limit up to 7 passes the sender's box and does not reach the other. */
const HOPS = 3;

/** A NAT box of a simulation. Made by `Simulation.nat`. */
export class NatBox {
  readonly name: string;
  /** As in {@link NatOptions.hops}. */
  readonly hops: number;
  /** Canonical, as given to the hosts behind it. */
  readonly inside: readonly string[];
  /** IPv4, canonical. */
  readonly addresses: readonly string[];
  /** IPv6. */
  readonly prefixes: readonly Prefix[];
  readonly nat64: TranslationPrefix | null;

  readonly #options: NatOptions;
  readonly #allowed: ReadonlySet<string>;
  readonly #now: () => number;
  readonly #random: Random;
  readonly #mappings: Mappings | null;
  /** Of the IPv6 firewall, by both ends. */
  readonly #flows: FlowStates;
  readonly #counts: Record<NatVerdict | 'out' | 'in' | 'foreign', number>;
  #foreign: { traffic: CrossTraffic; perSecond: number } | null = null;

  /** Made by `Simulation.nat`. @throws LocalError INVALID_ARGUMENT for invalid addresses or an unusable stride */
  constructor(name: string, options: NatOptions, now: () => number, random: Random) {
    const { timeout = TIMEOUT, streamTimeout = STREAM_TIMEOUT, stride = 1 } = options;
    const outside = options.outside.map(checkedPrefix);
    if (!Number.isInteger(stride) || stride % 65_536 === 0)
      throw new LocalError('INVALID_ARGUMENT', `${stride} is not a stride between ports`);
    this.name = name;
    this.hops = options.hops ?? HOPS;
    this.inside = (options.inside ?? []).map(checkedAddress);
    this.addresses = options.outside
      .filter((_, index) => outside[index]!.bytes.length === 4)
      .map((text) => checkedAddress(text.split('/')[0]!));
    this.prefixes = outside.filter(({ bytes }) => bytes.length === 16);
    this.nat64 = options.nat64 === undefined ? null : new TranslationPrefix(options.nat64);
    this.#options = options;
    this.#allowed = new Set((options.allow ?? []).map(checkedAddress));
    this.#now = now;
    this.#random = random;
    const { mapping = 'independent', filter = 'address-port', ports = 'preserve' } = options;
    const rules: MappingRules = { mapping, filter, ports, stride, timeout, streamTimeout };
    this.#mappings = this.addresses.length === 0 ? null : new Mappings(rules, this.addresses, random.fork('mappings'));
    this.#flows = new FlowStates(rules);
    const none = { unmapped: 0, filtered: 0, claimed: 0, blocked: 0, exhausted: 0, unrouted: 0, hairpin: 0, expired: 0 };
    this.#counts = { ...none, out: 0, in: 0, foreign: 0 };
  }

  /** Counters as of now. */
  get stats(): NatStats {
    this.#occupy();
    return { ...this.#counts, mappings: this.#mappings?.made ?? 0 };
  }

  /** Removes all mappings, claims and flows, as after a reboot, except ports that {@link forward} set up. */
  forget(): void {
    this.#occupy();
    this.#mappings?.clear();
    this.#flows.clear();
  }

  /**
   * Lets hosts that are not simulated begin flows from now on, at random times (a Poisson process); each takes a port
   * for `timeout` ms.
   * @param perSecond on average; 0 ends it
   */
  occupy(perSecond: number): void {
    this.#occupy();
    const random = this.#random.fork(`foreign flows ${this.#now()}`);
    this.#foreign = perSecond > 0 ? { traffic: new CrossTraffic(random), perSecond } : null;
    this.#occupy();
  }

  /**
   * Forwards a port to an inside socket, as an operator or PCP (RFC 6887) sets it up. With `mapping: 'independent'`
   * that socket also sends from it.
   * @param address outside address. Default the first
   * @returns a function that removes it
   */
  forward(port: number, inside: SocketAddress, address: string | undefined = this.addresses[0]): () => void {
    if (this.#mappings === null || address === undefined || !this.addresses.includes(address))
      throw new LocalError('INVALID_ARGUMENT', `${address} is not an IPv4 address of ${this.name}`);
    return this.#mappings.fix({ address: checkedAddress(inside.address), port: inside.port }, { address, port });
  }

  /** For the simulation: whether the address is one of its outside addresses. */
  owns(address: string): boolean {
    return this.addresses.includes(address);
  }

  /**
   * For the simulation: decides about a datagram from inside. @param turned it is for an address of the box itself, and
   * comes back through {@link inward}
   */
  outward(passage: Passage, turned: boolean): Passage | NatVerdict {
    this.#occupy();
    const result = this.#outward(passage, turned);
    this.#counts[typeof result === 'string' ? result : 'out']++;
    return result;
  }

  /** For the simulation: decides about a datagram from outside. */
  inward(passage: Passage, turned: boolean): Passage | NatVerdict {
    this.#occupy();
    const result = this.#inward(passage, turned);
    this.#counts[typeof result === 'string' ? result : 'in']++;
    return result;
  }

  /**
   * For the simulation: translates the addresses of a TCP connection from inside; null when it has no way out. Rules
   * for UDP, ports and times do not apply.
   */
  connect(source: string, destination: string): { source: string; destination: string } | null {
    const remote = this.nat64?.toV4(destination) ?? destination;
    if (isV6(remote)) return (this.#options.v6 ?? 'none') === 'none' || !this.#routes(source) ? null : { source, destination };
    const [outside] = this.addresses;
    return outside === undefined || isV6(source) === (remote === destination) ? null : { source: outside, destination: remote };
  }

  /** For the simulation: a datagram's hops ended at the routers in front of the box. */
  expire(): void {
    this.#counts.expired++;
  }

  /** For the simulation: the inside address that a datagram is for, ignoring the filter. Changes nothing. */
  peek(destination: SocketAddress): string | null {
    if (isV6(destination.address)) return destination.address;
    return this.#mappings?.peek(destination, this.#now())?.address ?? null;
  }

  #outward({ source, destination, hops }: Passage, turned: boolean): Passage | NatVerdict {
    if (hops < 2) return 'expired';
    if (turned && this.#options.hairpin !== true) return 'hairpin';
    const translated = this.nat64?.toV4(destination.address) ?? null;
    const remote = translated === null ? destination : { address: translated, port: destination.port };
    if (this.#blocks(remote.address)) return 'blocked';
    if (isV6(remote.address)) return this.#forwards(source, remote) ? { source, destination, hops: hops - 1 } : 'unrouted';
    if (this.#mappings === null || isV6(source.address) !== (translated !== null)) return 'unrouted';
    const outside = this.#mappings.outward(source, remote, this.#now());
    return outside === null ? 'exhausted' : { source: outside, destination: remote, hops: hops - 1 };
  }

  /** Returns whether IPv6 from inside is forwarded. */
  #forwards(source: SocketAddress, remote: SocketAddress): boolean {
    const { v6 = 'none' } = this.#options;
    if (v6 === 'none' || !this.#routes(source.address)) return false;
    if (v6 === 'firewall') this.#flows.touch(flowOf(source, remote), 'out', this.#now());
    return true;
  }

  #inward({ source, destination, hops }: Passage, turned: boolean): Passage | NatVerdict {
    if (this.#blocks(source.address)) return 'blocked';
    const inside = isV6(destination.address) ? this.#admitted(source, destination) : this.#mapped(source, destination);
    if (typeof inside === 'string') return inside;
    if (turned) return { source, destination: inside, hops };
    if (hops < 2) return 'expired';
    return { source: this.#seenFrom(inside.address, source), destination: inside, hops: hops - 1 };
  }

  /** Admits IPv6 from outside. */
  #admitted(source: SocketAddress, destination: SocketAddress): SocketAddress | NatVerdict {
    const { v6 = 'none' } = this.#options;
    if (v6 === 'none' || !this.#routes(destination.address)) return 'unrouted';
    if (v6 === 'forward') return destination;
    const flow = flowOf(destination, source);
    if (!this.#flows.has(flow, this.#now())) return 'filtered';
    this.#flows.touch(flow, 'in', this.#now());
    return destination;
  }

  /** Maps IPv4 from outside. */
  #mapped(source: SocketAddress, destination: SocketAddress): SocketAddress | NatVerdict {
    const now = this.#now();
    const inside = this.#mappings?.inward(source, destination, now) ?? 'unmapped';
    if (typeof inside !== 'string' || this.#options.inbound !== 'claim') return inside;
    this.#mappings?.claim(source, destination, now);
    return 'claimed';
  }

  /** Returns an IPv4 source as an inside host sees it. */
  #seenFrom(inside: string, source: SocketAddress): SocketAddress {
    if (this.nat64 === null || !isV6(inside) || isV6(source.address)) return source;
    return { address: this.nat64.toV6(source.address), port: source.port };
  }

  #blocks(address: string): boolean {
    return this.#options.blocked === true && !this.#allowed.has(address);
  }

  #routes(address: string): boolean {
    const bytes = parseAddress(address);
    return bytes !== null && this.prefixes.some((prefix) => inPrefix(bytes, prefix));
  }

  /** Adds foreign flows up to now. */
  #occupy(): void {
    const { traffic, perSecond } = this.#foreign ?? {};
    // One "byte" is one flow.
    traffic?.advance({ rate: 8 * perSecond!, size: 1 }, this.#now(), (_, time) => {
      this.#counts.foreign++;
      this.#mappings?.occupy(time);
    });
  }
}

function isV6(address: string): boolean {
  return address.includes(':');
}

function flowOf(inside: SocketAddress, remote: SocketAddress): string {
  return `${inside.address} ${inside.port} ${remote.address} ${remote.port}`;
}

function checkedAddress(text: string): string {
  const address = canonicalAddress(text);
  if (address === null) throw new LocalError('INVALID_ARGUMENT', `${text} is not a numeric address`);
  return address;
}

function checkedPrefix(text: string): Prefix {
  const prefix = parsePrefix(text);
  if (prefix === null)
    throw new LocalError('INVALID_ARGUMENT', `${text} is not an address or a prefix, such as 198.51.100.7 or 2001:db8:7::/48`);
  return prefix;
}
