/**
 * A network in virtual time: hosts, links between them, and a clock that jumps from event to event. The real code of all layers above runs in it,
 * hours of keep-alive in milliseconds, and the same seed gives the same run, datagram for datagram.
 *
 * 1. Datagrams, timers and deferred calls are events in one queue, ordered by time; within one instant arrivals and timers come before
 *    deferred calls, and otherwise the order of scheduling decides.
 * 2. After each event, and more thoroughly before time moves on, pending promises are given turns (`TURNS`): application code is asynchronous, and
 *    what it does in answer to an event belongs to the same instant. JavaScript has no way to ask whether promises are pending, so a chain
 *    of more than `TURNS_BEFORE_TIME` awaits that schedules nothing goes on at a later instant; that, too, is reproducible.
 * 3. Only promises are waited for. Code that awaits real IO, such as a database, needs `hop`.
 *
 * It needs nothing from its host, no timers and no Node, so it also runs in a bare JavaScript context. It does not model TCP
 * or ICMP: a datagram to nobody is lost.
 */
import type { SocketAddress } from '../../protocol/control/index.ts';
import type { CryptoHost } from '../../protocol/crypto-host.ts';
import type { DnsMessage, MdnsSource } from '../../protocol/discovery/index.ts';
import { LocalError } from '../../protocol/errors/index.ts';
import type { Path } from '../../protocol/path.ts';
import { type Log, type LogLevel, silentLog } from '../environment.ts';
import { nobleCrypto } from '../noble-crypto.ts';
import type { SimulatedDocument } from './documents.ts';
import { EventQueue, Phase, type SimulationEvent } from './event-queue.ts';
import { damaged } from './faults.ts';
import { SimulatedHost, type World } from './host.ts';
import { Link, type LinkOptions, type LinkVerdict } from './link.ts';
import { Nat } from './nat.ts';
import { Random } from './random.ts';

/** Seed, links and what the host of the simulation gives. */
export interface SimulationOptions {
  /** The same seed gives the same run. Default 1. */
  seed?: number | string;
  /** Of every link that {@link Simulation.link} did not set. */
  link?: LinkOptions;
  /** Unix ms at virtual time 0. Default 2026-01-01. */
  wallTime?: number;
  /** Awaited before time moves on, such as `() => new Promise(setImmediate)`: gives real IO of the host a chance. It costs reproducibility. */
  hop?: () => Promise<void>;
  /**
   * Cryptography of each host over its seeded randomness, for one that computes the same faster: `nativeCrypto` in Node. Default: noble's, which runs
   * everywhere.
   */
  crypto?: (randomBytes: (length: number) => Uint8Array) => CryptoHost;
  /** Receives the log of every host. */
  log?: (host: string, level: LogLevel, message: string, fields?: Record<string, unknown>) => void;
}

/** A datagram on its way out of a host. */
export interface SimulatedPacket {
  /** Virtual ms. */
  readonly time: number;
  /** Names of hosts. `to` is undefined when nobody has the address. */
  readonly from: string;
  readonly to: string | undefined;
  readonly source: SocketAddress;
  readonly destination: SocketAddress;
  readonly data: Uint8Array;
}

/** What became of a datagram, or of one arrival of it. */
export type PacketFate = LinkVerdict | 'intercepted' | 'unreachable' | 'delivered';

const TURNS = 4;
const TURNS_BEFORE_TIME = 64;
/** Events in one instant above which something calls itself without end. */
const MAX_EVENTS_PER_INSTANT = 1_000_000;
/** Virtual ms that a run until a condition may take: an hour. */
const DEFAULT_LIMIT = 3_600_000;
/** One-way delay within a host, ms. */
const LOOPBACK_DELAY = 0.02;
/** What a multicast DNS message counts as on a link, bytes. */
const MDNS_SIZE = 500;
const NEW_YEAR_2026 = 1_767_225_600_000;

/** A network in virtual time with its hosts. */
export class Simulation implements World {
  readonly seed: string;
  /** What is answered by https, by URL: a text, an error, or null for silence. Nobody listens at other URLs. */
  readonly documents = new Map<string, SimulatedDocument>();
  /**
   * Sees each datagram as it is sent and may intervene: `'drop'`, or bytes to send in its place, one datagram or several. Keep `packet.data`
   * and {@link inject} it later to replay.
   */
  onPacket: ((packet: SimulatedPacket) => undefined | 'drop' | Uint8Array | readonly Uint8Array[]) | undefined;
  /** Told what became of each datagram: once or twice per datagram, verdict of the link and arrival. */
  onTrace: ((packet: SimulatedPacket, fate: PacketFate, time: number) => void) | undefined;

  readonly #options: SimulationOptions;
  readonly #random: Random;
  readonly #queue = new EventQueue();
  readonly #hosts = new Map<string, SimulatedHost>();
  /** By address; the host may have been stopped. */
  readonly #owners = new Map<string, SimulatedHost>();
  readonly #links = new Map<string, Link>();
  readonly #nat = new Nat();
  #now = 0;
  #hostsMade = 0;
  #running = false;

  constructor(options: SimulationOptions = {}) {
    this.#options = options;
    this.seed = String(options.seed ?? 1);
    this.#random = new Random(this.seed);
  }

  /** Virtual ms since the start. */
  get now(): number {
    return this.#now;
  }

  get wallTime(): number {
    return (this.#options.wallTime ?? NEW_YEAR_2026) + this.#now;
  }

  /**
   * Adds a host. Its name resolves to its addresses. A name or address of a stopped host may be used again: that is a restart.
   * @param options.linkMtu what the host takes for the MTU of its links, as an operator states it.
   * @param options.addresses each `address/bits`, IPv4 or IPv6; by default one of each in a network of its own.
   */
  host(name: string, options: { addresses?: readonly string[]; linkMtu?: number } = {}): SimulatedHost {
    const earlier = this.#hosts.get(name);
    if (earlier?.alive === true) throw new LocalError('INVALID_ARGUMENT', `the simulation already has a host ${name}`);
    const number = ++this.#hostsMade;
    const addresses = options.addresses ?? (earlier === undefined ? defaultAddresses(number) : earlier.networks);
    const random = this.#random.fork(`host ${name} ${number}`);
    const { crypto = nobleCrypto } = this.#options;
    const host = new SimulatedHost(
      this,
      name,
      addresses,
      crypto((length) => random.bytes(length)),
      this.#log(name),
      options.linkMtu,
    );
    for (const address of host.addresses) {
      const owner = this.#ownerOf(address);
      if (owner !== undefined) throw new LocalError('INVALID_ARGUMENT', `${address} already belongs to ${owner.name}`);
    }
    for (const address of host.addresses) this.#owners.set(address, host);
    this.#hosts.set(name, host);
    return host;
  }

  /** Sets the link between two hosts in both directions, or with `back` each on its own. What was set before is replaced, statistics stay. */
  link(from: string | SimulatedHost, to: string | SimulatedHost, options: LinkOptions, back: LinkOptions = options): void {
    this.direction(from, to).options = new Link(options, this.#random).options;
    this.direction(to, from).options = new Link(back, this.#random).options;
  }

  /** One direction of a link: its statistics and present options. */
  direction(from: string | SimulatedHost, to: string | SimulatedHost): Link {
    const name = `${nameOf(from)} > ${nameOf(to)}`;
    let link = this.#links.get(name);
    if (link === undefined) {
      const loopback = nameOf(from) === nameOf(to);
      link = new Link(loopback ? { delay: LOOPBACK_DELAY } : { ...this.#options.link }, this.#random.fork(`link ${name}`));
      this.#links.set(name, link);
    }
    return link;
  }

  /**
   * Has a NAT before a host give its sockets new ports outside, with `'address'` also a new address: as the others see it, the host's datagrams
   * come from elsewhere, and what is sent to where they came from before is lost.
   * @param delay virtual ms from now
   */
  rebind(host: SimulatedHost, what: 'port' | 'address' = 'port', delay = 0): void {
    const rebind = (): void => {
      for (const address of host.addresses) this.#nat.rebind(address, what);
    };
    if (delay === 0) rebind();
    else this.at(this.#now + delay, Phase.ARRIVAL, rebind);
  }

  /** Puts a datagram on the link as if `source` had sent it now: a replay, a forgery, garbage. */
  inject(source: SocketAddress, destination: SocketAddress, data: Uint8Array): void {
    const from = this.#ownerOf(source.address)?.name ?? 'nobody';
    this.#carry({ time: this.#now, from, to: this.#ownerOf(destination.address)?.name, source, destination, data: data.slice() });
  }

  /**
   * Runs for so many virtual ms, or until the condition holds, or until nothing is left to happen.
   * @param limit virtual ms within which a condition must come true.
   * @returns false when a condition did not come true and nothing is left to happen.
   * @throws what a callback of a host throws; Error when the limit is passed.
   */
  async run(until: number | (() => boolean) = Number.POSITIVE_INFINITY, limit = DEFAULT_LIMIT): Promise<boolean> {
    if (this.#running) throw new LocalError('OPERATION_IN_PROGRESS', 'the simulation is already running');
    this.#running = true;
    try {
      const end = this.#now + (typeof until === 'number' ? until : limit);
      const done = typeof until === 'function' ? until : () => false;
      const result = await this.#runEvents(end, done);
      if (typeof until === 'number' && until !== Number.POSITIVE_INFINITY) this.#now = end;
      else if (result === 'late') throw new Error(`seed ${this.seed}: condition did not come true within ${limit} ms of virtual time`);
      return result === 'done' || typeof until === 'number';
    } finally {
      this.#running = false;
    }
  }

  /** Runs until the promise is settled and gives its value. @throws what it rejects with; Error when it can no longer settle. */
  async settle<T>(promise: PromiseLike<T>, limit = DEFAULT_LIMIT): Promise<T> {
    let settled = false;
    const settle = () => {
      settled = true;
    };
    promise.then(settle, settle);
    const reached = await this.run(() => settled, limit);
    if (!reached) throw new Error(`seed ${this.seed}: nothing is left to happen at ${this.#now} ms and the promise is still pending`);
    return promise;
  }

  /**
   * Moves time to the next instant in which something happens, or to `end` when nothing does before, and runs what happens there. Promises are given no
   * turns: this is for parts that are polled, with no asynchronous application beside them.
   */
  step(end: number): void {
    if (this.#running) throw new LocalError('OPERATION_IN_PROGRESS', 'the simulation is already running');
    this.#now = Math.max(this.#now, Math.min(end, this.#queue.peek()?.time ?? end));
    for (let events = 0; ; ) {
      const event = this.#queue.peek();
      if (event === undefined || event.time > this.#now) return;
      if (++events > MAX_EVENTS_PER_INSTANT) throw new Error(`seed ${this.seed}: time stands still at ${this.#now} ms`);
      this.#queue.pop();
      event.run?.();
    }
  }

  /** Schedules an event; for hosts. */
  at(time: number, phase: Phase, run: () => void): SimulationEvent {
    return this.#queue.push(time, phase, run);
  }

  /** A socket of a host sends; for hosts. */
  transmit(host: SimulatedHost, port: number, data: Uint8Array, path: Path): void {
    if (!host.alive) return;
    const address = host.sourceFor(path.address);
    const to = this.#ownerOf(path.address, host)?.name;
    const destination = { address: path.address, port: path.port };
    const inside = { address: address ?? '', port };
    const source = to === host.name ? inside : this.#nat.outward(inside);
    const packet = { time: this.#now, from: host.name, to, source, destination, data };
    if (address === undefined) this.onTrace?.(packet, 'unreachable', this.#now);
    else this.#intercept(packet);
  }

  /** A host's multicast DNS sends; for hosts. A host hears itself, too. */
  multicast(host: SimulatedHost, source: string, message: DnsMessage, to: MdnsSource | null): void {
    for (const other of this.#hosts.values()) {
      const address = other.mdns.addressNear(source);
      if (!other.alive || address === undefined || (to !== null && to.address !== address)) continue;
      this.direction(host, other).offer(MDNS_SIZE, this.#now, (time) =>
        this.at(time, Phase.ARRIVAL, () => {
          if (other.alive) other.mdns.deliver(address, message, source);
        }),
      );
    }
  }

  /** For hosts: the addresses of the living host of that name. */
  addressesOf(name: string): readonly string[] {
    const host = this.#hosts.get(name);
    return host?.alive === true ? host.addresses : [];
  }

  async #runEvents(end: number, done: () => boolean): Promise<'done' | 'idle' | 'late'> {
    let quiet = false;
    let events = 0;
    for (;;) {
      if (quiet && done()) return 'done';
      const event = this.#queue.peek();
      const moves = event === undefined || event.time > this.#now;
      if (moves && !quiet) {
        await this.#turns(TURNS_BEFORE_TIME);
        await this.#options.hop?.();
        quiet = true;
        continue;
      }
      if (event === undefined) return 'idle';
      if (event.time > end) return 'late';
      if (moves) events = 0;
      else if (++events > MAX_EVENTS_PER_INSTANT) throw new Error(`seed ${this.seed}: time stands still at ${this.#now} ms`);
      this.#now = event.time;
      this.#queue.pop()?.run?.();
      quiet = false;
      await this.#turns(TURNS);
    }
  }

  /** Lets pending promises run, and as long again whenever that scheduled an event. */
  async #turns(count: number): Promise<void> {
    for (let turn = 0, seen = this.#queue.scheduled; turn < count; turn++) {
      await undefined;
      if (seen === this.#queue.scheduled) continue;
      seen = this.#queue.scheduled;
      turn = 0;
    }
  }

  #intercept(packet: SimulatedPacket): void {
    const verdict = this.onPacket?.(packet);
    if (verdict === undefined) this.#carry(packet);
    else if (verdict === 'drop') this.onTrace?.(packet, 'intercepted', this.#now);
    else for (const data of verdict instanceof Uint8Array ? [verdict] : verdict) this.#carry({ ...packet, data: data.slice() });
  }

  #carry(packet: SimulatedPacket): void {
    if (packet.to === undefined) {
      this.onTrace?.(packet, 'unreachable', this.#now);
      return;
    }
    const link = this.direction(packet.from, packet.to);
    const verdict = link.offer(packet.data.length, this.#now, (time, change) => {
      const arriving = change === null ? packet : { ...packet, data: damaged(packet.data, change) };
      this.at(time, Phase.ARRIVAL, () => this.#arrive(arriving));
    });
    this.onTrace?.(packet, verdict, this.#now);
  }

  /** The host is looked up on arrival: it may have been replaced meanwhile. Each arrival is a copy, as the receiver may change it. */
  #arrive(packet: SimulatedPacket): void {
    const { source, data } = packet;
    const host = this.#hosts.get(packet.to!);
    const inside = packet.from === packet.to ? packet.destination : this.#nat.inward(packet.destination);
    const socket = host?.alive === true && inside !== undefined ? host.socketFor(inside.address, inside.port) : undefined;
    this.onTrace?.(packet, socket === undefined ? 'unreachable' : 'delivered', this.#now);
    socket?.deliver(data.slice(), source.address, source.port);
  }

  #ownerOf(address: string, sender?: SimulatedHost): SimulatedHost | undefined {
    if (sender?.sourceFor(address) === address) return sender;
    const owner = this.#owners.get(this.#nat.hostAddress(address));
    return owner?.alive === true ? owner : undefined;
  }

  #log(host: string): Log {
    const log = this.#options.log;
    if (log === undefined) return silentLog;
    const at = (level: LogLevel) => (message: string, fields?: Record<string, unknown>) => log(host, level, message, fields);
    return { error: at('error'), warn: at('warn'), info: at('info'), debug: at('debug'), trace: at('trace') };
  }
}

function nameOf(host: string | SimulatedHost): string {
  return typeof host === 'string' ? host : host.name;
}

/** 10.x.y.1/24 and fd00:0:0:n::1/64, the n-th of each. */
function defaultAddresses(number: number): string[] {
  return [`10.${number >> 8}.${number & 0xff}.1/24`, `fd00:0:0:${number.toString(16)}::1/64`];
}
