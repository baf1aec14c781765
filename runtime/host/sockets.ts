/**
 * The sockets of a host: bound ones, whose peers have addresses, and those with one peer each (WebSockets). The driver
 * has all of them; only bound ones have an index, as a connect may leave by any of them.
 */

import type { BoundSocket, Clock, DatagramSocket } from '../../platform/environment.ts';
import { LocalError, type SvcError } from '../../protocol/errors/index.ts';
import type { Path } from '../../protocol/path.ts';
import type { Driver } from '../driver.ts';
import type { Bind } from './config.ts';

export interface SocketsOptions {
  readonly driver: Pick<Driver<unknown>, 'add' | 'bind' | 'intercept' | 'receive' | 'remove' | 'wake'>;
  readonly clock: Pick<Clock, 'defer'>;
  /** @throws LocalError STOPPED when the host is closed */
  readonly assertOpen: () => void;
  /** Migrates or ends everything that runs over the socket. */
  readonly leave: (socket: DatagramSocket, reason: SvcError) => void;
}

export class Sockets {
  /** Bound sockets, in the order of their binds, without WebSockets. */
  readonly bound: BoundSocket[] = [];
  readonly #options: SocketsOptions;
  readonly #adopted = new Set<DatagramSocket>();

  constructor(options: SocketsOptions) {
    this.#options = options;
  }

  /**
   * Binds another socket, used like those of the configuration: peers may use it, and a connect may leave by it.
   * @throws LocalError PORT_IN_USE, PRIVILEGED_PORT, INVALID_ARGUMENT (port or host), STOPPED when the host closes
   */
  async bind(bind: Bind): Promise<BoundSocket> {
    const { assertOpen, driver } = this.#options;
    assertOpen();
    const socket = await driver.bind(bind);
    // The driver has closed a socket that opened too late.
    assertOpen();
    this.bound.push(socket);
    return socket;
  }

  /**
   * Adopts a socket that was opened elsewhere: used and closed like those of `bind`. Does nothing for one that the host
   * has. One whose peers have addresses joins `bound`; a WebSocket has one path, its own.
   * @param ownShare its own share of packet slots. Default: all sockets adopted this way have one in common.
   * @returns the receiver of its datagrams
   * @throws LocalError STOPPED when the host is closed
   */
  adopt(socket: DatagramSocket, ownShare = false): (datagram: Uint8Array, path: Path) => void {
    const { assertOpen, driver } = this.#options;
    assertOpen();
    if (!this.has(socket)) {
      driver.add(socket, !ownShare);
      if (isBound(socket)) this.bound.push(socket);
      else this.#adopted.add(socket);
    }
    return driver.receive;
  }

  has(socket: DatagramSocket): boolean {
    return this.#adopted.has(socket) || (this.bound as DatagramSocket[]).includes(socket);
  }

  /**
   * Closes a socket and everything that depends on it. Resolves when it is closed, after its sessions have sent their
   * closing packets there. Harmless for a socket that the host does not have.
   * - Connects under way on it fail with STOPPED.
   * - Sessions lose their paths on it. One with another path migrates there by failover. One without ends with STOPPED
   *   and notifies its peer; if it was a channel to a base station, sessions on its routes end with CLOSED.
   * - Answers to handshakes that came in on it are dropped.
   */
  async unbind(socket: DatagramSocket): Promise<void> {
    const { driver, leave } = this.#options;
    if (!this.#forget(socket)) return;
    const name = 'port' in socket ? `the socket on port ${socket.port}` : 'the WebSocket';
    leave(socket, new LocalError('STOPPED', `${name} was closed`));
    // Drop late arrivals: they could open a session, or validate a path, that ends with the socket.
    const stopIgnoring = driver.intercept((_, path) => path.socket === socket.index);
    await this.#handedOver();
    driver.remove(socket);
    stopIgnoring();
  }

  /**
   * Removes a WebSocket that has ended, without notifying peers. Sessions without another path end with `reason`, or
   * rest. Harmless for a socket that the host does not have.
   */
  drop(socket: DatagramSocket, reason: SvcError): void {
    const { driver, leave } = this.#options;
    if (!this.#forget(socket)) return;
    leave(socket, reason);
    driver.remove(socket);
  }

  /** Swaps the socket with the first bound one, from which connects leave. */
  promote(socket: BoundSocket): void {
    const position = this.bound.indexOf(socket);
    if (position > 0) [this.bound[0], this.bound[position]] = [socket, this.bound[0]!];
  }

  /** Closes all at once. */
  close(): void {
    for (const socket of [...this.bound, ...this.#adopted]) this.#options.driver.remove(socket);
  }

  /**
   * @throws LocalError INVALID_ARGUMENT for a socket that does not exist, or arguments that `BoundSocket.path` refuses
   */
  path(address: string, port: number, index = 0): Path {
    const socket = this.bound[index];
    if (socket === undefined) throw new LocalError('INVALID_ARGUMENT', `this host has no socket ${index}`);
    return socket.path(address, port);
  }

  /** The smallest receive buffer of the bound sockets, bytes; 0 when one does not report it. */
  get receiveBuffer(): number {
    const buffers = this.bound.map((socket) => socket.receiveBuffer ?? 0);
    return buffers.length === 0 ? 0 : Math.min(...buffers);
  }

  #forget(socket: DatagramSocket): boolean {
    const position = (this.bound as DatagramSocket[]).indexOf(socket);
    if (position >= 0) this.bound.splice(position, 1);
    return position >= 0 || this.#adopted.delete(socket);
  }

  /** Resolves when the sockets have the sessions' last packets: in the service of this batch of IO, or in the next. */
  #handedOver(): Promise<void> {
    const { clock, driver } = this.#options;
    driver.wake();
    return new Promise((resolve) => clock.defer(() => clock.defer(resolve)));
  }
}

function isBound(socket: DatagramSocket): socket is BoundSocket {
  return 'path' in socket && 'port' in socket;
}
