/**
 * The WebSockets of a base station: each is a socket of its host with one path (PROTOCOL.md §2.6), and proves only
 * where its peer is.
 *
 * - They have slots of their own: in total, and for one address (IPv4) or /64 (IPv6). Behind a trusted proxy that is
 *   the address which the proxy names.
 * - When all slots are taken, or all of one address, the oldest WebSocket there without a valid credential makes way,
 *   unless it is younger than two seconds: in that time a device or client proves its identity. So neither strangers
 *   with many addresses nor a page in a browser behind the same NAT keep others out.
 * - A WebSocket without a session for 10 s is closed with 1008: from its opening until its first authentic packet, and
 *   after its last session has ended.
 * - Their total memory is bounded (`runtime/websocket/shared-queue.ts`), and in each the oldest packet of a route
 *   gives way.
 *
 * TCP, TLS and the upgrade are not here (`server/websocket/`, or the simulator).
 */

import type { Cancel, Clock, MessagePipe, WebSocketOptions } from '../../platform/environment.ts';
import { networkOf, type SocketAddress } from '../../protocol/address.ts';
import { RemoteError, type SvcError } from '../../protocol/errors/index.ts';
import type { Host } from '../../runtime/host/index.ts';
import type { LogTally } from '../../runtime/log-tally.ts';
import type { Session } from '../../runtime/session/index.ts';
import { SharedQueue, WebSocketSocket } from '../../runtime/websocket/index.ts';
import { ConcurrencyLimit } from '../concurrency-limit.ts';
import type { StationSettings } from './settings.ts';

export interface WebSocketsOptions {
  readonly clock: Clock;
  readonly tally: LogTally;
  readonly host: Pick<Host, 'datagrams' | 'sessions' | 'sockets'>;
  readonly settings: Pick<StationSettings, 'webSockets' | 'webSocketsPerAddress' | 'webSocketTimeout'>;
  /** Returns whether a session has shown a valid credential. */
  readonly isProved: (session: Session) => boolean;
}

/** Callbacks for the owner of a pipe: `closed` with BAD_RESPONSE if it was closed for data that the peer has sent. */
export type PipeHandlers = Pick<WebSocketOptions, 'receive' | 'closed'>;

/** State of an open WebSocket. */
interface OpenWebSocket {
  readonly socket: WebSocketSocket;
  /** The network whose slots it takes. */
  readonly network: string;
  readonly since: number;
  /** Time since which no session has used it, ms. */
  unusedSince: number;
  /** Ends the TCP connection, and releases the slot at once. */
  readonly end: () => void;
}

/** ms between two checks which of them sessions use. */
const SWEEP = 1_000;
/** ms that each has to show a valid credential before it may have to make way. */
const MIN_TIME = 2_000;
/** RFC 6455 §7.4.1. */
const GOING_AWAY = 1001;
const POLICY_VIOLATION = 1008;

export class WebSockets {
  readonly #options: WebSocketsOptions;
  readonly #slots: ConcurrencyLimit;
  readonly #queue = new SharedQueue();
  /** Open WebSockets by socket index. */
  readonly #open = new Map<number, OpenWebSocket>();
  /** WebSockets that make way when all slots are taken, the oldest first; and those of each network. */
  readonly #strangers = new Set<OpenWebSocket>();
  readonly #strangersOf = new Map<string, Set<OpenWebSocket>>();
  #cancelSweep: Cancel | null = null;
  #isStopped = false;
  #refused = 0;
  #unused = 0;
  #malformed = 0;

  constructor(options: WebSocketsOptions) {
    const { webSockets, webSocketsPerAddress } = options.settings;
    this.#options = options;
    this.#slots = new ConcurrencyLimit({ perKey: webSocketsPerAddress, total: webSockets });
  }

  /**
   * Reserves a slot for one more peer at the address, before the upgrade.
   * @returns a function that releases it, safe to call twice; null: there is none
   */
  reserve(address: string): (() => void) | null {
    const release = this.#isStopped ? null : this.#acquire(networkOf(address));
    if (release === null) this.refused(address, 'too many WebSockets');
    return release;
  }

  #acquire(network: string): (() => void) | null {
    const { webSockets, webSocketsPerAddress } = this.#options.settings;
    if (this.#slots.inUse(network) >= webSocketsPerAddress) this.#makeWay(this.#strangersOf.get(network));
    else if (this.#slots.size >= webSockets) this.#makeWay(this.#strangers);
    return this.#slots.acquire(network);
  }

  #makeWay([oldest]: Iterable<OpenWebSocket> = []): void {
    if (oldest !== undefined) this.#close(oldest, 'no room for a WebSocket without a credential');
  }

  /** Notes that a session has shown a valid credential: its WebSockets no longer make way. */
  proved({ paths }: Session): void {
    for (const { kind, socket } of paths.all) if (kind === 'websocket') this.#removeStranger(this.#open.get(socket));
  }

  #addStranger(opened: OpenWebSocket): void {
    this.#strangers.add(opened);
    const others = this.#strangersOf.get(opened.network);
    if (others === undefined) this.#strangersOf.set(opened.network, new Set([opened]));
    else others.add(opened);
  }

  #removeStranger(opened: OpenWebSocket | undefined): void {
    if (opened === undefined || !this.#strangers.delete(opened)) return;
    const others = this.#strangersOf.get(opened.network)!;
    others.delete(opened);
    if (others.size === 0) this.#strangersOf.delete(opened.network);
  }

  /** Counts and logs a refused upgrade. */
  refused(address: string, reason: string): void {
    this.#refused++;
    this.#options.tally.count('WebSocket refused', { address, reason });
  }

  /**
   * Accepts an open pipe.
   * @param end ends its TCP connection, and releases the slot at once
   * @param peer default that of the pipe
   */
  accept(pipe: MessagePipe, end: () => void, peer: SocketAddress = pipe): PipeHandlers {
    const { clock, host } = this.#options;
    const socket: WebSocketSocket = new WebSocketSocket(pipe, {
      clock,
      receive: host.datagrams.receive,
      closed: (error) => this.#ended(socket.index, error),
      peer,
      queue: this.#queue,
      closeCode: GOING_AWAY,
    });
    if (this.#isStopped) {
      socket.close();
      return { receive: () => {}, closed: () => {} };
    }
    host.sockets.adopt(socket);
    const now = clock.now();
    this.#open.set(socket.index, { socket, network: networkOf(peer.address), since: now, unusedSince: now, end });
    this.#cancelSweep ??= clock.schedule(SWEEP, this.#sweep);
    return { receive: (message) => socket.deliver(message), closed: (error) => socket.ended(error) };
  }

  /**
   * Counters: open WebSockets; refused upgrades; those closed because no session used them, or to make way; dropped
   * packets; messages without a byte, and WebSockets closed for data that their peer sent.
   */
  stats(): Readonly<Record<string, number>> {
    return {
      webSockets: this.#open.size,
      webSocketsRefused: this.#refused,
      webSocketsUnused: this.#unused,
      webSocketBytes: this.#queue.bytes,
      webSocketDropped: this.#queue.dropped,
      webSocketMalformed: [...this.#open.values()].reduce((sum, { socket }) => sum + socket.malformed, this.#malformed),
    };
  }

  /** Stops accepting. The host closes those that are open. */
  stop(): void {
    this.#isStopped = true;
    this.#cancelSweep?.();
  }

  /** Closes unused WebSockets. A session over a WebSocket shows that its packets were authentic. */
  readonly #sweep = (): void => {
    const { clock, settings } = this.#options;
    const now = clock.now();
    const { used, proved } = this.#uses();
    for (const [index, opened] of this.#open) {
      if (used.has(index)) opened.unusedSince = now;
      if (proved.has(index)) this.#removeStranger(opened);
      else if (now - opened.unusedSince >= settings.webSocketTimeout) this.#close(opened, 'no session over the WebSocket');
      else if (now - opened.since >= MIN_TIME) this.#addStranger(opened);
    }
    this.#cancelSweep = this.#open.size > 0 ? clock.schedule(SWEEP, this.#sweep) : null;
  };

  /** Returns the sockets that sessions use, and those of sessions that have shown a valid credential. */
  #uses(): { readonly used: ReadonlySet<number>; readonly proved: ReadonlySet<number> } {
    const { host, isProved } = this.#options;
    const [used, proved] = [new Set<number>(), new Set<number>()];
    for (const session of host.sessions)
      for (const { kind, socket } of session.connection.allPaths) {
        if (kind !== 'websocket') continue;
        used.add(socket);
        if (isProved(session)) proved.add(socket);
      }
    return { used, proved };
  }

  /** Closes a WebSocket without waiting for the peer, which may leave the closing handshake unfinished. */
  #close({ socket, end }: OpenWebSocket, reason: string): void {
    this.#unused++;
    socket.close(POLICY_VIOLATION);
    this.#ended(socket.index, new RemoteError('CLOSED', reason));
    end();
  }

  #ended(index: number, error: SvcError): void {
    const opened = this.#open.get(index);
    if (opened === undefined) return;
    const { socket } = opened;
    this.#malformed += socket.malformed;
    if (error.code === 'BAD_RESPONSE') {
      this.#malformed++;
      this.#options.tally.count('WebSocket closed', { address: socket.path.address, reason: error.message });
    }
    this.#open.delete(index);
    this.#removeStranger(opened);
    this.#options.host.sockets.drop(socket, error);
  }
}
