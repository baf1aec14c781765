/**
 * This host's interfaces and routers, for the addresses at which peers may reach it.
 *
 * Linux tells its default routes and what an interface is; other systems tell neither to Node, so there the interface is `default` whose address the system
 * would send from (`outward-addresses.ts`), and names alone show virtual ones.
 */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { type NetworkInterfaceInfo, networkInterfaces } from 'node:os';
import { parseAddress } from '../../protocol/address.ts';
import { isLinkLocal } from '../address.ts';
import type { HostInterface } from '../environment.ts';
import { addressKind } from '../special-addresses.ts';
import { type DefaultRoute, ipv4DefaultRoutes, ipv6DefaultRoutes } from './default-routes.ts';

/** What Linux says an interface is (`/sys/class/net`). */
export interface Traits {
  /** A bridge, and none of its ports is a network card: containers or virtual machines have it. */
  readonly bridge: boolean;
  /** A TUN or TAP device: a VPN in user space, or a virtual machine. */
  readonly tun: boolean;
  /** `DEVTYPE` of its uevent, such as `wireguard`. */
  readonly type: string | null;
}

/** All that the interfaces are made of. */
export interface HostFacts {
  readonly interfaces: NodeJS.Dict<NetworkInterfaceInfo[]>;
  readonly routes: readonly DefaultRoute[];
  readonly traits: (name: string) => Traits;
  /** Addresses from which the system would send to the internet, where it tells no routes. */
  readonly outward: readonly string[];
}

/** Container bridges and VPNs by the names that their programs give them, also on macOS and Windows. */
const VIRTUAL_NAME =
  /^(docker|br-[0-9a-f]{12}$|veth|virbr|vnet\d|cni|podman|lxc|lxd|flannel|cali|cilium|kube|tailscale|wg|zt|utun|tun|tap|ipsec|feth|vmnet|vboxnet|vEthernet|VMware|VirtualBox|Tailscale|ZeroTier|WireGuard|OpenVPN)/;
/** May be a VPN, or the only way to the internet. */
const MAYBE_VIRTUAL_NAME = /^(ppp|wwan)/;
const VIRTUAL_TYPE: ReadonlySet<string> = new Set(['wireguard', 'vxlan', 'geneve', 'gre', 'ipip', 'sit']);
/** ms for which the interfaces that were read count. */
const KEPT = 1_000;
const ORDER: Readonly<Record<HostInterface['kind'], number>> = { default: 0, other: 1, virtual: 2 };

/** As Network.interfaces: those with a default route first, in the order of the routes; virtual ones last. */
export function hostInterfaces(facts: HostFacts): HostInterface[] {
  const found = new Map<string, NetworkInterfaceInfo[]>();
  for (const [label, list] of Object.entries(facts.interfaces)) {
    // An alias has a label of its own on the same interface: `eth0:1`.
    const name = label.replace(/:\d+$/, '');
    found.set(name, [...(found.get(name) ?? []), ...(list ?? [])]);
  }
  const metrics = new Map([...facts.routes].reverse().map((route) => [route.interface, facts.routes.indexOf(route)]));
  const rank = ({ name }: HostInterface): number => metrics.get(name) ?? facts.routes.length;
  // What an interface is costs several files: only where it has an address.
  return [...found]
    .map(([name, list]) => ({ name, list, addresses: usableAddresses(list) }))
    .filter(({ addresses }) => addresses.length > 0)
    .map(({ name, list, addresses }) => ({ name, addresses, kind: kindOf(name, list, facts) }))
    .sort((a, b) => ORDER[a.kind] - ORDER[b.kind] || rank(a) - rank(b));
}

/** The addresses by which others on the network reach this host, IPv4 first; those of container bridges and VPNs only where there are no others. */
export function reachableAddresses(interfaces: readonly HostInterface[]): string[] {
  const real = interfaces.filter(({ kind }) => kind !== 'virtual');
  const addresses = (real.length > 0 ? real : interfaces).flatMap((each) => each.addresses).map((cidr) => cidr.split('/')[0]!);
  return [...addresses.filter((each) => !each.includes(':')), ...addresses.filter((each) => each.includes(':'))];
}

/** As Network.gateways. */
export function gatewaysOf(routes: readonly DefaultRoute[]): string[] {
  return [...new Set(routes.flatMap(({ gateway }) => gateway ?? []))];
}

/** What the system tells now; nothing where it does not. */
export function readDefaultRoutes(): DefaultRoute[] {
  return [...ipv4DefaultRoutes(read('/proc/net/route')), ...ipv6DefaultRoutes(read('/proc/net/ipv6_route'))];
}

/** What the system tells now. @param outward see HostFacts */
export function readInterfaces(outward: readonly string[]): HostInterface[] {
  return hostInterfaces({ interfaces: readAddresses(), routes: readDefaultRoutes(), traits: readTraits, outward });
}

/**
 * Interfaces as they were at most a second ago: reading them takes a millisecond or more, and a round of a rendezvous asks some 15 times.
 * @param now monotonic ms
 */
export function recentInterfaces(read: () => readonly HostInterface[]): (now: number) => readonly HostInterface[] {
  let interfaces: readonly HostInterface[] = [];
  let readAt = Number.NEGATIVE_INFINITY;
  return (now) => {
    if (now - readAt < KEPT) return interfaces;
    interfaces = read();
    readAt = now;
    return interfaces;
  };
}

function kindOf(name: string, list: readonly NetworkInterfaceInfo[], facts: HostFacts): HostInterface['kind'] {
  const isDefault = facts.routes.some((route) => route.interface === name) || list.some(({ address }) => facts.outward.includes(address));
  const { bridge, tun, type } = facts.traits(name);
  if (tun || VIRTUAL_TYPE.has(type ?? '') || VIRTUAL_NAME.test(name)) return 'virtual';
  if (isDefault) return 'default';
  return bridge || MAYBE_VIRTUAL_NAME.test(name) ? 'virtual' : 'other';
}

/** IPv4 first, then IPv6, unique local ones last. No peer uses a link-local address: it means another host on the peer's own link. */
function usableAddresses(list: readonly NetworkInterfaceInfo[]): string[] {
  return list
    .flatMap(({ internal, cidr, address }) => {
      const bytes = parseAddress(address);
      if (internal || cidr === null || bytes === null || isLinkLocal(bytes)) return [];
      return [{ cidr, rank: bytes.length === 4 ? 0 : addressKind(bytes) === 'private' ? 2 : 1 }];
    })
    .sort((a, b) => a.rank - b.rank)
    .map(({ cidr }) => cidr);
}

/** A process without file descriptors cannot ask. */
function readAddresses(): NodeJS.Dict<NetworkInterfaceInfo[]> {
  try {
    return networkInterfaces();
  } catch {
    return {};
  }
}

function readTraits(name: string): Traits {
  const folder = `/sys/class/net/${name}`;
  const type = /^DEVTYPE=(.*)$/m.exec(read(`${folder}/uevent`))?.[1] ?? null;
  return { bridge: existsSync(`${folder}/bridge`) && !hasCard(`${folder}/brif`), tun: existsSync(`${folder}/tun_flags`), type };
}

/** Whether a port of a bridge is a device of its own, not one that software made. */
function hasCard(ports: string): boolean {
  try {
    return readdirSync(ports).some((port) => existsSync(`/sys/class/net/${port}/device`));
  } catch {
    return false;
  }
}

function read(file: string): string {
  try {
    return readFileSync(file, 'latin1');
  } catch {
    return '';
  }
}
