/**
 * A network in virtual time: hosts, links between them, and a clock that jumps from event to event. The real code of
 * all layers above runs in it, hours of keep-alive in milliseconds, and the same seed gives the same run, datagram for
 * datagram.
 *
 * 1. Datagrams, timers and deferred calls are events in one queue, ordered by time; within one instant arrivals and
 *    timers come before deferred calls, and otherwise the order of scheduling decides.
 * 2. After each event, and more thoroughly before time advances, pending promises get turns (`TURNS`): application code
 *    is asynchronous, and its reaction to an event belongs to the same instant. JavaScript cannot report whether
 *    promises are pending, so a chain of more than `TURNS_BEFORE_TIME` awaits that schedules nothing continues at a
 *    later instant; that, too, is reproducible.
 * 3. Only promises are awaited. Code that awaits real IO, such as a database, needs `hop`.
 *
 * It needs no timers and no Node, so it also runs in a bare JavaScript context. Of TCP it models only WebSockets
 * (tcp.ts). It does not model ICMP: a datagram to an unused address is lost.
 */

import { type Log, type LogLevel, silentLog } from '../platform/environment.ts';
import { nobleCrypto } from '../platform/noble-crypto.ts';
import type { SocketAddress } from '../protocol/control/index.ts';
import { LocalError } from '../protocol/errors/index.ts';
import { Datagrams } from './datagrams.ts';
import type { SimulatedDocument } from './documents.ts';
import { EventQueue, Phase, type SimulationEvent } from './event-queue.ts';
import { SimulatedHost, type World } from './host.ts';
import { Link, type LinkOptions } from './link.ts';
import { NatBox, type NatOptions } from './nat-box.ts';
import type { HostOptions, MoveOptions, PacketFate, SimulatedPacket, SimulationOptions } from './options.ts';
import type { SimulatedPipe } from './pipes.ts';
import { checkedPlace } from './place.ts';
import { Random } from './random.ts';
import { Tcp } from './tcp.ts';
import { Topology } from './topology.ts';

const TURNS = 4;
const TURNS_BEFORE_TIME = 64;
/** More events than this in one instant mean an endless loop. */
const MAX_EVENTS_PER_INSTANT = 1_000_000;
/** Default limit of virtual ms for a run until a condition: an hour. */
const DEFAULT_LIMIT = 3_600_000;
/** One-way delay within a host, ms. */
const LOOPBACK_DELAY = 0.02;
const NEW_YEAR_2026 = 1_767_225_600_000;
/** A turn awaits this promise: each `await undefined` would make a new one. */
const SETTLED = Promise.resolve();

/** A network in virtual time with its hosts. */
export class Simulation implements World {
  readonly seed: string;
  /** Answers over https, by URL: a text, an error, or null for silence. No server listens at other URLs. */
  readonly documents = new Map<string, SimulatedDocument>();
  /**
   * Sees each datagram as it is sent and may intervene: returns `'drop'`, or bytes to send instead, one datagram or
   * several. To replay, keep `packet.data` and {@link inject} it later.
   */
  onPacket: ((packet: SimulatedPacket) => undefined | 'drop' | Uint8Array | readonly Uint8Array[]) | undefined;
  /** Receives the fate of each datagram: once or twice per datagram, the link's verdict and the arrival. */
  onTrace: ((packet: SimulatedPacket, fate: PacketFate, time: number) => void) | undefined;

  /** Receives each WebSocket when it begins to open, early enough to stall it. */
  onPipe: ((pipe: SimulatedPipe) => void) | undefined;

  /** For hosts: their datagrams, and their WebSockets. */
  readonly datagrams: Datagrams;
  readonly tcp: Tcp;

  readonly #options: SimulationOptions;
  readonly #random: Random;
  readonly #queue = new EventQueue();
  readonly #hosts = new Map<string, SimulatedHost>();
  readonly #boxes = new Set<string>();
  readonly #topology = new Topology();
  readonly #links = new Map<string, Link>();
  readonly #blocks = new Set<{ name: string; protocol: 'udp' | 'tcp' }>();
  #now = 0;
  #hostsMade = 0;
  #running = false;

  constructor(options: SimulationOptions = {}) {
    this.#options = options;
    this.seed = String(options.seed ?? 1);
    this.#random = new Random(this.seed);
    this.tcp = new Tcp(this, this.#topology);
    this.datagrams = new Datagrams(this, this.#topology, this.#hosts);
  }

  /** Virtual ms since the start. */
  get now(): number {
    return this.#now;
  }

  get wallTime(): number {
    return (this.#options.wallTime ?? NEW_YEAR_2026) + this.#now;
  }

  /**
   * Adds a host. Its name resolves to its addresses, in its realm and behind the boxes of that realm. A name or address
   * of a stopped host may be used again: that is a restart, at the same position unless other addresses, another box or
   * other hops are given.
   */
  host(name: string, options: HostOptions = {}): SimulatedHost {
    const earlier = this.#hosts.get(name);
    if (earlier?.alive === true || this.#boxes.has(name))
      throw new LocalError('INVALID_ARGUMENT', `the simulation already has a host or box ${name}`);
    const number = ++this.#hostsMade;
    const addresses = options.addresses ?? earlier?.networks ?? defaultAddresses(number);
    const random = this.#random.fork(`host ${name} ${number}`);
    const { crypto = nobleCrypto } = this.#options;
    const own = crypto((length) => random.bytes(length));
    const host = new SimulatedHost(this, name, addresses, own, this.#log(name), options);
    const isBack = options.addresses === undefined && options.behind === undefined && earlier !== undefined;
    const place = isBack ? this.#topology.placeOf(earlier) : { realm: this.#topology.realmBehind(options.behind), hops: 0 };
    this.#topology.addHost(host, { realm: place.realm, hops: options.hops ?? place.hops });
    this.#hosts.set(name, host);
    return host;
  }

  /**
   * Gives a running host other addresses, none if its link is down, and perhaps another position. Datagrams to its old
   * addresses are lost from now on, as are those of sockets bound to one, and WebSockets over them are silent until it
   * has the address again at the same position. The links to other hosts, by name, stay.
   */
  move(host: SimulatedHost, { addresses, kinds = [], behind, hops }: MoveOptions): void {
    if (!host.alive) throw new LocalError('INVALID_STATE', `${host.name} was stopped`);
    const earlier = this.#topology.placeOf(host);
    const realm = behind === undefined ? earlier.realm : this.#topology.realmBehind(behind ?? undefined);
    const place = checkedPlace(addresses);
    this.#topology.moveHost(host, { realm, hops: hops ?? earlier.hops }, place.addresses, () => host.place(place, kinds));
  }

  /** Adds a NAT box, with a realm of its own behind it for hosts and further boxes. */
  nat(name: string, options: NatOptions): NatBox {
    if (this.#hosts.has(name) || this.#boxes.has(name))
      throw new LocalError('INVALID_ARGUMENT', `the simulation already has a host or box ${name}`);
    const box = new NatBox(name, options, () => this.#now, this.#random.fork(`nat ${name}`));
    this.#topology.addBox(box, options.behind);
    this.#boxes.add(name);
    return box;
  }

  /**
   * Sets the link between two hosts in both directions, or with `back` each separately. Replaces earlier options;
   * statistics stay.
   */
  link(from: string | SimulatedHost, to: string | SimulatedHost, options: LinkOptions, back: LinkOptions = options): void {
    this.direction(from, to).options = new Link(options, this.#random).options;
    this.direction(to, from).options = new Link(back, this.#random).options;
  }

  /** One direction of a link: its statistics and current options. */
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
   * Makes a NAT directly in front of a host, between it and any {@link NatBox}, give its sockets new outside ports,
   * with `'address'` also a new address: other hosts see its datagrams come from elsewhere, and datagrams to the
   * earlier address and port are lost. A box forwards no IPv6 from such a new address: it is in none of its prefixes.
   * @param delay virtual ms from now
   */
  rebind(host: SimulatedHost, what: 'port' | 'address' = 'port', delay = 0): void {
    const { realm } = this.#topology.placeOf(host);
    const rebind = (): void => {
      for (const address of host.addresses) realm.rebound.rebind(address, what);
    };
    if (delay === 0) rebind();
    else this.at(this.#now + delay, Phase.ARRIVAL, rebind);
  }

  /** The WebSockets that are open or opening, the oldest first: of one host, or all. */
  pipes(host?: string | SimulatedHost): SimulatedPipe[] {
    return this.tcp.pipes(host === undefined ? undefined : nameOf(host));
  }

  /**
   * Makes a firewall in front of a host drop all UDP, multicast DNS included, or all TCP, in both directions and
   * silently. It stays when the host restarts.
   * @returns a function that removes it
   */
  block(host: string | SimulatedHost, protocol: 'udp' | 'tcp'): () => void {
    const block = { name: nameOf(host), protocol };
    this.#blocks.add(block);
    return () => void this.#blocks.delete(block);
  }

  /**
   * Sends a datagram as if `source` had sent it now: a replay, a forgery, garbage.
   * @param within the box in whose realm it begins. Default none: it begins in the core
   */
  inject(source: SocketAddress, destination: SocketAddress, data: Uint8Array, within?: NatBox): void {
    this.datagrams.inject(source, destination, data, within);
  }

  /**
   * Runs for `until` virtual ms, or until the condition holds, or until no event is left.
   * @param limit virtual ms within which a condition must become true.
   * @returns false when a condition did not become true and no event is left.
   * @throws what a callback of a host throws; Error when the limit is exceeded.
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

  /**
   * Runs until the promise settles and returns its value. @throws its rejection; Error when it can no longer settle.
   */
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
   * Advances time to the next event, or to `end` if none comes earlier, and runs the events of that instant. Promises
   * get no turns: this is for polled parts, without asynchronous application code beside them.
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

  /** For hosts: the addresses of the living host of that name. */
  addressesOf(name: string): readonly string[] {
    const host = this.#hosts.get(name);
    return host?.alive === true ? host.addresses : [];
  }

  /**
   * For hosts: the addresses of the living host of that name, where usable from there; behind a NAT64 also translated
   * ones.
   */
  resolve(asking: SimulatedHost, name: string): readonly string[] {
    const host = this.#hosts.get(name);
    const addresses = host?.alive === true && this.#topology.sees(asking, host) ? host.addresses : [];
    return this.#topology.resolved(asking, name, addresses);
  }

  /** For hosts: addresses of the routers in front of a host. */
  gatewaysOf(host: SimulatedHost): readonly string[] {
    return this.#topology.gatewaysOf(host);
  }

  /** For TCP. */
  opening(pipe: SimulatedPipe): void {
    this.onPipe?.(pipe);
  }

  /** For TCP: whether a firewall in front of a host blocks it. */
  isBlocked(host: SimulatedHost, protocol: 'udp' | 'tcp'): boolean {
    return this.#blocks.size > 0 && [...this.#blocks].some((block) => block.name === host.name && block.protocol === protocol);
  }

  /**
   * Pending promises get `TURNS` turns, the same again whenever one of them scheduled an event, and one turn more. The
   * loops are inlined here because an awaited function would make a promise for each event.
   */
  async #runEvents(end: number, done: () => boolean): Promise<'done' | 'idle' | 'late'> {
    const queue = this.#queue;
    const { hop } = this.#options;
    let quiet = false;
    let events = 0;
    for (;;) {
      if (quiet && done()) return 'done';
      const event = queue.peek();
      const moves = event === undefined || event.time > this.#now;
      if (moves && !quiet) {
        for (let turn = 0, seen = queue.scheduled; turn < TURNS_BEFORE_TIME; turn++) {
          await SETTLED;
          if (seen === queue.scheduled) continue;
          seen = queue.scheduled;
          turn = 0;
        }
        await SETTLED;
        await (hop === undefined ? SETTLED : hop());
        quiet = true;
        continue;
      }
      if (event === undefined) return 'idle';
      if (event.time > end) return 'late';
      if (moves) events = 0;
      else if (++events > MAX_EVENTS_PER_INSTANT) throw new Error(`seed ${this.seed}: time stands still at ${this.#now} ms`);
      this.#now = event.time;
      queue.pop()?.run?.();
      quiet = false;
      for (let turn = 0, seen = queue.scheduled; turn < TURNS; turn++) {
        await SETTLED;
        if (seen === queue.scheduled) continue;
        seen = queue.scheduled;
        turn = 0;
      }
      await SETTLED;
    }
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
