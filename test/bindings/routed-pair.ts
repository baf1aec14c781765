/**
 * Two connections with addresses: the smallest version of what a driver does with path indices. Every datagram has a
 * source and a destination address; the network between may drop or change it by both. Nothing sleeps, and ids are
 * exchanged as an endpoint would.
 */
import { Core, type CoreConnection, type CoreConnectionOptions, EventKind, UNKNOWN_PATH, UNKNOWN_PORT } from '../../bindings/index.ts';
import { PARAMETERS } from './pair.ts';

export interface Carried {
  from: string;
  to: string;
  bytes: Uint8Array;
}

/** Delay in one direction, by the addresses of both ends: `host:port`. */
export interface Way {
  ours: string;
  theirs: string;
}

export class RoutedEnd {
  readonly connection: CoreConnection;
  readonly reported: { kind: number; path: number; value: number }[] = [];
  /** By path index of the core. */
  readonly ways: (Way | undefined)[];
  active = 0;
  readonly sent: Carried[] = [];
  readonly received: Uint8Array[] = [];
  #ids: number;

  constructor(connection: CoreConnection, first: Way, ids: number) {
    this.connection = connection;
    this.ways = [first];
    this.#ids = ids;
  }

  /** Names of the events, as `changed 1` or `failed 2`. */
  names(): string[] {
    const names: Record<number, string> = {
      [EventKind.PATH_CHANGED]: 'changed',
      [EventKind.PATH_VALIDATED]: 'validated',
      [EventKind.PATH_FAILED]: 'failed',
    };
    return this.reported.filter(({ kind }) => kind in names).map(({ kind, path, value }) => `${names[kind]} ${path} ${value}`);
  }

  indexOf(way: Way): number {
    const index = this.ways.findIndex((other) => other?.ours === way.ours && other.theirs === way.theirs);
    if (index >= 0) return index;
    const active = this.ways[this.active]!;
    return host(active.theirs) === host(way.theirs) && active.ours === way.ours ? UNKNOWN_PORT : UNKNOWN_PATH;
  }

  /** Adds a path as its driver would. */
  add(way: Way, now: number, options: { keepInterval?: number; route?: Uint8Array } = {}): number {
    this.connection.paths.enableIds();
    const index = this.connection.paths.add(options, now);
    if (index >= 0) this.ways[index] = way;
    return index;
  }

  receive(bytes: Uint8Array, way: Way, now: number): boolean {
    const index = this.indexOf(way);
    if (!this.connection.receive(bytes, 0, now, index)) return false;
    if (this.connection.receivedPath < UNKNOWN_PATH) this.ways[this.connection.receivedPath] = way;
    return true;
  }

  drain(): void {
    const { connection } = this;
    for (let kind = connection.nextEvent(); kind !== EventKind.NONE; kind = connection.nextEvent()) {
      const [path, value] = [connection.eventStream, connection.eventValue];
      this.reported.push({ kind, path, value });
      if (kind === EventKind.PATH_CHANGED) this.active = path;
      if (kind === EventKind.PATH_FAILED && value === 1) this.ways[path] = undefined;
      if (kind === EventKind.MESSAGE) this.received.push(connection.messages.read(path));
      if (kind === EventKind.IDS) this.#supply();
    }
  }

  #supply(): void {
    this.connection.paths.enableIds();
    for (let room = this.connection.paths.ids()!.room; room > 0; room--) {
      this.#ids++;
      this.connection.paths.issueId(new Uint8Array(8).fill(this.#ids), new Uint8Array(16).fill(this.#ids));
    }
  }
}

export interface RoutedOptions {
  core?: Core;
  delay?: number;
  initiator?: Partial<CoreConnectionOptions>;
}

/** Initial addresses of the two. */
export const CLIENT = 'client:1';
export const DEVICE = 'device:1';

export class RoutedPair {
  now = 1000;
  readonly core: Core;
  readonly initiator: RoutedEnd;
  readonly responder: RoutedEnd;
  /** Changes the addresses or bytes of a datagram, drops it (null), or passes it. */
  network: (datagram: Carried, end: RoutedEnd) => Carried | null = (datagram) => datagram;
  delay: number;
  #flying: { at: number; datagram: Carried; to: RoutedEnd }[] = [];

  constructor({ core = Core.create(), delay = 20, initiator = {} }: RoutedOptions = {}) {
    this.core = core;
    this.delay = delay;
    const common = { local: PARAMETERS, remote: PARAMETERS, skipSeed: 77, challengeSeed: new Uint8Array(32).fill(7), now: this.now };
    const fill = (value: number, length = 32) => new Uint8Array(length).fill(value);
    const left = { sendKey: fill(1), receiveKey: fill(2), sendMaskKey: fill(3), receiveMaskKey: fill(4) };
    const right = { sendKey: fill(2), receiveKey: fill(1), sendMaskKey: fill(4), receiveMaskKey: fill(3) };
    const [near, far] = [
      core.open({ initiator: true, ...left, localId: fill(1, 8), remoteId: fill(2, 8), ...common, ...initiator }),
      core.open({ initiator: false, ...right, localId: fill(2, 8), remoteId: fill(1, 8), ...common }),
    ];
    this.initiator = new RoutedEnd(near, { ours: CLIENT, theirs: DEVICE }, 0x10);
    this.responder = new RoutedEnd(far, { ours: DEVICE, theirs: CLIENT }, 0x20);
  }

  /** A pair that has run for `ms`. */
  static after(ms: number): RoutedPair {
    const pair = new RoutedPair();
    pair.run(ms);
    return pair;
  }

  /** Puts a datagram on the wire towards an end. */
  inject(datagram: Carried, to: RoutedEnd): boolean {
    return to.receive(datagram.bytes, { ours: datagram.to, theirs: datagram.from }, this.now);
  }

  run(limit: number, done: () => boolean = () => false): boolean {
    const until = this.now + limit;
    for (let standing = 0; ; ) {
      this.#settle();
      if (done()) return true;
      const timers = [this.initiator, this.responder].map((end) => end.connection.nextTimeout());
      const next = Math.max(this.now, Math.min(...timers, ...this.#flying.map(({ at }) => at)));
      if (next > until) {
        this.now = until;
        return done();
      }
      standing = next > this.now ? 0 : standing + 1;
      if (standing > 1000) throw new Error(`time stands still at ${next} ms`);
      this.now = next;
      const due = this.#flying.filter(({ at }) => at <= next);
      this.#flying = this.#flying.filter(({ at }) => at > next);
      for (const { datagram, to } of due) this.inject(datagram, to);
      for (const end of [this.initiator, this.responder]) if (end.connection.nextTimeout() <= next) end.connection.handleTimeout(next);
    }
  }

  #settle(): void {
    for (let busy = true, rounds = 0; busy; rounds++) {
      if (rounds > 1000) throw new Error('the two ends never come to rest');
      busy = [this.initiator, this.responder].map((end) => this.#pump(end)).some((sent) => sent);
    }
  }

  #pump(end: RoutedEnd): boolean {
    end.drain();
    const count = end.connection.transmit(this.now);
    const way = end.ways[end.connection.transmitPath];
    for (let i = 0; i < count; i++) {
      const [at, length] = [this.core.packetOffsets[i]!, this.core.packetLengths[i]!];
      const datagram = { from: way!.ours, to: way!.theirs, bytes: this.core.buffer.slice(at, at + length) };
      this.core.release(at);
      end.sent.push(datagram);
      const carried = this.network(datagram, end);
      const to = end === this.initiator ? this.responder : this.initiator;
      if (carried !== null) this.#flying.push({ at: this.now + this.delay, datagram: carried, to });
    }
    return count > 0;
  }
}

/** Packets of the client appear to come from elsewhere, and nothing reaches it under its old address. */
export function rebound(pair: RoutedPair, outside: string): void {
  pair.network = (datagram, end) => {
    if (end === pair.initiator) return { ...datagram, from: outside };
    return datagram.to === outside ? { ...datagram, to: CLIENT } : null;
  };
}

function host(address: string): string {
  return address.slice(0, address.lastIndexOf(':'));
}
