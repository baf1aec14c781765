/**
 * The relay's IO: packets of routes go from socket to socket, in the buffer in which they arrived.
 *
 * 1. `intercept` sees each datagram before the engine and takes those that begin with Route.
 * 2. The table swaps the route id in place and returns the end to send to; the datagram leaves at once.
 * 3. If the socket is full, the datagram waits in a small queue of that end, which drops its oldest and is retried
 *    every millisecond.
 * 4. A dead id is answered with a Reset; when a channel ends, the other ends of its routes are sent one unsolicited.
 * 5. Routes that were idle for too long are forgotten, and so are those that their ends release.
 */

import type { Cancel, Clock } from '../../platform/environment.ts';
import type { CryptoProvider } from '../../protocol/crypto-provider.ts';
import { encodeReset, PacketType } from '../../protocol/packet/index.ts';
import type { Path } from '../../protocol/path.ts';
import { DropOldestQueue, type RouteChannel, type RouteEnd, type RouteLimits, RouteTable } from '../../protocol/relay/index.ts';
import { Alarm } from '../../runtime/alarm.ts';

export interface RelayOptions {
  clock: Clock;
  crypto: CryptoProvider;
  resetSecret: Uint8Array;
  limits: Partial<Omit<RouteLimits, 'idleTimeout'>>;
  /** ms without a packet after which a route is forgotten. */
  routeIdleTimeout: number;
  /** Sends one datagram, which is not changed afterwards; returns false when the socket is full. */
  send: (datagram: Uint8Array, path: Path) => boolean;
}

/** Packets that wait for one end, and for all ends together. */
export const QUEUE_PER_END = 64;
export const QUEUE_TOTAL = 4096;
export const RETRY_DELAY = 1;

/** The relay of one base station. */
export class Relay {
  readonly table: RouteTable;
  readonly #options: RelayOptions;
  readonly #alarm: Alarm;
  readonly #queues = new Map<RouteEnd, DropOldestQueue<Uint8Array>>();
  #queued = 0;
  #dropped = 0;
  #cancelRetry: Cancel | null = null;
  #stopped = false;

  constructor(options: RelayOptions) {
    const { crypto, resetSecret, limits, routeIdleTimeout, clock } = options;
    this.#options = options;
    this.table = new RouteTable(crypto, resetSecret, { ...limits, idleTimeout: routeIdleTimeout }, clock.now());
    this.#alarm = new Alarm(clock, () => {
      this.table.handleTimeout(clock.now());
      this.#forgetEnded();
      this.#arm();
    });
  }

  /** Returns true when the datagram was a route's and has been handled. */
  readonly intercept = (datagram: Uint8Array, path: Path): boolean => {
    if (datagram[0] !== PacketType.ROUTE) return false;
    const now = this.#options.clock.now();
    const end = this.table.forward(datagram, path, now);
    // The buffer is lent, and the datagram may leave later.
    if (end !== null) this.#send(new Uint8Array(datagram), end);
    else this.#answer(datagram, path, now);
    return true;
  };

  /** @returns the end of `channel`; null when there are too many routes */
  open(channel: RouteChannel, otherChannel: RouteChannel): RouteEnd | null {
    const end = this.table.open(channel, otherChannel, this.#options.clock.now());
    this.#arm();
    return end;
  }

  /** Ends a route that was never established, without a Reset. */
  close(end: RouteEnd): void {
    this.table.close(end);
    this.#forget(end);
  }

  /** Releases the route with this id, which an end of `channel` no longer uses. */
  release(channel: RouteChannel, id: Uint8Array): void {
    this.table.release(channel, id, this.#options.clock.now());
    this.#forgetEnded();
    this.#arm();
  }

  /** Ends all routes of a channel and sends a Reset to the other ends. */
  closeChannel(channel: RouteChannel): void {
    for (const end of this.table.closeChannel(channel)) this.#sendReset(end);
  }

  /** Stops the timers for good. */
  stop(): void {
    this.#stopped = true;
    this.#cancelRetry?.();
    this.#alarm.clear();
  }

  stats(): Readonly<Record<string, number>> {
    return { routes: this.table.size, queued: this.#queued, queueDropped: this.#dropped, ...this.table.counters };
  }

  #send(datagram: Uint8Array, end: RouteEnd): void {
    if (this.#queued === 0 && this.#options.send(datagram, end.channel.paths.validated)) return;
    const waiting = this.#queues.get(end);
    if (waiting === undefined && this.#options.send(datagram, end.channel.paths.validated)) return;
    this.#enqueue(datagram, end, waiting ?? new DropOldestQueue<Uint8Array>(QUEUE_PER_END));
  }

  #enqueue(datagram: Uint8Array, end: RouteEnd, queue: DropOldestQueue<Uint8Array>): void {
    if (this.#queued >= QUEUE_TOTAL) {
      this.#dropped++;
      return;
    }
    this.#queues.set(end, queue);
    if (queue.push(datagram) === undefined) this.#queued++;
    else this.#dropped++;
    this.#cancelRetry ??= this.#scheduleRetry();
  }

  #scheduleRetry(): Cancel | null {
    return this.#stopped ? null : this.#options.clock.schedule(RETRY_DELAY, this.#retry);
  }

  readonly #retry = (): void => {
    this.#cancelRetry = null;
    // Full sockets; packets for another one may leave.
    const full = new Set<number>();
    for (const [end, queue] of this.#queues) {
      const { socket } = end.channel.paths.validated;
      if (!full.has(socket) && !this.#flush(end, queue)) full.add(socket);
    }
    if (this.#queued > 0) this.#cancelRetry = this.#scheduleRetry();
  };

  /** @returns false when the socket is full again */
  #flush(end: RouteEnd, queue: DropOldestQueue<Uint8Array>): boolean {
    for (let datagram = queue.peek(); datagram !== undefined; datagram = queue.peek()) {
      if (!this.#options.send(datagram, end.channel.paths.validated)) return false;
      queue.shift();
      this.#queued--;
    }
    this.#queues.delete(end);
    return true;
  }

  #answer(datagram: Uint8Array, path: Path, now: number): void {
    const answer = this.table.answer(datagram, now);
    if (answer !== null) this.#options.send(answer, path);
  }

  #sendReset(end: RouteEnd): void {
    this.#forget(end);
    this.#options.send(encodeReset({ id: end.id, token: end.resetToken }), end.channel.paths.validated);
  }

  #forget(end: RouteEnd): void {
    for (const each of [end, end.other]) {
      this.#queued -= this.#queues.get(each)?.length ?? 0;
      this.#queues.delete(each);
    }
  }

  #forgetEnded(): void {
    for (let event = this.table.nextEvent(); event !== null; event = this.table.nextEvent()) this.#forget(event.end);
  }

  #arm(): void {
    if (!this.#stopped) this.#alarm.set(this.table.nextTimeout());
  }
}
