/**
 * Endpoints on an in-memory network with virtual time: each datagram passes a link that may lose, delay, reorder, duplicate and change
 * it, all from a seed. Endpoints are polled as a driver does.
 */
import { Core } from '../../bindings/index.ts';
import type { Connection, ConnectionEvent } from '../../protocol/connection/index.ts';
import { Endpoint, type EndpointConfig, type EndpointEvent } from '../../protocol/endpoint/index.ts';
import type { Path } from '../../protocol/path.ts';
import { generator, nativeHost } from './crypto.ts';
import { size } from './size.ts';

export interface LinkOptions {
  /** Share of datagrams, 0 to 1. */
  readonly loss?: number;
  readonly duplicate?: number;
  /** ms one way. */
  readonly delay?: number;
  /** ms more, at random: reorders. */
  readonly jitter?: number;
}

export interface Datagram {
  readonly from: Node;
  readonly to: Node;
  bytes: Uint8Array;
}

/** Sees every datagram; false drops it. It may change the bytes. */
export type Tap = (datagram: Datagram, network: VirtualNetwork) => boolean | undefined;

export const parameters: EndpointConfig['parameters'] = {
  idleTimeout: 0,
  maxUdpPayload: 1452,
  initialMaxData: 1 << 20,
  initialMaxStreamData: 16_384,
  maxStreams: 100,
  maxMessages: 256,
  maxAckDelay: 25,
  maxDatagram: 1200,
};

export type NodeOptions = Partial<EndpointConfig> & { readonly kind?: Path['kind'] };

/** One endpoint with an address on the network. */
export class Node {
  readonly network: VirtualNetwork;
  readonly address: string;
  readonly kind: Path['kind'];
  readonly events: [Connection, ConnectionEvent][] = [];
  readonly accepted: Connection[] = [];
  readonly endpointEvents: EndpointEvent[] = [];
  endpoint: Endpoint;
  readonly config: EndpointConfig;
  readonly #paths = new Map<string, Path>();

  constructor(network: VirtualNetwork, address: string, seed: number, options: NodeOptions) {
    this.network = network;
    this.address = address;
    this.kind = options.kind ?? 'udp';
    const crypto = nativeHost(seed);
    this.config = {
      core: options.core ?? Core.create({ connections: 64, memory: size(2, 8) << 20 }),
      crypto,
      identity: crypto.generateKey(),
      parameters,
      limits: { halfOpen: 64, retryAbove: 16, connections: 32 },
      resetSecret: crypto.randomBytes(32),
      acceptStreams: true,
      ...options,
    };
    this.endpoint = new Endpoint(this.config);
  }

  /** The path to another node, interned. */
  path(to: Node, port = 4433): Path {
    const key = `${this.kind}:0:${to.address}:${port}`;
    let path = this.#paths.get(key);
    if (path === undefined) {
      path = { kind: this.kind, key, address: to.address, port, socket: 0, local: false };
      this.#paths.set(key, path);
    }
    return path;
  }

  /** What a driver does after IO: events, then packets. */
  service(now: number): void {
    if (this.endpoint.nextTimeout() <= now) this.endpoint.handleTimeout(now);
    for (let event = this.endpoint.nextEvent(); event !== null; event = this.endpoint.nextEvent()) {
      this.endpointEvents.push(event);
      if (event.kind === 'connection') this.accepted.push(event.connection);
      if (event.kind !== 'active') continue;
      for (let inner = event.connection.nextEvent(); inner !== null; inner = event.connection.nextEvent()) {
        this.events.push([event.connection, inner]);
        this.network.onEvent?.(this, event.connection, inner);
      }
    }
    for (let batch = this.endpoint.transmit(now); batch !== null; batch = this.endpoint.transmit(now)) {
      for (let i = 0; i < batch.count; i++) {
        const at = batch.offsets[i]!;
        this.network.send(this, batch.path, batch.buffer.slice(at, at + batch.lengths[i]!));
        batch.release(at);
      }
    }
  }

  /** Kinds of the events of one connection, or of all. */
  kinds(connection?: Connection): string[] {
    return this.events.filter(([of]) => connection === undefined || of === connection).map(([, event]) => event.kind);
  }

  find<K extends ConnectionEvent['kind']>(kind: K): Extract<ConnectionEvent, { kind: K }> | undefined {
    return this.events.map(([, event]) => event).find((event) => event.kind === kind) as never;
  }
}

export class VirtualNetwork {
  now = 1000;
  onEvent?: (node: Node, connection: Connection, event: ConnectionEvent) => void;
  /** Every datagram that was sent, before the link. */
  readonly sent: Datagram[] = [];
  tap: Tap | undefined;
  link: LinkOptions;
  readonly #random: () => number;
  readonly #nodes: Node[] = [];
  readonly #inFlight: { at: number; order: number; datagram: Datagram }[] = [];
  #order = 0;

  constructor(seed: number, link: LinkOptions = {}) {
    this.#random = generator(seed);
    this.link = link;
  }

  node(options: NodeOptions = {}): Node {
    const number = this.#nodes.length + 1;
    const node = new Node(this, `10.0.0.${number}`, number * 1000, options);
    this.#nodes.push(node);
    return node;
  }

  send(from: Node, path: Path, bytes: Uint8Array): void {
    const to = this.#nodes.find((node) => node.address === path.address);
    if (to === undefined) return;
    const datagram = { from, to, bytes };
    this.sent.push({ ...datagram });
    if (this.tap?.(datagram, this) === false) return;
    const { loss = 0, duplicate = 0 } = this.link;
    if (this.#random() < loss) return;
    this.deliver(datagram);
    if (this.#random() < duplicate) this.deliver(datagram);
  }

  /** Puts a datagram on its way, whatever the link's losses. */
  deliver(datagram: Datagram, delay?: number): void {
    const { delay: base = 10, jitter = 0 } = this.link;
    this.#inFlight.push({ at: this.now + (delay ?? base + jitter * this.#random()), order: this.#order++, datagram });
  }

  /** Runs until `done`, or until `limit` ms have passed; true when done. */
  run(done: () => boolean, limit = 60_000): boolean {
    const end = this.now + limit;
    for (;;) {
      for (const node of this.#nodes) node.service(this.now);
      if (done()) return true;
      const next = this.#next();
      if (next > end) {
        this.now = end;
        return done();
      }
      this.now = Math.max(this.now, next);
      this.#arrivals();
    }
  }

  /** Lets `ms` pass. */
  pass(ms: number): void {
    this.run(() => false, ms);
  }

  #arrivals(): void {
    this.#inFlight.sort((a, b) => a.at - b.at || a.order - b.order);
    while (this.#inFlight.length > 0 && this.#inFlight[0]!.at <= this.now) {
      const { datagram } = this.#inFlight.shift()!;
      datagram.to.endpoint.receive(datagram.bytes.slice(), datagram.to.path(datagram.from), this.now);
    }
  }

  #next(): number {
    const arrivals = this.#inFlight.map(({ at }) => at);
    return Math.min(...arrivals, ...this.#nodes.map((node) => node.endpoint.nextTimeout()));
  }
}

/** A client and a device on a network. */
export function pair(
  seed: number,
  options: { link?: LinkOptions; client?: NodeOptions; device?: NodeOptions } = {},
): { network: VirtualNetwork; client: Node; device: Node } {
  const network = new VirtualNetwork(seed, options.link);
  const client = network.node(options.client);
  const device = network.node({ responder: () => ['device:p.d'], info: { ProductId: 'p', DeviceId: 'd' }, ...options.device });
  return { network, client, device };
}

/** The client dials the device. */
export function dial(client: Node, device: Node, options: Partial<Parameters<Endpoint['connect']>[0]> = {}): Connection {
  const { network } = client;
  return client.endpoint.connect(
    { path: client.path(device), name: 'device:p.d', deadline: network.now + 20_000, ...options },
    network.now,
  );
}
