/**
 * A WebSocket as a socket for datagrams (PROTOCOL.md §2): one binary message is one packet, and all of them have one
 * path.
 *
 * A pipe accepts any amount and reports when it has left. So that packets do not age in it, at most 64 KiB, or what
 * leaves in 100 ms, are in flight at a time, plus the packet that exceeds the bound. `queue` decides where further
 * packets wait:
 *
 * - Without a queue, at a client or device: packets stay lent until they have left, and `room` limits how many the
 *   driver may send. So the engine waits, nothing is dropped, and its acknowledgements see no queue.
 * - With a queue, at a base station: packets are copied at once, as a stalled WebSocket must not keep packet slots from
 *   others. What the pipe does not take waits in a queue with the same bound, from which the oldest packet of a route
 *   is dropped first.
 */

import type { Clock, DatagramSocket, MessagePipe } from '../../platform/environment.ts';
import { RemoteError, type SvcError } from '../../protocol/errors/index.ts';
import { ETHERNET_PAYLOAD, type Path } from '../../protocol/path.ts';
import { DrainRate } from './drain-rate.ts';
import { OutgoingQueue } from './outgoing-queue.ts';
import type { SharedQueue } from './shared-queue.ts';
import { Silence, WebSocketCut } from './silence.ts';

export interface WebSocketSocketOptions {
  readonly clock: Pick<Clock, 'now' | 'soon'>;
  /** Receives each packet, lent as in `BindOptions.receive`. Must not throw. */
  readonly receive: (datagram: Uint8Array, path: Path) => void;
  /**
   * Called once when it has ended, unless this end closed it; with a {@link WebSocketCut} where the pipe has. The owner
   * must still close the socket.
   */
  readonly closed: (error: SvcError) => void;
  /** The peer's address; default the pipe's, which may be a proxy's. */
  readonly peer?: { readonly address: string; readonly port: number };
  /**
   * With a queue, packets are copied, and dropped when too many wait; the bytes of all WebSockets with this object are
   * bounded.
   */
  readonly queue?: SharedQueue;
  /** Status code of `close` (RFC 6455 §7.4.1), default 1000. */
  readonly closeCode?: number;
}

/** Largest message, bytes, and so the upper bound of `MaxUdpPayload`. */
export const MAX_MESSAGE = 65_535;
/** Bytes that may be in flight at least, at most, and ms in which they should have left. */
export const MIN_BOUND = 64 << 10;
export const MAX_BOUND = 1 << 20;
export const DRAIN_TIME = 100;
/** The bound while all WebSockets together hold too much. */
const BOUND_WHEN_FULL = 2 * ETHERNET_PAYLOAD;
/** Part of the bound to which a full pipe must drain before it takes packets again. */
const REOPEN = 1 / 2;
/** RFC 6455 §7.4.1. */
const NORMAL_CLOSURE = 1000;
const MESSAGE_TOO_BIG = 1009;

export class WebSocketSocket implements DatagramSocket {
  readonly index: number;
  /** The only path: to the peer. */
  readonly path: Path;
  /** Empty messages and those with too many bytes. */
  malformed = 0;
  readonly #pipe: MessagePipe;
  readonly #options: WebSocketSocketOptions;
  readonly #rate = new DrainRate();
  readonly #silence: Silence;
  readonly #waiting: OutgoingQueue | null;
  /** Bytes that the pipe holds. */
  #underWay = 0;
  /** No room until enough has left. */
  #isFull = false;
  #isOpen = true;
  /** Copied packets that are still to be given back. */
  #copied: { readonly offset: number; readonly released: (offset: number) => void }[] = [];

  constructor(pipe: MessagePipe, options: WebSocketSocketOptions) {
    const { address, port } = options.peer ?? pipe;
    this.index = pipe.index;
    this.path = {
      kind: 'websocket',
      key: `websocket:${pipe.index}:${address.includes(':') ? `[${address}]` : address}:${port}`,
      address,
      port,
      socket: pipe.index,
      // Whatever the addresses: a proxy may stand in between.
      local: false,
      proxy: pipe.proxy,
    };
    this.#pipe = pipe;
    this.#silence = new Silence(options.clock.now());
    this.#options = options;
    this.#waiting = options.queue === undefined ? null : new OutgoingQueue();
  }

  /** Bytes that wait to leave this process. */
  get queued(): number {
    return this.#underWay + (this.#waiting?.bytes ?? 0);
  }

  /** As in {@link DatagramSocket}; a socket that copies accepts any number. */
  get room(): number {
    if (this.#waiting !== null) return Number.POSITIVE_INFINITY;
    const bound = this.#bound();
    if (this.#isFull && this.#underWay <= REOPEN * bound) this.#isFull = false;
    const room = this.#isFull ? 0 : Math.max(0, Math.floor((bound - this.#underWay) / ETHERNET_PAYLOAD));
    if (room === 0) this.#isFull = true;
    return room;
  }

  /** Receives a message from the pipe. */
  deliver(message: Uint8Array): void {
    if (!this.#isOpen) return;
    this.#silence.received(this.#options.clock.now());
    if (message.length > 0 && message.length <= MAX_MESSAGE) {
      this.#options.receive(message, this.path);
      return;
    }
    this.malformed++;
    if (message.length === 0) return;
    this.#pipe.close(MESSAGE_TOO_BIG);
    this.ended(new RemoteError('BAD_RESPONSE', `a message of ${message.length} bytes arrived over the WebSocket`));
  }

  /** The pipe has ended. */
  ended(error: SvcError): void {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    this.#clear();
    const { clock, closed } = this.#options;
    closed(error.code === 'CLOSED' ? new WebSocketCut(error.message, this.#silence.before(clock.now())) : error);
  }

  send(buffer: Uint8Array, offset: number, length: number, _path: Path, released: (offset: number) => void): void {
    if (this.#waiting === null) {
      this.#hand(buffer.subarray(offset, offset + length), () => released(offset));
      return;
    }
    if (this.#copied.length === 0) this.#options.clock.soon(this.#releaseCopied);
    this.#copied.push({ offset, released });
    if (this.#isOpen) this.#enqueue(buffer.slice(offset, offset + length), this.#waiting);
  }

  /**
   * Closes it.
   * @param code RFC 6455 §7.4.1; default as the options say, after what waits in the queue: it ends with the last
   *   packets of the peer's sessions
   */
  close(code?: number): void {
    const waiting = code === undefined && this.#isOpen ? this.#waiting : null;
    for (let packet = waiting?.shift(); packet !== undefined; packet = waiting?.shift()) {
      this.#options.queue!.bytes -= packet.length;
      this.#pipe.send(packet, () => {});
    }
    this.#isOpen = false;
    this.#clear();
    this.#pipe.close(code ?? this.#options.closeCode ?? NORMAL_CLOSURE);
  }

  #enqueue(packet: Uint8Array, waiting: OutgoingQueue): void {
    const { queue } = this.#options;
    const before = waiting.bytes;
    queue!.dropped += waiting.push(packet, this.#bound() + (before === 0 ? packet.length : 0));
    queue!.bytes += waiting.bytes - before;
    this.#pump(waiting);
  }

  #pump(waiting: OutgoingQueue): void {
    const { queue } = this.#options;
    while (waiting.bytes > 0 && this.#underWay < this.#bound()) {
      const packet = waiting.shift()!;
      this.#hand(packet, () => {
        queue!.bytes -= packet.length;
        this.#pump(waiting);
      });
    }
  }

  #hand(message: Uint8Array, sent: () => void): void {
    const { clock } = this.#options;
    this.#underWay += message.length;
    this.#rate.busy(clock.now());
    this.#silence.sent(clock.now());
    this.#pipe.send(message, () => {
      this.#underWay -= message.length;
      this.#rate.sent(message.length, this.#underWay === 0, clock.now());
      sent();
    });
  }

  #bound(): number {
    if (this.#options.queue?.isFull === true) return BOUND_WHEN_FULL;
    const drain = DRAIN_TIME * this.#rate.at(this.#options.clock.now());
    return Math.min(Math.max(MIN_BOUND, drain), MAX_BOUND);
  }

  #clear(): void {
    const { queue } = this.#options;
    if (queue !== undefined) queue.bytes -= this.#waiting!.bytes;
    this.#waiting?.clear();
  }

  readonly #releaseCopied = (): void => {
    const copied = this.#copied;
    this.#copied = [];
    for (const { offset, released } of copied) released(offset);
  };
}
