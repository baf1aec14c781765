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
  readonly driver: Pick<Driver<unknown>, 'add' | 'bind' | 'intercept' | 'remove' | 'wake'>;
  readonly clock: Pick<Clock, 'defer'>;
  /** Migrates or ends everything that runs over the socket. */
  readonly leave: (socket: DatagramSocket, reason: SvcError) => void;
}

export class Sockets {
  /** Bound sockets, in the order of their binds. */
  readonly bound: BoundSocket[] = [];
  readonly #options: SocketsOptions;
  readonly #adopted = new Set<DatagramSocket>();

  constructor(options: SocketsOptions) {
    this.#options = options;
  }

  /** @returns the socket, which the driver has closed if it opened too late */
  bind(bind: Bind): Promise<BoundSocket> {
    return this.#options.driver.bind(bind);
  }

  /** @param inCommon the socket shares packet slots with all that were adopted this way */
  adopt(socket: DatagramSocket, inCommon: boolean): void {
    if (this.has(socket)) return;
    this.#options.driver.add(socket, inCommon);
    if (isBound(socket)) this.bound.push(socket);
    else this.#adopted.add(socket);
  }

  has(socket: DatagramSocket): boolean {
    return this.#adopted.has(socket) || (this.bound as DatagramSocket[]).includes(socket);
  }

  /**
   * Closes a socket once its sessions have sent their closing packets there. Harmless for one that the host does not
   * have.
   */
  async unbind(socket: DatagramSocket, reason: SvcError): Promise<void> {
    const { driver, leave } = this.#options;
    if (!this.#forget(socket)) return;
    leave(socket, reason);
    // Drop late arrivals: they could open a session, or validate a path, that ends with the socket.
    const stopIgnoring = driver.intercept((_, path) => path.socket === socket.index);
    await this.#handedOver();
    driver.remove(socket);
    stopIgnoring();
  }

  /** Removes a socket that no longer carries anything. Harmless for one that the host does not have. */
  drop(socket: DatagramSocket, reason: SvcError): void {
    const { driver, leave } = this.#options;
    if (!this.#forget(socket)) return;
    leave(socket, reason);
    driver.remove(socket);
  }

  /** Swaps the socket with the first bound one. */
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
