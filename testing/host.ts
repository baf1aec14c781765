/**
 * A host of the simulation: the environment that its products run in. Clock, sockets, name resolution, keys and
 * randomness are virtual and seeded. `stop` corresponds to SIGKILL and a pulled plug: nothing that belongs to the host
 * happens afterwards.
 */
import { scrypt } from '@noble/hashes/scrypt.js';
import { Core, type CoreOptions } from '../bindings/index.ts';
import type {
  BindOptions,
  Clock,
  ConnectedSocket,
  ConnectOptions,
  Environment,
  HostInterface,
  HttpsGet,
  Log,
  MessagePipe,
  Network,
  WebSocketOptions,
} from '../platform/environment.ts';
import { packetSizeFor } from '../platform/udp-path.ts';
import { canonicalAddress, isNear, parseAddress } from '../protocol/address.ts';
import type { CryptoProvider } from '../protocol/crypto-provider.ts';
import type { DnsMessage, MdnsSource } from '../protocol/discovery/index.ts';
import { LocalError, PortInUseError, RemoteError } from '../protocol/errors/index.ts';
import type { Path } from '../protocol/path.ts';
import { type SimulatedDocument, simulatedGet } from './documents.ts';
import { HostClock, type WorldClock } from './host-clock.ts';
import { SimulatedMdns } from './mdns.ts';
import { checkedPlace, type HostPlace } from './place.ts';
import { SimulatedSocket } from './socket.ts';
import type { WebSocketListener, WebSocketListenOptions } from './web-socket.ts';

/**
 * Default linear memory of a host's core: hundreds of hosts fit in one process. V8 collects all garbage after each 64
 * MiB of such memory, which took a third of the time of tests that make hosts of 16 MiB.
 */
const CORE_MEMORY = 8 * 1024 * 1024;
/** Every address of the host; the simulation has no sockets of a single family. */
const UNSPECIFIED: readonly string[] = ['0.0.0.0', '::'];
const FIRST_EPHEMERAL_PORT = 49_152;

/** Interface of the simulation for its hosts. */
export interface World extends WorldClock {
  /** Answers over https, by URL. */
  readonly documents: ReadonlyMap<string, SimulatedDocument>;
  readonly datagrams: {
    transmit(
      host: SimulatedHost,
      from: { address: string | undefined; port: number },
      data: Uint8Array,
      path: Path,
      hopLimit?: number,
    ): void;
    multicast(host: SimulatedHost, source: string, message: DnsMessage, to: MdnsSource | null): void;
  };
  /** Returns the addresses that a host's resolver returns for a name. */
  resolve(host: SimulatedHost, name: string): readonly string[];
  /** Addresses of the routers in front of a host. */
  gatewaysOf(host: SimulatedHost): readonly string[];
  readonly tcp: {
    open(host: SimulatedHost, options: WebSocketOptions): Promise<MessagePipe>;
    listen(host: SimulatedHost, options: WebSocketListenOptions): WebSocketListener;
    /** A host is about to stop. @param kernelLives whether its TCP connections are reset */
    stopping(host: SimulatedHost, kernelLives: boolean): void;
    /** A host has woken. */
    woke(host: SimulatedHost): void;
  };
}

/** Configuration of a host. */
export interface HostSettings {
  /** The MTU of its links as an operator states it; independent of what the links carry. */
  readonly linkMtu?: number;
  /** Kinds of its interfaces, in the order of its addresses. Default `default`. */
  readonly kinds?: readonly HostInterface['kind'][];
  /** Its monotonic clock continues while it sleeps, as on Windows. Default false: it stands still, as on Linux. */
  readonly clockRunsAsleep?: boolean;
  /**
   * Bytes of a WebSocket that its kernel accepts before they have left for the wire: `sent` is called for them
   * immediately. Default 0: `sent` is called when a message has left.
   */
  readonly sendBuffer?: number;
}

/** The environment of one host of a simulation. Made by `Simulation.host`. */
export class SimulatedHost implements Environment {
  readonly name: string;
  readonly clock: Clock;
  readonly crypto: CryptoProvider;
  readonly network: Network;
  readonly log: Log;
  readonly mdns: SimulatedMdns;
  readonly getHttps: HttpsGet;
  /** As in {@link HostSettings.sendBuffer}. */
  readonly sendBuffer: number;

  readonly #world: World;
  readonly #clock: HostClock;
  #place: HostPlace;
  #kinds: readonly HostInterface['kind'][];
  readonly #sockets: SimulatedSocket[] = [];
  /** By destination: results of {@link sourceFor} and {@link isNear}. */
  readonly #sources = new Map<string, string | undefined>();
  readonly #near = new Map<string, boolean>();
  readonly #linkMtu: number | undefined;
  #socketsMade = 0;
  #alive = true;
  #kernelLives = true;

  /** Made by `Simulation.host`. @param networks each `address/bits` */
  constructor(world: World, name: string, networks: readonly string[], crypto: CryptoProvider, log: Log, settings: HostSettings = {}) {
    const { linkMtu, kinds = [], sendBuffer = 0 } = settings;
    this.sendBuffer = sendBuffer;
    this.#place = checkedPlace(networks);
    this.#kinds = kinds;
    this.name = name;
    this.#world = world;
    this.#linkMtu = linkMtu;
    this.#clock = new HostClock(world, () => this.#alive, settings.clockRunsAsleep ?? false);
    this.clock = this.#clock;
    // scrypt without pauses: virtual time does not wait for the event loop.
    const derive: CryptoProvider['scrypt'] = async (password, salt, cost, dkLen) => scrypt(password, salt, { ...cost, dkLen });
    this.crypto = { ...crypto, scrypt: derive };
    this.network = {
      maxPacketSize: packetSizeFor(linkMtu),
      bind: async (options) => this.bind(options),
      connect: async (options) => this.#connect(options),
      resolve: async (host) => this.#resolve(host),
      openWebSocket: (options) => world.tcp.open(this, options),
      interfaces: () => this.#interfaces(),
      sourceAddress: async (destination) => this.sourceFor(destination) ?? null,
      gateways: () => world.gatewaysOf(this),
    };
    this.log = log;
    this.getHttps = simulatedGet(world.documents, this.clock);
    this.mdns = new SimulatedMdns(networks, (source, message, to) => world.datagrams.multicast(this, source, message, to));
  }

  /** Numeric, without prefix length, in order of preference. */
  get addresses(): readonly string[] {
    return this.#place.addresses;
  }

  /** The same with prefix length, as given. */
  get networks(): readonly string[] {
    return this.#place.networks;
  }

  get alive(): boolean {
    return this.#alive;
  }

  get asleep(): boolean {
    return this.#clock.isAsleep;
  }

  /** Alive and not asleep: it sends and receives. */
  get awake(): boolean {
    return this.#alive && !this.#clock.isAsleep;
  }

  /** Whether its kernel answers: until it stops, and afterwards if only its processes were killed. */
  get kernelLives(): boolean {
    return this.#kernelLives;
  }

  async createCore(options: CoreOptions): Promise<Core> {
    return Core.create({ memory: CORE_MEMORY, ...options });
  }

  /**
   * Ends the host at once: no timer fires, no datagram leaves or arrives. Its name and addresses can be given to a new
   * host.
   * @param options `tcpReset`: its processes were killed, and its kernel resets their TCP connections and refuses new
   *   ones. Default false: the plug was pulled, and its peers receive nothing
   */
  stop({ tcpReset = false }: { tcpReset?: boolean } = {}): void {
    if (!this.#alive) return;
    this.#world.tcp.stopping(this, tcpReset);
    this.#alive = false;
    this.#kernelLives = tcpReset;
    for (const socket of [...this.#sockets]) socket.close();
    this.mdns.stop();
  }

  /** Does what `network.bind` does, synchronously. */
  bind(options: BindOptions): SimulatedSocket {
    if (!Number.isInteger(options.port) || options.port < 0 || options.port > 65_535)
      throw new LocalError('INVALID_ARGUMENT', `${options.port} is not a port number`);
    const host = options.host === undefined || UNSPECIFIED.includes(options.host) ? undefined : canonicalAddress(options.host);
    if (host === null || (host !== undefined && !isOwn(host, this.addresses)))
      throw new LocalError('INVALID_ARGUMENT', `${options.host} is not an address of ${this.name}`);
    const port = options.port === 0 ? this.#freePort() : options.port;
    if (this.#sockets.some((socket) => socket.port === port && (socket.host === undefined || host === undefined || socket.host === host)))
      throw new PortInUseError('UDP', port);
    const near = options.local === true ? (address: string) => isNear(address, this.#place.prefixes) : null;
    const socket = new SimulatedSocket({
      index: this.nextSocketIndex(),
      port,
      host,
      near,
      linkMtu: this.#linkMtu,
      receive: options.receive,
      transmit: (data, path, hopLimit) => {
        if (this.awake && this.sourceFor(path.address, host) === undefined) this.clock.defer(() => options.unreachable?.(path.address));
        this.#world.datagrams.transmit(this, { address: host, port }, data, path, hopLimit);
      },
      defer: this.clock.defer,
      closed: () => this.#sockets.splice(this.#sockets.indexOf(socket), 1),
    });
    this.#sockets.push(socket);
    return socket;
  }

  /** Accepts WebSockets on a TCP port. @throws LocalError PORT_IN_USE, INVALID_ARGUMENT */
  listenWebSocket(options: WebSocketListenOptions): WebSocketListener {
    return this.#world.tcp.listen(this, options);
  }

  /** For the simulation: returns the number of a new socket. */
  nextSocketIndex(): number {
    return this.#socketsMade++;
  }

  /**
   * Puts the host to sleep: none of its timers fires, no datagram leaves or arrives, and WebSockets hold data sent to
   * it for as long as the peer waits. For a sleeping host the time starts again.
   * @param ms of simulation time. Default until {@link wake}
   */
  sleep(ms = Number.POSITIVE_INFINITY): void {
    this.#clock.sleep(ms, () => this.wake());
  }

  /** Wakes the host; timers have their remaining time, or are overdue, see `clockRunsAsleep`. No effect when awake. */
  wake(): void {
    if (!this.#alive || this.awake) return;
    this.#clock.wake();
    this.#world.tcp.woke(this);
  }

  /** Sets its wall clock, which continues from there. @param time Unix ms */
  setWallTime(time: number): void {
    this.#clock.setWallTime(time);
  }

  /** For the simulation: runs an event of the host now, when it wakes, or never if it was stopped. */
  run(action: () => void): void {
    this.#clock.run(action);
  }

  /** Returns whether the address is its own, loopback included. */
  owns(address: string): boolean {
    return isOwn(address, this.addresses);
  }

  /** An absent peer never shows itself: the simulation has no ICMP. */
  #connect({ address, port, receive }: ConnectOptions): ConnectedSocket {
    let open = true;
    const socket = this.bind({ port: 0, receive: (datagram, from) => open && from === peer && receive(new Uint8Array(datagram)) });
    const peer = socket.path(address, port);
    return {
      send(datagram) {
        if (open) socket.send(datagram, 0, datagram.length, peer, () => {});
        return open;
      },
      close() {
        open = false;
        socket.close();
      },
    };
  }

  /** Returns the socket that would receive a datagram for this address and port. */
  socketFor(address: string, port: number): SimulatedSocket | undefined {
    return this.#sockets.find((socket) => socket.port === port && (socket.host === undefined || socket.host === address));
  }

  /**
   * Returns the source address of datagrams to `destination`; undefined when the host has none of that family, or no
   * longer the one that the socket is bound to.
   * @param bound address of the socket
   */
  sourceFor(destination: string, bound?: string): string | undefined {
    if (!this.#sources.has(destination)) this.#sources.set(destination, this.#chooseSource(destination));
    const source = this.#sources.get(destination);
    if (bound === undefined || source === undefined || source === destination) return source;
    return this.addresses.includes(bound) && bound.includes(':') === destination.includes(':') ? bound : undefined;
  }

  /** For the simulation: replaces all its addresses. See `Simulation.move`. */
  place(place: HostPlace, kinds: readonly HostInterface['kind'][]): void {
    this.#place = place;
    this.#kinds = kinds;
    this.#sources.clear();
    this.#near.clear();
    this.mdns.setNetworks(place.networks);
  }

  /** Returns whether an address is on a link of this host, so that no router is needed. */
  isNear(address: string): boolean {
    let near = this.#near.get(address);
    if (near === undefined) {
      near = isNear(address, this.#place.prefixes);
      this.#near.set(address, near);
    }
    return near;
  }

  #chooseSource(destination: string): string | undefined {
    const bytes = parseAddress(destination);
    if (bytes === null || isOwn(destination, this.addresses)) return destination;
    const usable = this.addresses.filter((address) => parseAddress(address)!.length === bytes.length);
    return usable.find((address) => isNear(destination, [this.#place.prefixes[this.addresses.indexOf(address)]!])) ?? usable[0];
  }

  #interfaces(): HostInterface[] {
    return this.networks
      .map((network, i) => ({ name: `sim${i}`, addresses: [network], kind: this.#kinds[i] ?? 'default' }))
      .sort((one, other) => KINDS.indexOf(one.kind) - KINDS.indexOf(other.kind));
  }

  #freePort(): number {
    let port = FIRST_EPHEMERAL_PORT + this.#socketsMade;
    while (this.#sockets.some((socket) => socket.port === port)) port++;
    return port;
  }

  #resolve(host: string): string[] {
    const numeric = canonicalAddress(host);
    if (numeric !== null) return [numeric];
    const addresses = this.#world.resolve(this, host);
    if (addresses.length === 0) throw new RemoteError('DNS', `${host} has no address`);
    return [...addresses];
  }
}

function isOwn(address: string, addresses: readonly string[]): boolean {
  return addresses.includes(address) || address === '::1' || address.startsWith('127.');
}

const KINDS: readonly HostInterface['kind'][] = ['default', 'other', 'virtual'];
