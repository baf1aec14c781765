/**
 * A host of the matrix: the socket of its connections and what the rendezvous needs of a host, without an engine behind
 * it. A challenge of full size and its answer replace a connection's packets. They show that a path carries full
 * packets both ways.
 */

import type { BoundSocket } from '../../platform/environment.ts';
import type { Path } from '../../protocol/path.ts';
import type { Interceptor } from '../../runtime/driver.ts';
import type { RendezvousHost } from '../../runtime/rendezvous/index.ts';
import type { SimulatedHost } from '../../testing/index.ts';

/** First bytes that no STUN message has (RFC 7983). */
const CHALLENGE = 0x80;
const RESPONSE = 0x81;
/** RFC 9000 §8.2.1. */
const FULL_SIZE = 1_200;

export class PlainHost implements RendezvousHost {
  readonly environment: SimulatedHost;
  readonly socket: BoundSocket;
  /** Called when our challenge is answered on a path. */
  onResponse: (path: Path) => void = () => {};
  #interceptors: readonly Interceptor[] = [];
  readonly #sockets = new Map<number, BoundSocket>();

  constructor(environment: SimulatedHost, port: number) {
    this.environment = environment;
    this.socket = environment.bind({ port, receive: (datagram, path) => this.#receive(datagram, path) });
    this.#sockets.set(this.socket.index, this.socket);
  }

  /** Number of adopted sockets that are open, without the main one. */
  get adopted(): number {
    return this.#sockets.size - 1;
  }

  send(datagram: Uint8Array, path: Path, hopLimit?: number): boolean {
    const socket = this.#sockets.get(path.socket);
    if (socket === undefined) return false;
    if (hopLimit === undefined) socket.send(datagram, 0, datagram.length, path, () => {});
    else socket.sendWithHopLimit?.(datagram, path, hopLimit);
    return true;
  }

  intercept(interceptor: Interceptor): () => void {
    this.#interceptors = [...this.#interceptors, interceptor];
    return () => {
      this.#interceptors = this.#interceptors.filter((each) => each !== interceptor);
    };
  }

  adopt(socket: BoundSocket): (datagram: Uint8Array, path: Path) => void {
    this.#sockets.set(socket.index, socket);
    return (datagram, path) => this.#receive(datagram, path);
  }

  release(socket: BoundSocket): void {
    this.#sockets.delete(socket.index);
    socket.close();
  }

  /** Sends a challenge of full size. `onResponse` reports that the path carries such packets both ways. */
  challenge(path: Path): void {
    this.#say(CHALLENGE, path);
  }

  #receive(datagram: Uint8Array, path: Path): void {
    if (this.#interceptors.some((each) => each(datagram, path)) || datagram.length !== FULL_SIZE) return;
    if (datagram[0] === CHALLENGE) this.#say(RESPONSE, path);
    else if (datagram[0] === RESPONSE) this.onResponse(path);
  }

  #say(what: number, path: Path): void {
    this.send(new Uint8Array(FULL_SIZE).fill(what, 0, 1), path);
  }
}
