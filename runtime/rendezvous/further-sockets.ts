/**
 * Sockets beside that of the connection, for one attempt: three that show how a NAT assigns ports, or 256 of which one
 * meets a port that the peer guessed. They are numbered from 1. All close with the attempt, except those that the
 * host adopts.
 *
 * IPv4 only: short-lived sockets with random ports only matter behind a NAT. Where the process may not open that many,
 * it opens fewer.
 */

import type { BoundSocket } from '../../platform/environment.ts';
import type { SocketAddress } from '../../protocol/control/index.ts';
import type { Path } from '../../protocol/path.ts';
import type { RendezvousHost } from './rendezvous-host.ts';

const ANY_IPV4 = '0.0.0.0';
/** Sockets opened at a time: each takes a tenth of a millisecond of the event loop. */
const BATCH = 32;

export type FurtherReceiver = (datagram: Uint8Array, path: Path, number: number) => void;

interface Further {
  readonly socket: BoundSocket;
  /** Set once the host has adopted the socket. */
  adopted: ((datagram: Uint8Array, path: Path) => void) | null;
}

export class FurtherSockets {
  readonly #host: RendezvousHost;
  readonly #receive: FurtherReceiver;
  readonly #sockets: Further[] = [];
  #closed = false;

  constructor(host: RendezvousHost, receive: FurtherReceiver) {
    this.#host = host;
    this.#receive = receive;
  }

  /** Opens `count` more, or as many as possible. @returns the local ports of all, in the order of their numbers */
  async open(count: number): Promise<readonly number[]> {
    for (let left = count; left > 0 && !this.#closed; left -= BATCH) {
      const opened = await Promise.allSettled(Array.from({ length: Math.min(left, BATCH) }, () => this.#open()));
      const failed = opened.find((result) => result.status === 'rejected');
      if (failed === undefined) continue;
      this.#host.environment.log.debug('fewer sockets than a hard NAT needs', {
        open: this.#sockets.length,
        error: String(failed.reason),
      });
      break;
    }
    return this.#sockets.map(({ socket }) => socket.port);
  }

  /** Returns the path of an address on the socket with that number; undefined when there is none. */
  path(number: number, { address, port }: SocketAddress): Path | undefined {
    return this.#sockets[number - 1]?.socket.path(address, port);
  }

  /** @param hopLimit default: the system's */
  send(number: number, datagram: Uint8Array, to: SocketAddress, hopLimit?: number): void {
    const further = this.#sockets[number - 1];
    if (further === undefined || this.#closed || to.address.includes(':')) return;
    const path = further.socket.path(to.address, to.port);
    if (hopLimit === undefined) further.socket.send(datagram, 0, datagram.length, path, () => {});
    else further.socket.sendWithHopLimit?.(datagram, path, hopLimit);
  }

  /**
   * Gives the socket with that number to the host; it stays open when the others close.
   * @returns the socket, undefined when there is none
   */
  adopt(number: number): BoundSocket | undefined {
    const further = this.#sockets[number - 1];
    if (further === undefined || this.#closed) return undefined;
    further.adopted ??= this.#host.adopt(further.socket);
    return further.socket;
  }

  /** Passes a datagram of that adopted socket to the host. */
  deliver(number: number, datagram: Uint8Array, path: Path): void {
    this.#sockets[number - 1]?.adopted?.(datagram, path);
  }

  /** Closes all that the host has not adopted. */
  close(): void {
    this.#closed = true;
    for (const { socket, adopted } of this.#sockets) if (adopted === null) socket.close();
  }

  async #open(): Promise<void> {
    /** The socket's number; 0 before it has one. */
    let number = 0;
    const receive = (datagram: Uint8Array, path: Path): void => {
      const adopted = this.#sockets[number - 1]?.adopted;
      if (adopted) adopted(datagram, path);
      else if (!this.#closed && number > 0) this.#receive(datagram, path, number);
    };
    const socket = await this.#host.environment.network.bind({ port: 0, host: ANY_IPV4, bulk: true, receive });
    if (this.#closed) socket.close();
    else number = this.#sockets.push({ socket, adopted: null });
  }
}
