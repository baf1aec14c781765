/**
 * A second kind of datagram socket: it forwards its datagrams to another socket, and holds them while it is stalled. A
 * WebSocket or a data channel whose peer does not read behaves like this. When closed, it releases the held ones, as
 * DatagramSocket requires.
 */

import type { BoundSocket, Clock, DatagramSocket, Environment } from '../../platform/environment.ts';
import type { Path } from '../../protocol/path.ts';

interface Held {
  buffer: Uint8Array;
  offset: number;
  length: number;
  path: Path;
  released: (offset: number) => void;
}

export class StallableSocket implements DatagramSocket {
  readonly index: number;
  stalled = false;
  closed = 0;
  readonly #carrier: Pick<DatagramSocket, 'send' | 'close'>;
  readonly #defer: Clock['defer'];
  #held: Held[] = [];

  /** @param carrier sends datagrams that are not held */
  constructor(index: number, carrier: Pick<DatagramSocket, 'send' | 'close'>, defer: Clock['defer']) {
    this.index = index;
    this.#carrier = carrier;
    this.#defer = defer;
  }

  /** Datagrams that it holds. */
  get held(): number {
    return this.#held.length;
  }

  send(buffer: Uint8Array, offset: number, length: number, path: Path, released: (offset: number) => void): void {
    if (this.stalled) this.#held.push({ buffer, offset, length, path, released });
    else this.#carrier.send(buffer, offset, length, path, released);
  }

  /** Sends the held datagrams, and later ones. */
  resume(): void {
    this.stalled = false;
    this.leave(this.held);
  }

  /** Sends this many of the held datagrams. */
  leave(count: number): void {
    for (const { buffer, offset, length, path, released } of this.#held.splice(0, count))
      this.#carrier.send(buffer, offset, length, path, released);
  }

  close(): void {
    this.closed++;
    this.#defer(() => {
      for (const { offset, released } of this.#held.splice(0)) released(offset);
    });
    this.#carrier.close();
  }
}

/** The same over a bound one: a stallable socket with port and paths. */
export class StallableBoundSocket extends StallableSocket implements BoundSocket {
  readonly #bound: BoundSocket;

  constructor(bound: BoundSocket, defer: Clock['defer']) {
    super(bound.index, bound, defer);
    this.#bound = bound;
  }

  get port(): number {
    return this.#bound.port;
  }

  path(address: string, port: number): Path {
    return this.#bound.path(address, port);
  }
}

/** An environment whose sockets can be stalled. */
export function stallable(environment: Environment): { environment: Environment; sockets: StallableBoundSocket[] } {
  const sockets: StallableBoundSocket[] = [];
  const { clock, crypto, log, network } = environment;
  const bind: Environment['network']['bind'] = async (options) => {
    const socket = new StallableBoundSocket(await network.bind(options), clock.defer);
    sockets.push(socket);
    return socket;
  };
  const createCore: Environment['createCore'] = (options) => environment.createCore(options);
  return { environment: { clock, crypto, log, network: { ...network, bind }, createCore }, sockets };
}
