/**
 * This host's interfaces and routers, for the addresses at which peers may reach it.
 *
 * Linux reports its default routes and the kind of an interface. Other systems report neither to Node: there an
 * interface is `default` if the system would send from its address (`outward-addresses.ts`), and only names reveal
 * virtual ones.
 */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { type NetworkInterfaceInfo, networkInterfaces } from 'node:os';
import { isLinkLocal, parseAddress } from '../../protocol/address.ts';
import { orElse } from '../../protocol/or-else.ts';
import { addressKind } from '../../protocol/special-addresses.ts';
import type { HostInterface } from '../environment.ts';
import { type DefaultRoute, ipv4DefaultRoutes, ipv6DefaultRoutes } from './default-routes.ts';

/** Properties of an interface on Linux (`/sys/class/net`). */
export interface Traits {
  /** A bridge without a network card among its ports: one of containers or virtual machines. */
  readonly bridge: boolean;
  /** A TUN or TAP device: a VPN in user space, or a virtual machine. */
  readonly tun: boolean;
  /** `DEVTYPE` of its uevent, such as `wireguard`. */
  readonly type: string | null;
}

/** Input from which the interfaces are derived. */
export interface HostFacts {
  readonly interfaces: NodeJS.Dict<NetworkInterfaceInfo[]>;
  readonly routes: readonly DefaultRoute[];
  readonly traits: (name: string) => Traits;
  /** Addresses from which the system would send to the internet, if it reports no routes. */
  readonly outward: readonly string[];
}

/** Container bridges and VPNs by the names that their programs use, also on macOS and Windows. */
const VIRTUAL_NAME =
  /^(docker|br-[0-9a-f]{12}$|veth|virbr|vnet\d|cni|podman|lxc|lxd|flannel|cali|cilium|kube|tailscale|wg|zt|utun|tun|tap|ipsec|feth|vmnet|vboxnet|vEthernet|VMware|VirtualBox|Tailscale|ZeroTier|WireGuard|OpenVPN)/;
/** Possibly a VPN, or the only way to the internet. */
const MAYBE_VIRTUAL_NAME = /^(ppp|wwan)/;
const VIRTUAL_TYPE: ReadonlySet<string> = new Set(['wireguard', 'vxlan', 'geneve', 'gre', 'ipip', 'sit']);
/** ms for which interfaces stay valid once read. */
const KEPT = 1_000;
const ORDER: Readonly<Record<HostInterface['kind'], number>> = { default: 0, other: 1, virtual: 2 };

/** As Network.interfaces: those with a default route first, in the order of the routes; virtual ones last. */
export function hostInterfaces(facts: HostFacts): HostInterface[] {
  const found = new Map<string, NetworkInterfaceInfo[]>();
  for (const [label, list] of Object.entries(facts.interfaces)) {
    // An alias has its own label on the same interface: `eth0:1`.
    const name = label.replace(/:\d+$/, '');
    found.set(name, [...(found.get(name) ?? []), ...(list ?? [])]);
  }
  const metrics = new Map([...facts.routes].reverse().map((route) => [route.interface, facts.routes.indexOf(route)]));
  const rank = ({ name }: HostInterface): number => metrics.get(name) ?? facts.routes.length;
  // An interface's traits are in several files: they are read only for interfaces with an address.
  return [...found]
    .map(([name, list]) => ({ name, list, addresses: usableAddresses(list) }))
    .filter(({ addresses }) => addresses.length > 0)
    .map(({ name, list, addresses }) => ({ name, addresses, kind: kindOf(name, list, facts) }))
    .sort((a, b) => ORDER[a.kind] - ORDER[b.kind] || rank(a) - rank(b));
}

/**
 * Returns the addresses at which other hosts on the network reach this one, IPv4 first; those of container bridges and
 * VPNs only if there are no others.
 */
export function reachableAddresses(interfaces: readonly HostInterface[]): string[] {
  const real = interfaces.filter(({ kind }) => kind !== 'virtual');
  const addresses = (real.length > 0 ? real : interfaces).flatMap((each) => each.addresses).map((cidr) => cidr.split('/')[0]!);
  return [...addresses.filter((each) => !each.includes(':')), ...addresses.filter((each) => each.includes(':'))];
}

/** As Network.gateways. */
export function gatewaysOf(routes: readonly DefaultRoute[]): string[] {
  return [...new Set(routes.flatMap(({ gateway }) => gateway ?? []))];
}

/** Reads the system's routes; empty if it reports none. */
export function readDefaultRoutes(): DefaultRoute[] {
  return [...ipv4DefaultRoutes(read('/proc/net/route')), ...ipv6DefaultRoutes(read('/proc/net/ipv6_route'))];
}

/** Reads the system's interfaces. @param outward see HostFacts */
export function readInterfaces(outward: readonly string[]): HostInterface[] {
  // It throws in a process without free file descriptors.
  return hostInterfaces({ interfaces: orElse(networkInterfaces, {}), routes: readDefaultRoutes(), traits: readTraits, outward });
}

/**
 * Caches what is read of the interfaces: reading takes a millisecond or more, and a round of a rendezvous needs them
 * some 15 times.
 * @param time ms for which it stays valid, by default a second; `now` of the result is monotonic ms
 */
export function recent<T>(read: () => T, time = KEPT): (now: number) => T {
  let value: T;
  let readAt = Number.NEGATIVE_INFINITY;
  return (now) => {
    if (now - readAt < time) return value;
    value = read();
    readAt = now;
    return value;
  };
}

function kindOf(name: string, list: readonly NetworkInterfaceInfo[], facts: HostFacts): HostInterface['kind'] {
  const isDefault = facts.routes.some((route) => route.interface === name) || list.some(({ address }) => facts.outward.includes(address));
  const { bridge, tun, type } = facts.traits(name);
  if (tun || VIRTUAL_TYPE.has(type ?? '') || VIRTUAL_NAME.test(name)) return 'virtual';
  if (isDefault) return 'default';
  return bridge || MAYBE_VIRTUAL_NAME.test(name) ? 'virtual' : 'other';
}

/**
 * IPv4 first, then IPv6, unique local ones last. Link-local addresses are excluded: for a peer they mean another host
 * on its own link.
 */
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

function readTraits(name: string): Traits {
  const folder = `/sys/class/net/${name}`;
  const type = /^DEVTYPE=(.*)$/m.exec(read(`${folder}/uevent`))?.[1] ?? null;
  return { bridge: existsSync(`${folder}/bridge`) && !hasCard(`${folder}/brif`), tun: existsSync(`${folder}/tun_flags`), type };
}

/** Returns whether a port of a bridge is a hardware device. */
function hasCard(ports: string): boolean {
  return orElse(() => readdirSync(ports), []).some((port) => existsSync(`/sys/class/net/${port}/device`));
}

function read(file: string): string {
  return orElse(() => readFileSync(file, 'latin1'), '');
}
