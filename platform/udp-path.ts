/** The path of a UDP peer, its largest packet size, and the table that remembers paths. */

import { canonicalAddress, isLoopback, parseAddress } from '../protocol/address.ts';
import { LocalError } from '../protocol/errors/index.ts';
import { ETHERNET_PAYLOAD, type Path } from '../protocol/path.ts';

/**
 * UDP payload that a loopback interface (MTU 65,536) carries whole, rounded down; core-as/recovery/mtu.ts has the same
 * limit.
 */
const LOOPBACK_PAYLOAD = 65_000;
/** IPv4 (RFC 791) and IPv6 (RFC 8200) without options, each with UDP (RFC 768). */
const HEADERS_IPV4 = 28;
const HEADERS_IPV6 = 48;
/** The least of IPv6 (RFC 8200 §5), and the largest IP packet. */
export const MIN_MTU = 1280;
const MAX_MTU = 65_535;

/**
 * Checks the MTU of a link that a person stated, and returns it.
 * @throws LocalError INVALID_ARGUMENT unless a whole number from 1,280 to 65,535
 */
export function checkLinkMtu(mtu: number): number {
  if (Number.isInteger(mtu) && mtu >= MIN_MTU && mtu <= MAX_MTU) return mtu;
  throw new LocalError('INVALID_ARGUMENT', `${mtu} is not the MTU of a link: use ${MIN_MTU} to ${MAX_MTU}`);
}

/** Returns the packet size, bytes of UDP payload, that a host on links of this MTU should accept and send. */
export function packetSizeFor(linkMtu: number | undefined): number {
  return linkMtu === undefined ? ETHERNET_PAYLOAD : Math.min(LOOPBACK_PAYLOAD, Math.max(ETHERNET_PAYLOAD, linkMtu - HEADERS_IPV4));
}

/** The path of one UDP peer on one socket. */
export class UdpPath implements Path {
  readonly kind = 'udp';
  readonly key: string;
  readonly address: string;
  readonly port: number;
  readonly socket: number;
  readonly #near: ((address: string) => boolean) | null;
  readonly #linkMtu: number | undefined;

  /**
   * @param address canonical numeric address
   * @param near returns whether an address is near, for a local socket; null for every other socket, whose paths are
   *   never local
   * @param linkMtu of the links of this host, where a person has stated it
   */
  constructor(socket: number, address: string, port: number, near: ((address: string) => boolean) | null, linkMtu?: number) {
    this.key = `udp:${socket}:${address.includes(':') ? `[${address}]` : address}:${port}`;
    this.address = address;
    this.port = port;
    this.socket = socket;
    this.#near = near;
    this.#linkMtu = linkMtu;
  }

  /**
   * docs/transport.md §5: Node cannot forbid IP fragmentation, so the MTU of a link is stated or assumed, never probed.
   */
  get maxUdpPayload(): number {
    const address = parseAddress(this.address);
    if (address !== null && isLoopback(address)) return LOOPBACK_PAYLOAD;
    if (this.#linkMtu === undefined) return ETHERNET_PAYLOAD;
    return this.#linkMtu - (this.address.includes(':') ? HEADERS_IPV6 : HEADERS_IPV4);
  }

  /** Evaluated at each read: interfaces come and go. */
  get local(): boolean {
    return this.#near?.(this.address) ?? false;
  }
}

/** Entries before the first sweep. */
const FIRST_SWEEP = 1024;

/**
 * The paths of one socket, interned: engines compare paths by identity, so an address returns the same object as long
 * as any code holds the path. References are weak: paths that only a flood of spoofed addresses has created are
 * collected, a path that a connection holds stays. Dead entries are swept when twice as many have come as the last
 * sweep left, so a new peer costs constant time.
 */
export class PathTable {
  readonly #create: (address: string, port: number) => UdpPath;
  readonly #paths = new Map<string, WeakRef<UdpPath>>();
  #last: UdpPath | undefined;
  #sweepAt = FIRST_SWEEP;

  constructor(create: (address: string, port: number) => UdpPath) {
    this.#create = create;
  }

  /**
   * Returns the path of an address in any spelling.
   * @throws LocalError INVALID_ARGUMENT for one that is not numeric, or a port outside 1 to 65535.
   */
  pathTo(address: string, port: number): UdpPath {
    // The last path's address is canonical, and datagrams often go to one host.
    const canonical = this.#last?.address === address ? address : canonicalAddress(address);
    if (canonical === null || !Number.isInteger(port) || port < 1 || port > 65_535)
      throw new LocalError('INVALID_ARGUMENT', `${address} port ${port} is not a numeric address and port`);
    return this.path(canonical, port);
  }

  /** @param address canonical: two spellings would be two paths. */
  path(address: string, port: number): UdpPath {
    const last = this.#last;
    if (last !== undefined && last.port === port && last.address === address) return last;
    const key = `${address} ${port}`;
    const path = this.#paths.get(key)?.deref() ?? this.#insert(key, address, port);
    this.#last = path;
    return path;
  }

  /** Entries, dead ones included. */
  get size(): number {
    return this.#paths.size;
  }

  #insert(key: string, address: string, port: number): UdpPath {
    if (this.#paths.size >= this.#sweepAt) this.#sweep();
    const path = this.#create(address, port);
    this.#paths.set(key, new WeakRef(path));
    return path;
  }

  #sweep(): void {
    for (const [key, path] of this.#paths) if (path.deref() === undefined) this.#paths.delete(key);
    this.#sweepAt = Math.max(FIRST_SWEEP, 2 * this.#paths.size);
  }
}
