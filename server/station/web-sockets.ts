/**
 * The WebSockets of a base station: each is a socket of its host with one path (PROTOCOL.md §2), and proves nothing but where its peer is.
 *
 * - They have places of their own: of all, and of one address (IPv4) or /64 (IPv6). Behind a proxy that is trusted the address is the one it names.
 * - One over which no session runs for 10 s is closed with 1008: from its opening until its first authentic packet, and after its last session has ended.
 * - What they hold together is bounded (`transport/websocket/shared-queue.ts`), and in each the oldest packet of a route gives way.
 *
 * TCP, TLS and the upgrade are not here (`server/websocket/`, or the simulator).
 */
import { networkOf } from '../../protocol/address.ts';
import { RemoteError, type SvcError } from '../../protocol/errors/index.ts';
import type { Cancel, Clock, MessagePipe } from '../../transport/environment.ts';
import type { Host } from '../../transport/host/index.ts';
import type { LogTally } from '../../transport/log-tally.ts';
import { SharedQueue, WebSocketSocket } from '../../transport/websocket/index.ts';
import { ConcurrencyLimit } from '../concurrency-limit.ts';
import type { StationSettings } from './settings.ts';

export interface WebSocketsOptions {
  readonly clock: Clock;
  readonly tally: LogTally;
  readonly host: Pick<Host, 'adopt' | 'drop' | 'receive' | 'sessions'>;
  readonly settings: Pick<StationSettings, 'webSockets' | 'webSocketsPerAddress' | 'webSocketTimeout'>;
}

/** Where the peer of a WebSocket is. */
export interface WebSocketPeer {
  /** Numeric. */
  readonly address: string;
  /** 0 where it is unknown. */
  readonly port: number;
}

/** Who hears a pipe: what its owner calls. */
export interface PipeHandlers {
  readonly receive: (message: Uint8Array) => void;
  readonly closed: (error: SvcError) => void;
}

/** ms between two looks at which of them sessions use. */
const SWEEP = 1_000;
/** RFC 6455 §7.4.1. */
const GOING_AWAY = 1001;
const POLICY_VIOLATION = 1008;

export class WebSockets {
  readonly #options: WebSocketsOptions;
  readonly #places: ConcurrencyLimit;
  readonly #queue = new SharedQueue();
  /** Those that are open, and since when no session runs over each. */
  readonly #unusedSince = new Map<WebSocketSocket, number>();
  #cancelSweep: Cancel | null = null;
  #isStopped = false;
  #refused = 0;
  #unused = 0;
  #malformed = 0;

  constructor(options: WebSocketsOptions) {
    const { webSockets, webSocketsPerAddress } = options.settings;
    this.#options = options;
    this.#places = new ConcurrencyLimit({ perKey: webSocketsPerAddress, total: webSockets });
  }

  /** A place for one more peer there, to be had before the upgrade. @returns what gives it back, harmless to call twice; null: there is none */
  reserve(address: string): (() => void) | null {
    const release = this.#isStopped ? null : this.#places.acquire(networkOf(address));
    if (release === null) this.refused(address, 'too many WebSockets');
    return release;
  }

  /** An upgrade was refused. */
  refused(address: string, reason: string): void {
    this.#refused++;
    this.#options.tally.count('WebSocket refused', { address, reason });
  }

  /** Takes an open pipe. @param peer default what the pipe says */
  accept(pipe: MessagePipe, peer: WebSocketPeer = pipe): PipeHandlers {
    const { clock, host } = this.#options;
    const socket: WebSocketSocket = new WebSocketSocket(pipe, {
      clock,
      receive: host.receive,
      closed: (error) => this.#ended(socket, error),
      peer,
      queue: this.#queue,
      closeCode: GOING_AWAY,
    });
    if (this.#isStopped) {
      socket.close();
      return { receive: () => {}, closed: () => {} };
    }
    host.adopt(socket);
    this.#unusedSince.set(socket, clock.now());
    this.#cancelSweep ??= clock.schedule(SWEEP, this.#sweep);
    return { receive: (message) => socket.deliver(message), closed: (error) => socket.ended(error) };
  }

  /** Open ones; upgrades that were refused; those that were closed because no session used them; packets dropped; messages of no length that a packet has. */
  stats(): Readonly<Record<string, number>> {
    return {
      webSockets: this.#unusedSince.size,
      webSocketsRefused: this.#refused,
      webSocketsUnused: this.#unused,
      webSocketBytes: this.#queue.bytes,
      webSocketDropped: this.#queue.dropped,
      webSocketMalformed: this.#malformed,
    };
  }

  /** Takes no more. The host closes those that are open. */
  stop(): void {
    this.#isStopped = true;
    this.#cancelSweep?.();
  }

  /** Which sessions there are tells which packets were authentic. */
  readonly #sweep = (): void => {
    const { clock, host, settings } = this.#options;
    const now = clock.now();
    const used = new Set<number>();
    for (const session of host.sessions) for (const path of session.paths) if (path.kind === 'websocket') used.add(path.socket);
    for (const [socket, since] of this.#unusedSince) {
      if (used.has(socket.index)) this.#unusedSince.set(socket, now);
      else if (now - since >= settings.webSocketTimeout) this.#close(socket);
    }
    this.#cancelSweep = this.#unusedSince.size > 0 ? clock.schedule(SWEEP, this.#sweep) : null;
  };

  #close(socket: WebSocketSocket): void {
    this.#unused++;
    socket.close(POLICY_VIOLATION);
    this.#ended(socket, new RemoteError('CLOSED', 'no session over the WebSocket'));
  }

  #ended(socket: WebSocketSocket, error: SvcError): void {
    this.#malformed += socket.malformed;
    this.#unusedSince.delete(socket);
    this.#options.host.drop(socket, error);
  }
}
