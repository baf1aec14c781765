/**
 * TCP of a simulation, as far as WebSockets need it: listeners, opening, and obstacles on the way.
 *
 * 1. The opener's packets climb through the NAT boxes in front of it, which let all TCP out, as most networks do that
 *    block UDP. The outermost box gives the connection its address. No box lets a connection in, and none forgets one.
 * 2. SYN and SYN-ACK, with `wss:` a TLS handshake of one round trip, then the upgrade: each a packet in each direction,
 *    with the delay, rate and loss of the links.
 * 3. Then it is an ordered pipe (pipes.ts).
 *
 * A packet reaches an end while its host is awake, has the address that the connection began with, at the same
 * position, and no firewall blocks TCP there. If another host has the address by then, or the same one after a restart,
 * or a process was killed whose kernel lives, the sender gets a reset.
 */

import type { MessagePipe, WebSocketOptions } from '../platform/environment.ts';
import type { SocketAddress } from '../protocol/control/index.ts';
import { LocalError } from '../protocol/errors/index.ts';
import type { SimulatedHost } from './host.ts';
import type { Link } from './link.ts';
import { Opening } from './opening.ts';
import { type PipeClock, SIDES, type Side, SimulatedPipe } from './pipes.ts';
import type { Reach } from './tcp-flow.ts';
import type { Connection, ConnectionEnd, Topology } from './topology.ts';
import { parseWebSocketUrl, type WebSocketListener, type WebSocketListenOptions } from './web-socket.ts';

/** RFC 6335 §6. */
const FIRST_EPHEMERAL_PORT = 49_152;
const EPHEMERAL_PORTS = 16_384;

/** Interface of the simulation for TCP. */
export interface TcpWorld extends PipeClock {
  direction(from: SimulatedHost, to: SimulatedHost): Link;
  /** Returns whether a firewall of the host drops its TCP. */
  isBlocked(host: SimulatedHost, protocol: 'tcp'): boolean;
  /** A WebSocket begins to open. */
  opening(pipe: SimulatedPipe): void;
}

/** Listeners and connections of a simulation. */
export class Tcp {
  readonly #world: TcpWorld;
  readonly #topology: Topology;
  readonly #listeners = new WeakMap<SimulatedHost, Map<number, WebSocketListenOptions>>();
  readonly #pipes = new Set<SimulatedPipe>();
  #opened = 0;

  constructor(world: TcpWorld, topology: Topology) {
    this.#world = world;
    this.#topology = topology;
  }

  /**
   * WebSockets that are opening, or open at one end at least, the oldest first. @param name of a host; all if undefined
   */
  pipes(name: string | undefined): SimulatedPipe[] {
    return [...this.#pipes].filter(({ opener, acceptor }) => name === undefined || name === opener || name === acceptor);
  }

  /** @throws LocalError PORT_IN_USE, INVALID_ARGUMENT */
  listen(host: SimulatedHost, options: WebSocketListenOptions): WebSocketListener {
    const { port } = options;
    if (!Number.isInteger(port) || port < 1 || port > 65_535) throw new LocalError('INVALID_ARGUMENT', `${port} is not a port number`);
    const listeners = this.#listeners.get(host) ?? new Map<number, WebSocketListenOptions>();
    if (listeners.has(port)) throw new LocalError('PORT_IN_USE', `TCP port ${port} is in use on ${host.name}`);
    this.#listeners.set(host, listeners.set(port, options));
    return {
      port,
      close: () => {
        if (listeners.get(port) === options) listeners.delete(port);
      },
    };
  }

  /** Does what `network.openWebSocket` does. */
  async open(host: SimulatedHost, options: WebSocketOptions): Promise<MessagePipe> {
    const url = parseWebSocketUrl(options.url);
    if (url === null)
      throw new LocalError('INVALID_ARGUMENT', `${options.url} is not the URL of a WebSocket, such as wss://station.example/svc/v1`);
    const addresses = await host.network.resolve(url.host);
    const address = addresses.find((candidate) => this.#topology.connect(host, candidate) !== null);
    const connection = address === undefined ? null : this.#topology.connect(host, address);
    const pipe = connection === null ? null : this.#pipe(connection, { address: address!, port: url.port }, options.url);
    const listener = () => (connection === null ? undefined : this.#listeners.get(connection.acceptor.host)?.get(url.port));
    return new Opening(host.clock, pipe, url, options, listener).result;
  }

  /** A host stops. @param kernelLives it resets its connections */
  stopping(host: SimulatedHost, kernelLives: boolean): void {
    for (const pipe of this.#pipes)
      for (const side of SIDES) {
        if (pipe.hosts[side] !== host) continue;
        if (kernelLives) pipe.reset(side);
        else pipe.ends[side].abort();
      }
  }

  /** A host has woken: it receives the data that arrived meanwhile, and sends its pending data. */
  woke(host: SimulatedHost): void {
    for (const pipe of this.pipes(host.name)) for (const side of SIDES) pipe.flows[side].hurry();
  }

  #pipe(connection: Connection, destination: SocketAddress, url: string): SimulatedPipe {
    const [opener, acceptor] = [connection.opener.host, connection.acceptor.host];
    const sourcePort = FIRST_EPHEMERAL_PORT + (this.#opened++ % EPHEMERAL_PORTS);
    const pipe: SimulatedPipe = new SimulatedPipe({
      url,
      clock: this.#world,
      hosts: { opener, acceptor },
      peers: { opener: destination, acceptor: { address: connection.source, port: sourcePort } },
      links: { opener: this.#world.direction(opener, acceptor), acceptor: this.#world.direction(acceptor, opener) },
      reach: (from) => this.#reach(connection, from),
      ended: () => this.#pipes.delete(pipe),
    });
    this.#pipes.add(pipe);
    this.#world.opening(pipe);
    return pipe;
  }

  #reach({ opener, acceptor }: Connection, from: Side): Reach {
    const [near, far] = from === 'opener' ? [opener, acceptor] : [acceptor, opener];
    if (!this.#isPresent(near) || this.#world.isBlocked(near.host, 'tcp') || this.#world.isBlocked(far.host, 'tcp')) return 'closed';
    if (this.#isPresent(far)) return 'open';
    if (far.host.asleep) return 'closed';
    const wasKilled = !far.host.alive && far.host.kernelLives;
    return wasKilled || far.realm.ownerOf(far.address) !== undefined ? 'unknown' : 'closed';
  }

  #isPresent({ host, realm, address }: ConnectionEnd): boolean {
    return host.awake && host.owns(address) && this.#topology.placeOf(host).realm === realm;
  }
}
