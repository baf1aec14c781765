/**
 * Gathers the facts that an end reports in a rendezvous: the addresses at which it may be reached, and the class of its
 * NAT. One for each host; connections share the findings.
 *
 * 1. At once: addresses of interfaces, where the peer may know them; those that a router has mapped, that a person has
 *    stated, and that the station has seen.
 * 2. Then the station's STUN ports are queried (`Sampler`), and the list is complete. The result counts for 30 s on the
 *    same network. For a NAT that assigns ports in sequence, the last port is queried each time, as often as
 *    `Samplings` allows; beyond that the last result counts.
 *
 * At most 8 candidates, the likely ones first: those with a default route, the others, container bridges and VPNs last.
 */

import type { Cancel, HostInterface } from '../../platform/environment.ts';
import { canonicalAddress, inPrefix, isLinkLocal, type Prefix, parseAddress, parsePrefix } from '../../protocol/address.ts';
import { type Candidate, MAX_CANDIDATES, type NatReport, type SocketAddress } from '../../protocol/control/index.ts';
import { type LocalView, Sampler, type StunAnswer } from '../../protocol/rendezvous/index.ts';
import { isPeerAddress } from './peer-address.ts';
import type { RendezvousHost } from './rendezvous-host.ts';
import { runSampler } from './run-sampler.ts';
import { Samplings } from './samplings.ts';
import type { StationView } from './station-view.ts';
import type { StunDispatcher } from './stun-dispatcher.ts';
import { stunServers } from './stun-servers.ts';
import { hasIpv4, Nat64 } from './translation.ts';

/** ms between two checks of the interfaces, while a search watches for a change. */
const NETWORK_LOOK = 3_000;
/**
 * ms for which a STUN result counts: rounds that begin together share it. A moment later the NAT may be another one, or
 * may have restarted.
 */
const SAMPLE_LIFETIME = 30_000;
/** Stations whose results are remembered. */
const MAX_KNOWN = 16;
/** Of 8 candidates: at most this many that were mapped or stated, and that others saw. */
const MAX_MAPPED = 3;
const MAX_REFLEXIVE = 2;

export interface GathererOptions {
  readonly host: RendezvousHost;
  readonly dispatcher: StunDispatcher;
  /** Addresses that a person stated, such as a forwarded port. */
  readonly stated?: readonly SocketAddress[];
  /** Interfaces that are not named to peers. */
  readonly excluded?: readonly string[];
  /** Returns the addresses that routers have mapped for the socket now. */
  readonly mapped?: () => readonly SocketAddress[];
}

/** A list, and a fact that it does not show. */
export interface GatherReport extends LocalView {
  /** The station names STUN ports, and none answered. */
  readonly isStunSilent: boolean;
}

interface KnownNat {
  readonly network: string;
  readonly report: NatReport;
  readonly reflexive: readonly SocketAddress[];
  readonly isStunSilent: boolean;
  readonly stun: readonly StunAnswer[];
  readonly at: number;
}

export class Gatherer {
  readonly #options: GathererOptions;
  /** Results by station, the newest last. */
  readonly #known = new Map<string, KnownNat>();
  readonly #samplings: Samplings<KnownNat>;
  readonly #watching = new Set<() => void>();
  /** Those of them for which this looks for changes. */
  readonly #looking = new Set<Cancel>();
  #cancelLook: Cancel = () => {};
  #own: { readonly interfaces: readonly HostInterface[]; readonly addresses: readonly string[] } = { interfaces: [], addresses: [] };
  readonly #nat64: Nat64;

  constructor(options: GathererOptions) {
    this.#options = options;
    this.#samplings = new Samplings(options.host.environment.clock);
    this.#nat64 = new Nat64(options.host.environment);
    this.#nat64.refresh();
  }

  get #interfaces(): readonly HostInterface[] {
    return this.#options.host.environment.network.interfaces?.() ?? [];
  }

  /** Returns whether an address is in a network of this host, or on a link. */
  isNear(address: string): boolean {
    const bytes = parseAddress(address);
    return bytes !== null && (isLinkLocal(bytes) || this.#prefixes().some((prefix) => inPrefix(bytes, prefix)));
  }

  /**
   * Returns whether a peer may be at that address: not loopback, multicast, broadcast, unspecified, nor this very
   * socket.
   */
  isUsable({ address, port }: SocketAddress): boolean {
    if (!isPeerAddress(address)) return false;
    return port !== this.#options.host.socket.port || !this.#ownAddresses().includes(address);
  }

  /** Forgets the STUN results: they no longer hold. */
  forget(): void {
    this.#known.clear();
  }

  /** This host seems to be in another network, or has another socket. */
  changed(): void {
    this.forget();
    this.refresh();
    if (this.#looking.size > 0) {
      this.#cancelLook();
      this.#look(this.#ownAddresses().join());
    }
    for (const onChange of [...this.#watching]) onChange();
  }

  /**
   * Returns how this host reaches an address: the address itself, or the IPv6 address that the network translates to
   * it.
   */
  reach(address: string): string {
    return this.#nat64.reach(address);
  }

  /**
   * This host may have changed its network: looks the translation up again. The result counts for attempts that begin
   * later.
   */
  refresh(): void {
    this.#nat64.refresh();
  }

  /** Returns a text that changes when this end changes its network. */
  network(station: StationView | null): string {
    return [...this.#ownAddresses(), station?.observed?.address ?? ''].join(' ');
  }

  /** Calls back when this host is in another network, as far as others notice it. @returns a function that stops it */
  onChange(callback: () => void): Cancel {
    this.refresh();
    const each = (): void => callback();
    this.#watching.add(each);
    return () => void this.#watching.delete(each);
  }

  /** As `onChange`, and looks at this host's addresses each 3 s meanwhile: a search uses those of all interfaces. */
  watch(callback: () => void): Cancel {
    const stop = this.onChange(callback);
    this.#looking.add(stop);
    if (this.#looking.size === 1) this.#look(this.#ownAddresses().join());
    return () => {
      stop();
      this.#looking.delete(stop);
      if (this.#looking.size === 0) this.#cancelLook();
    };
  }

  /**
   * Calls `onView` at once with the known addresses, and again when the list is complete: within 750 ms.
   * @param withHosts the peer is trusted, and may know addresses of interfaces
   * @returns a function that stops gathering
   */
  gather(station: StationView | null, withHosts: boolean, onView: (view: GatherReport) => void): Cancel {
    this.refresh();
    let known = this.#fresh(station);
    if (known === null && station !== null && station.stun.length > 0) {
      const cancel = this.#ask(station, withHosts, (found) => onView(this.#view(station, withHosts, found)));
      if (cancel !== null) {
        onView(this.#view(station, withHosts, null));
        return cancel;
      }
      known = this.#last(station);
    }
    onView(this.#view(station, withHosts, known ?? this.#unsampled(station)));
    return () => {};
  }

  /** Ends all samplings. */
  close(): void {
    this.#samplings.close();
  }

  #ask(station: StationView, isTrusted: boolean, onFound: (found: KnownNat) => void): Cancel | null {
    const begin = (onEnd: (found: KnownNat) => void): Cancel => this.#sample(station, (sampler, seen) => onEnd(this.#note(seen, sampler)));
    return this.#samplings.ask(`${stationKey(station)} ${this.network(station)}`, isTrusted, begin, onFound);
  }

  #note(station: StationView, sampler: Sampler): KnownNat {
    const found: KnownNat = {
      network: this.network(station),
      report: sampler.report(this.#ownAddresses(), this.#now),
      reflexive: sampler.reflexive,
      isStunSilent: sampler.isSilent,
      stun: sampler.answers,
      at: this.#now,
    };
    const key = stationKey(station);
    this.#known.delete(key);
    if (this.#known.size === MAX_KNOWN) this.#known.delete(this.#known.keys().next().value!);
    this.#known.set(key, found);
    return found;
  }

  /** @param onDone called with the station's view at that time */
  #sample(station: StationView, onDone: (sampler: Sampler, station: StationView) => void): Cancel {
    const { host, dispatcher } = this.#options;
    const { clock, crypto } = host.environment;
    let end: Cancel | null = null;
    let ended = false;
    const reachable = (address: string): boolean => this.#hasFamily(address) || this.reach(address) !== address;
    void stunServers(station, host.environment, reachable).then((addresses) => {
      const servers = addresses.map(({ address, port }) => ({ address: this.reach(address), port }));
      if (ended) return;
      const known = station.observed === null ? null : { station: station.at, mapped: station.observed };
      const sampler = new Sampler({ crypto, servers, port: host.socket.port, known }, clock.now());
      let seen = station;
      const ask = async (): Promise<SocketAddress | null> => {
        const observed = await station.ask();
        if (observed !== null) seen = { ...station, observed };
        return observed;
      };
      end = runSampler(host, dispatcher, sampler, { ask, onDone: () => onDone(sampler, seen) });
    });
    return () => {
      ended = true;
      end?.();
    };
  }

  /** Returns the last answers of the station's STUN ports; empty before the first. */
  stunAnswers(station: StationView): readonly StunAnswer[] {
    return this.#known.get(stationKey(station))?.stun ?? [];
  }

  /** One timer for all watchers. */
  #look(before: string): void {
    this.#cancelLook = this.#options.host.environment.clock.schedule(NETWORK_LOOK, () => {
      const addresses = this.#ownAddresses().join();
      this.#look(addresses);
      if (addresses === before) return;
      this.refresh();
      for (const onChange of [...this.#watching]) onChange();
    });
  }

  /** Returns the result of this network, of any age. */
  #last(station: StationView): KnownNat | null {
    const known = this.#known.get(stationKey(station));
    return known?.network === this.network(station) ? known : null;
  }

  #fresh(station: StationView | null): KnownNat | null {
    const known = station === null ? null : this.#last(station);
    if (known === null) return null;
    const lasts = known.report.mapping !== 'sequential' && known.report.mapping !== 'unknown' && !known.isStunSilent;
    return lasts && this.#options.host.environment.clock.now() - known.at < SAMPLE_LIFETIME ? known : null;
  }

  /** Without STUN: if the station saw one of our own addresses unchanged, there is no NAT in front of it. */
  #unsampled(station: StationView | null): KnownNat {
    const { observed = null } = station ?? {};
    const isOwn = observed !== null && observed.port === this.#options.host.socket.port && this.#ownAddresses().includes(observed.address);
    return { network: '', report: { mapping: isOwn ? 'none' : 'unknown' }, reflexive: [], isStunSilent: false, stun: [], at: 0 };
  }

  #view(station: StationView | null, withHosts: boolean, known: KnownNat | null): GatherReport {
    const { host, mapped, stated = [] } = this.#options;
    const { port } = host.socket;
    const own = this.#ownAddresses();
    const named = this.#namedAddresses();
    const hosts: Candidate[] = withHosts ? named.map((address) => ({ address, port, type: 'host' })) : [];
    const seen = known !== null && known.reflexive.length > 0 ? known.reflexive : station?.observed == null ? [] : [station.observed];
    const isOpen = (address: SocketAddress): boolean => address.port === port && named.includes(address.address);
    // An address without a NAT is no secret: the station sees it and could pass it to the peer.
    const open: Candidate[] = withHosts ? [] : seen.filter(isOpen).map((address) => ({ ...address, type: 'reflexive' }));
    const isKeptBack = ({ address }: SocketAddress): boolean => own.includes(address) && !named.includes(address);
    const reflexive: Candidate[] = oneEach(seen.filter((address) => !isOpen(address) && !isKeptBack(address)))
      .slice(0, MAX_REFLEXIVE)
      .map((address) => ({ ...address, type: 'reflexive' }));
    const others: Candidate[] = [...stated, ...(mapped?.() ?? [])].slice(0, MAX_MAPPED).map((address) => ({ ...address, type: 'mapped' }));
    const rest = [...open, ...others, ...reflexive];
    const candidates = [...hosts.slice(0, MAX_CANDIDATES - Math.min(rest.length, MAX_CANDIDATES)), ...rest].slice(0, MAX_CANDIDATES);
    return {
      candidates,
      isComplete: known !== null,
      isStunSilent: known?.isStunSilent ?? false,
      ...(known && { nat: aged(known, this.#now) }),
    };
  }

  #hasFamily(address: string): boolean {
    return address.includes(':') ? this.#ownAddresses().some((own) => own.includes(':')) : hasIpv4(this.#interfaces);
  }

  get #now(): number {
    return this.#options.host.environment.clock.now();
  }

  /** Derived once of each list of interfaces: a round of a rendezvous needs them many times. */
  #ownAddresses(): readonly string[] {
    const interfaces = this.#interfaces;
    if (this.#own.interfaces !== interfaces) this.#own = { interfaces, addresses: interfaces.flatMap(addressesOf) };
    return this.#own.addresses;
  }

  /** Own addresses except those of excluded interfaces. */
  #namedAddresses(): readonly string[] {
    const { excluded = [] } = this.#options;
    return this.#interfaces.filter(({ name }) => !excluded.includes(name)).flatMap(addressesOf);
  }

  #prefixes(): readonly Prefix[] {
    return this.#interfaces.flatMap(({ addresses }) => addresses.flatMap((address) => parsePrefix(address) ?? []));
  }
}

function addressesOf({ addresses }: HostInterface): readonly string[] {
  return addresses.map((address) => canonicalAddress(address.split('/')[0]!)!);
}

function stationKey({ at }: StationView): string {
  return `${at.address} ${at.port}`;
}

function aged({ report, at }: KnownNat, now: number): NatReport {
  return report.age === undefined ? report : { ...report, age: Math.round(report.age + now - at) };
}

/** One for each IP: if a mapping depends on the destination, its port means nothing to the peer. */
function oneEach(addresses: readonly SocketAddress[]): readonly SocketAddress[] {
  return [...new Map(addresses.map((address) => [address.address, address])).values()];
}
