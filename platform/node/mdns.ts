/**
 * Multicast DNS in Node: one socket of `multicast-dns` for each interface and family, all on UDP port 5353, which other
 * responders of this host share.
 *
 * The kernel delivers a multicast datagram to every such socket, whichever interface it arrived on. So a link accepts
 * only datagrams from an address in a prefix of its own interface, or with its zone: RFC 6762 §11 requires the same
 * check.
 */
import { createSocket, type RemoteInfo, type Socket } from 'node:dgram';
import { type NetworkInterfaceInfo, networkInterfaces } from 'node:os';
import makeMdns, { type MulticastDNS } from 'multicast-dns';
import { canonicalAddress, inPrefix, parseAddress, parsePrefix } from '../../protocol/address.ts';
import type { DnsMessage, MdnsSource } from '../../protocol/discovery/index.ts';
import type { MdnsHandlers, MdnsLink, MdnsNetwork, MdnsSocket } from '../mdns.ts';
import { ArrivalLimit } from './arrival-limit.ts';
import { clock } from './clock.ts';
import { numericLookup } from './family-socket.ts';
import { recent } from './host-interfaces.ts';
import { fromPacket, type MdnsPacket, toPacket } from './mdns-packets.ts';

const GROUPS = { 4: '224.0.0.251', 6: 'ff02::fb' } as const;

interface NodeLink extends MdnsLink {
  readonly interface: string;
  readonly family: 4 | 6;
  readonly cidrs: readonly string[];
}

/**
 * Multicast DNS over this host's interfaces. @param only names of the interfaces to use; default all but loopback, or
 * loopback if it is the only one
 */
export function nodeMdns(only?: readonly string[]): MdnsNetwork {
  const interfaces = recent(readInterfaces);
  return {
    links: () => linksOf(chosen(interfaces(clock.now()).all, only)),
    // Only links of this network are passed back here.
    open: (link, handlers) => new NodeMdnsSocket(link as NodeLink, handlers, (address) => interfaces(clock.now()).addresses.has(address)),
  };
}

type Interfaces = readonly (readonly [name: string, list: readonly NetworkInterfaceInfo[]])[];

/** Reads the interfaces of this host, and all their addresses. */
function readInterfaces(): { all: Interfaces; addresses: ReadonlySet<string> } {
  const all = Object.entries(networkInterfaces()).flatMap(([name, list]) => (list === undefined ? [] : [[name, list] as const]));
  return { all, addresses: new Set(all.flatMap(([, list]) => list.flatMap(({ address }) => canonicalAddress(address) ?? []))) };
}

function chosen(all: Interfaces, only: readonly string[] | undefined): Interfaces {
  if (only !== undefined) return all.filter(([name]) => only.includes(name));
  const outside = all.filter(([, list]) => list.some(({ internal }) => !internal));
  return outside.length > 0 ? outside : all;
}

function linksOf(interfaces: Interfaces): NodeLink[] {
  return interfaces.flatMap(([name, list]) =>
    ([4, 6] as const).flatMap((family) => {
      const own = list.filter((info) => familyOf(info) === family);
      if (own.length === 0) return [];
      const addresses = [...own, ...list.filter((info) => familyOf(info) !== family)].flatMap(
        ({ address }) => canonicalAddress(address) ?? [],
      );
      const cidrs = own.flatMap(({ cidr }) => cidr ?? []);
      return [{ name: `${name} IPv${family}`, interface: name, zone: name, family, addresses, cidrs }];
    }),
  );
}

function familyOf({ family }: NetworkInterfaceInfo): 4 | 6 {
  return family === 'IPv4' ? 4 : 6;
}

class NodeMdnsSocket implements MdnsSocket {
  readonly #link: NodeLink;
  readonly #handlers: MdnsHandlers;
  readonly #isOwn: (address: string) => boolean;
  readonly #mdns: MulticastDNS;
  #sending: Promise<void> = Promise.resolve();
  #closed = false;

  /** @param isOwn whether this host has a canonical address */
  constructor(link: NodeLink, handlers: MdnsHandlers, isOwn: (address: string) => boolean) {
    this.#link = link;
    this.#handlers = handlers;
    this.#isOwn = isOwn;
    const { family } = link;
    const settings = { reuseAddr: true, lookup: laterNumericLookup, ...(family === 6 && { ipv6Only: true }) };
    const socket = createSocket({ type: `udp${family}`, ...settings }).unref();
    limitArrivals(socket);
    this.#mdns = makeMdns({
      socket,
      type: `udp${family}`,
      ip: GROUPS[family],
      bind: family === 4 ? '0.0.0.0' : '::',
      interface: family === 4 ? link.addresses[0] : `::%${link.interface}`,
    });
    this.#mdns.on('error', (error) => this.#fail(error));
    this.#mdns.on('warning', (error) => this.#warned(error));
    this.#mdns.on('packet', (packet: MdnsPacket, from: RemoteInfo) => this.#arrived(packet, from));
  }

  send(message: DnsMessage, to: MdnsSource | null): void {
    if (this.#closed) return;
    const packet = toPacket(message) as never;
    const sent = new Promise<void>((resolve) => {
      if (message.response) this.#mdns.respond(packet, to ?? undefined, () => resolve());
      else this.#mdns.query(packet, to ?? undefined, () => resolve());
    });
    this.#sending = this.#sending.then(() => sent);
  }

  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    await this.#sending;
    await new Promise<void>((resolve) => this.#mdns.destroy(resolve));
  }

  #arrived(packet: MdnsPacket, { address, port }: RemoteInfo): void {
    if (this.#closed || !this.#isFromLink(address)) return;
    const own = canonicalAddress(address.split('%')[0]!);
    this.#handlers.received(fromPacket(packet), { address, port }, own !== null && this.#isOwn(own));
  }

  #isFromLink(address: string): boolean {
    const zone = address.split('%')[1];
    if (zone !== undefined) return zone === this.#link.interface;
    const bytes = parseAddress(address);
    return bytes !== null && this.#link.cidrs.some((cidr) => inPrefix(bytes, parsePrefix(cidr)!));
  }

  /** Ignores garbage from the network; a socket that is not bound to its link is useless, and would send on another. */
  #warned(error: Error & { syscall?: string }): void {
    if (error.syscall === 'addMembership' || error.syscall === 'setMulticastInterface') this.#fail(error);
  }

  #fail(error: Error): void {
    if (this.#closed) return;
    void this.close();
    this.#handlers.failed(error);
  }
}

/** Leaves datagrams beyond the limit out before the library decodes them. */
export function limitArrivals(socket: Pick<Socket, 'emit'>): void {
  const limit = new ArrivalLimit();
  const emit = socket.emit.bind(socket) as (event: string, ...given: unknown[]) => boolean;
  socket.emit = (event: string, ...given: unknown[]): boolean => {
    const [, from] = given as [unknown, RemoteInfo | undefined];
    if (event === 'message' && from !== undefined && !limit.admits(from.address, clock.now())) return true;
    return emit(event, ...given);
  };
}

/**
 * As Node's own, whose first check of an IPv6 address takes 6 ms. Not synchronous: a socket's error must come when a
 * listener is attached.
 */
function laterNumericLookup(...[address, options, callback]: Parameters<typeof numericLookup>): void {
  process.nextTick(numericLookup, address, options, callback);
}
