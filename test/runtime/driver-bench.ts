/** The bench of the driver's tests: a small engine, and a clock and sockets that the test steps. */

import { type BindOptions, type BoundSocket, type Clock, silentLog } from '../../platform/environment.ts';
import { UdpPath } from '../../platform/udp-path.ts';
import type { Path } from '../../protocol/path.ts';
import { Driver, type DriverOptions } from '../../runtime/driver.ts';
import type { Engine, Packets } from '../../runtime/engine.ts';

/** Packets that the engine can have out at a time. */
export const SLOTS = 64;
const BATCH = 32;

/**
 * An engine that sends requested packets in batches of at most 32, out of 64 slots, and where the socket has capacity.
 */
export class FakeEngine implements Engine<string> {
  readonly slots = SLOTS;
  timeout = Number.POSITIVE_INFINITY;
  events: string[] = [];
  calls: string[] = [];
  throwIn = '';
  path: Path = new UdpPath(0, '192.0.2.1', 1000, null);
  released: number[] = [];
  /** Creates packets without regard to capacity. */
  heedless = false;
  /** Number of packets to be sent on each path. */
  readonly #orders: { path: Path; count: number }[] = [];
  readonly #free = Array.from({ length: SLOTS }, (_, i) => i * 100);
  readonly #packets = {
    path: this.path,
    count: 0,
    buffer: new Uint8Array(SLOTS * 100),
    offsets: new Uint32Array(BATCH),
    lengths: new Uint32Array(BATCH),
    release: (offset: number) => {
      this.released.push(offset);
      this.#free.push(offset);
    },
  };

  /** Packets to be sent on `path`. */
  get toSend(): number {
    return this.#order(this.path).count;
  }

  set toSend(count: number) {
    this.order(count, this.path);
  }

  /** Sends this many packets on that path. */
  order(count: number, path: Path): void {
    this.#order(path).count = count;
  }

  #order(path: Path): { path: Path; count: number } {
    const known = this.#orders.find((order) => order.path === path);
    if (known !== undefined) return known;
    const order = { path, count: 0 };
    this.#orders.push(order);
    return order;
  }

  receive(datagram: Uint8Array, _path: Path, now: number): void {
    this.#called('receive', `${datagram[0]} at ${now}`);
  }

  transmit(_now: number, room: (socket: number) => number): Packets | null {
    this.#called('transmit');
    const { path } = this.#orders.find(({ path, count }) => count > 0 && (this.heedless || room(path.socket) > 0)) ?? this;
    const order = this.#order(path);
    const most = this.heedless ? BATCH : room(path.socket);
    const count = Math.min(order.count, BATCH, this.#free.length, most);
    if (count === 0) return null;
    order.count -= count;
    this.#packets.count = count;
    this.#packets.path = path;
    for (let i = 0; i < count; i++) {
      this.#packets.offsets[i] = this.#free.shift()!;
      this.#packets.lengths[i] = 10 + i;
    }
    return this.#packets;
  }

  nextTimeout(): number {
    return this.timeout;
  }

  handleTimeout(now: number): void {
    this.timeout = Number.POSITIVE_INFINITY;
    this.#called('timeout', `${now}`);
  }

  nextEvent(): string | null {
    return this.events.shift() ?? null;
  }

  #called(name: string, detail = ''): void {
    this.calls.push(`${name} ${detail}`.trim());
    if (this.throwIn === name) throw new Error(`bug in ${name}`);
  }
}

/** A clock and a socket that the test steps. */
export class Bench {
  time = 100;
  /** Runs at the end of the turn, before anything else. */
  deferred: (() => void)[] = [];
  soon: (() => void)[] = [];
  timers: { at: number; run: () => void }[] = [];
  /** In the order of the sends; `leave` releases them. */
  inFlight: { offset: number; length: number; path: Path; released: (offset: number) => void }[] = [];
  logged: string[] = [];
  closed: number[] = [];
  bound: BindOptions[] = [];
  engine = new FakeEngine();
  events: string[] = [];

  readonly clock: Clock = {
    now: () => this.time,
    wallTime: () => 0,
    schedule: (delay, run) => {
      const timer = { at: this.time + delay, run };
      this.timers.push(timer);
      return () => {
        this.timers = this.timers.filter((other) => other !== timer);
      };
    },
    defer: (run) => void this.deferred.push(run),
    soon: (run) => void this.soon.push(run),
  };

  /** A bench and its driver, with one socket. */
  static async bound(): Promise<{ bench: Bench; driver: Driver<string> }> {
    const bench = new Bench();
    const driver = bench.driver();
    await driver.bind({ port: 0 });
    return { bench, driver };
  }

  driver(options: Partial<DriverOptions<string>> = {}): Driver<string> {
    const network = {
      bind: async (bind: BindOptions) => this.#socket(bind),
      connect: () => Promise.reject(new Error('no stream connects')),
      resolve: async () => [],
    };
    const log = {
      ...silentLog,
      error: (message: string, fields?: object) => void this.logged.push(`${message} ${JSON.stringify(fields)}`),
    };
    return new Driver({
      environment: { clock: this.clock, network, log },
      engine: this.engine,
      onEvent: (event) => void this.events.push(event),
      ...options,
    });
  }

  /** The rest of a turn of the event loop: `soon` callbacks, then all deferred ones so far. */
  turn(): void {
    this.settle();
    for (const run of this.deferred.splice(0)) run();
    this.settle();
  }

  /** The end of one callback of the event loop. */
  settle(): void {
    while (this.soon.length > 0) for (const run of this.soon.splice(0)) run();
  }

  async turns(): Promise<void> {
    while (this.due > 0) this.turn();
    await undefined;
  }

  get due(): number {
    return this.deferred.length + this.soon.length;
  }

  pass(ms: number): void {
    this.time += ms;
    const due = this.timers.filter((timer) => timer.at <= this.time);
    this.timers = this.timers.filter((timer) => timer.at > this.time);
    for (const { run } of due) run();
  }

  leave(count = this.inFlight.length): void {
    for (const { offset, released } of this.inFlight.splice(0, count)) released(offset);
  }

  #socket(bind: BindOptions): BoundSocket {
    const index = this.bound.push(bind) - 1;
    return {
      index,
      port: 4433 + index,
      path: (address, port) => new UdpPath(index, address, port, null),
      send: (_buffer, offset, length, path, released) => void this.inFlight.push({ offset, length, path, released }),
      close: () => void this.closed.push(index),
    };
  }
}
