/**
 * Datagrams with a hop limit of their own, sent with `dgram`.
 *
 * `dgram` knows the hop limit of a socket, not of a datagram, and it may send in a later tick, or when the kernel takes
 * more. So:
 *
 *   1. `add` queues a datagram; from then on nothing else is given to the socket (dgram-sender.ts holds it).
 *   2. Once `dgram` and libuv have nothing in flight, `run` takes the waiting datagrams. For each it sets the hop
 *      limit, sends, and waits until the datagram has left.
 *   3. Then it restores the system's hop limit, and the held packets may leave.
 *
 * Setting a hop limit fails only on a closed socket, which sends nothing.
 */
import type { Socket, SocketType } from 'node:dgram';
import { readFileSync } from 'node:fs';
import { orElse } from '../../protocol/or-else.ts';

/**
 * Most waiting datagrams. A device's four rounds send up to 96 openers, 1 to 10 ms apart within a round; fewer than
 * this wait at a time on a socket that sends.
 */
export const MAX_WAITING = 64;
/** Default hop limit of new sockets on Linux. */
const DEFAULTS = { udp4: '/proc/sys/net/ipv4/ip_default_ttl', udp6: '/proc/sys/net/ipv6/conf/default/hop_limit' };
/** Default of other systems. */
const DEFAULT_HOP_LIMIT = process.platform === 'win32' ? 128 : 64;

interface LimitedDatagram {
  readonly datagram: Uint8Array;
  readonly address: string;
  readonly port: number;
  readonly hopLimit: number;
}

export class HopLimits {
  readonly #socket: Pick<Socket, 'send' | 'setTTL'>;
  readonly #family: SocketType;
  #waiting: LimitedDatagram[] = [];
  #closed = false;

  constructor(socket: Pick<Socket, 'send' | 'setTTL'>, family: SocketType) {
    this.#socket = socket;
    this.#family = family;
  }

  /** Whether datagrams wait for `run`. */
  get areWaiting(): boolean {
    return this.#waiting.length > 0;
  }

  /** @returns false when the datagram was dropped: the socket is closed, or too many wait */
  add(datagram: Uint8Array, address: string, port: number, hopLimit: number): boolean {
    if (this.#closed || this.#waiting.length >= MAX_WAITING) return false;
    this.#waiting.push({ datagram, address, port, hopLimit });
    return true;
  }

  /**
   * Sends the datagrams waiting now. Calls `done` when they have left and the system's hop limit is restored, never
   * after `close`.
   */
  run(done: () => void): void {
    const due = this.#waiting;
    this.#waiting = [];
    this.#send(due, 0, done);
  }

  close(): void {
    this.#closed = true;
    this.#waiting = [];
  }

  #send(due: readonly LimitedDatagram[], index: number, done: () => void): void {
    if (this.#closed) return;
    const limited = due[index];
    if (limited === undefined) {
      this.#set(Number(orElse(() => readFileSync(DEFAULTS[this.#family], 'latin1'), '')) || DEFAULT_HOP_LIMIT);
      done();
      return;
    }
    const next = (): void => this.#send(due, index + 1, done);
    if (!this.#set(limited.hopLimit)) next();
    else this.#socket.send(limited.datagram, limited.port, limited.address, next);
  }

  /** For IPv6: the limit of unicast hops. */
  #set(hopLimit: number): boolean {
    return orElse(() => this.#socket.setTTL(hopLimit), null) !== null;
  }
}
