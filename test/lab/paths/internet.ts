/**
 * An internet for the lab: a core with the base station, and on either side of it homes behind three routers.
 *
 *   host ─ lan ─ box (NAT) ─ wan ─ edge ─ middle ─ inner ─ core ─ inner ─ middle ─ edge ─ wan ─ box (NAT) ─ lan ─ host
 *
 * A packet with the hop limit 4 passes the box and ends before the core; one with 7 ends at the other side's middle
 * router, or one before, and never reaches the other box. All homes of a side are connected to the same edge. Both
 * sides use the same private addresses, as homes do.
 */
import { execFileSync } from 'node:child_process';
import { Namespace } from '../namespaces.ts';
import { type NatKind, rulesOf } from './nat-boxes.ts';

export type Side = 'client' | 'device';

/** Addresses of the base station; it answers STUN at the second one, too, when configured so. */
export const STATION_ADDRESS = '192.0.2.1';
export const SECOND_ADDRESS = '192.0.2.2';
export const STATION_ADDRESSES_V6 = ['2001:db8::1', '2001:db8::2'] as const;
/** Address of another host in the core. */
export const OTHER_ADDRESS = '192.0.2.3';

/**
 * Public networks of the sides: homes have 8 addresses each, 4 to the edge and 4 inside for those without a NAT. IPv6
 * as the start of a prefix.
 */
const NETWORKS: Readonly<Record<Side, { readonly v4: string; readonly v6: string; readonly host: number }>> = {
  client: { v4: '198.51.100', v6: '2001:db8:c0', host: 10 },
  device: { v4: '203.0.113', v6: '2001:db8:d0', host: 20 },
};
const MAX_HOMES = 32;
const ROUTERS = 3;

export class Internet {
  readonly core = new Namespace({ ipv6: true });
  /** The routers of a side from the edge to the core. */
  readonly routers: Readonly<Record<Side, readonly Namespace[]>>;
  readonly #homes: Home[] = [];
  readonly #numbers = { client: 0, device: 0 };

  constructor() {
    makeRouter(this.core);
    this.core.ip(
      [STATION_ADDRESS, SECOND_ADDRESS, OTHER_ADDRESS, ...STATION_ADDRESSES_V6]
        .map((address) => `address add ${address} dev lo`)
        .join('\n'),
    );
    this.routers = { client: this.#chain('client', 1), device: this.#chain('device', 2) };
  }

  /** A home with a host behind a box of that kind. */
  home(side: Side, kind: NatKind): Home {
    const number = this.#numbers[side]++;
    if (number >= MAX_HOMES) throw new Error(`more than ${MAX_HOMES} homes`);
    const home = new Home(side, kind, number, this.routers[side][0]!);
    this.#homes.push(home);
    return home;
  }

  /** Ends the processes in it. */
  remove(): void {
    for (const home of this.#homes) home.remove();
    for (const each of [...this.routers.client, ...this.routers.device, this.core]) each.remove();
  }

  #chain(side: Side, number: number): readonly Namespace[] {
    const routers = Array.from({ length: ROUTERS }, () => new Namespace({ ipv6: true }));
    const { v4, v6 } = NETWORKS[side];
    const homes = [`${v4}.0/24`, `${v6}00::/40`];
    for (const [index, router] of routers.entries()) {
      makeRouter(router);
      const above = routers[index + 1];
      const [lower, upper] = ends(`198.18.${10 * number + index}`, `2001:db8:ffff:${number}${index}`);
      connect([router, 'above', lower], [above ?? this.core, above === undefined ? side : 'below', upper]);
      router.ip(defaultRoutes(upper, 'above'));
      // The core has many addresses: packets without a source address leave it with the base station's.
      const source = above === undefined ? [STATION_ADDRESS, STATION_ADDRESSES_V6[0]] : [];
      const toHomes = homes.map(
        (to, family) => `route add ${to} via ${bare(lower[family]!)}${source[family] ? ` src ${source[family]}` : ''}`,
      );
      (above ?? this.core).ip(toHomes.join('\n'));
    }
    return routers;
  }
}

/** A box with hosts behind it. */
export class Home {
  readonly kind: NatKind;
  /** Address of its box outside; of its host for `open`. */
  readonly outside: string;
  /** From the hosts outwards; two for `double`. */
  readonly boxes: readonly Namespace[];
  readonly host: Namespace;
  readonly #side: Side;
  readonly #hosts: Namespace[] = [];
  readonly #wan: readonly [v4: string, number: number];

  constructor(side: Side, kind: NatKind, number: number, edge: Namespace) {
    const { v4, v6, host } = NETWORKS[side];
    this.kind = kind;
    this.#side = side;
    this.#wan = [v4, 8 * number];
    const ipv6 = kind === 'v6-firewall';
    this.boxes = Array.from({ length: kind === 'double' ? 2 : 1 }, () => new Namespace({ ipv6 }));
    const outermost = this.boxes.at(-1)!;
    for (const box of this.boxes) makeRouter(box);
    const lan6 = `${v6}${hexByte(number)}:1`;
    const outside = wanEnds(v4, 8 * number, ipv6 ? `${v6}${hexByte(number)}:0` : null);
    connect([outermost, 'wan', outside.box], [edge, `home${number}`, outside.edge]);
    outermost.ip(defaultRoutes(outside.edge, 'wan'));
    edge.ip(`route add ${v4}.${8 * number + 4}/30 via ${v4}.${8 * number + 2}`);
    if (ipv6) edge.ip(`route add ${lan6}::/64 via ${v6}${hexByte(number)}:0::1`);
    if (this.boxes.length > 1) {
      connect([this.boxes[0]!, 'wan', ['100.64.0.2/30']], [outermost, 'lan', ['100.64.0.1/30']]);
      this.boxes[0]!.ip('route add default via 100.64.0.1');
    }
    makeLan(this.boxes[0]!, kind === 'open' ? [`${v4}.${8 * number + 5}/30`] : ['192.168.1.1/24', ...(ipv6 ? [`${lan6}::1/64`] : [])]);
    this.outside = kind === 'open' ? `${v4}.${8 * number + 6}` : `${v4}.${8 * number + 2}`;
    this.host =
      kind === 'open'
        ? this.addHost([`${this.outside}/30`], [`${v4}.${8 * number + 5}`])
        : this.addHost(
            [`192.168.1.${host}/24`, ...(ipv6 ? [`${lan6}::${host}/64`] : [])],
            ['192.168.1.1', ...(ipv6 ? [`${lan6}::1`] : [])],
          );
    this.#makeBoxes(host);
  }

  /** One more host in the same network. @param routers of its default routes */
  addHost(addresses: readonly string[], routers: readonly string[] = ['192.168.1.1']): Namespace {
    const host = new Namespace({ ipv6: routers.length > 1 });
    const port = `port${this.#hosts.length}`;
    connect([host, 'eth0', addresses], [this.boxes[0]!, port, []]);
    this.boxes[0]!.ip(`link set dev ${port} master lan`);
    host.ip(defaultRoutes(routers, 'eth0'));
    this.#hosts.push(host);
    return host;
  }

  remove(): void {
    for (const each of [...this.#hosts, ...this.boxes]) each.remove();
  }

  #makeBoxes(host: number): void {
    const [v4, first] = this.#wan;
    const station = [STATION_ADDRESS, SECOND_ADDRESS];
    const outside = `${v4}.${first + 2}`;
    for (const [index, box] of this.boxes.entries()) {
      const inside = index === 0 ? `192.168.1.${host}` : '100.64.0.2';
      box.nft(rulesOf(this.kind, { outside: index === this.boxes.length - 1 ? outside : '100.64.0.2', inside, station }));
    }
  }

  get side(): Side {
    return this.#side;
  }
}

/** A namespace, its interface, and the addresses there. */
type End = readonly [namespace: Namespace, name: string, addresses: readonly string[]];

/**
 * A cable: a pair of veth devices that carry each packet alone: otherwise routers would treat many as one of their
 * total length.
 */
export function connect(a: End, b: End): void {
  execFileSync('ip', ['link', 'add', a[1], 'netns', a[0].name, 'type', 'veth', 'peer', 'name', b[1], 'netns', b[0].name]);
  for (const [namespace, name, addresses] of [a, b])
    namespace.ip([`link set dev ${name} gso_max_segs 1 up`, ...addAddresses(addresses, name)].join('\n'));
}

function addAddresses(addresses: readonly string[], name: string): string[] {
  return addresses.map((address) => `address add ${address} dev ${name}`);
}

function makeRouter(namespace: Namespace): void {
  namespace.set('net/ipv4/ip_forward', '1');
  namespace.set('net/ipv6/conf/all/forwarding', '1');
}

/**
 * A bridge that connects hosts. Rules for routed packets do not apply to packets that stay on it, and multicast reaches
 * all hosts from the beginning.
 */
function makeLan(box: Namespace, addresses: readonly string[]): void {
  box.set('net/bridge/bridge-nf-call-iptables', '0');
  box.set('net/bridge/bridge-nf-call-ip6tables', '0');
  box.ip(['link add lan type bridge mcast_snooping 0', 'link set lan up', ...addAddresses(addresses, 'lan')].join('\n'));
}

/** Both ends of a link between routers. */
function ends(v4: string, v6: string): [lower: string[], upper: string[]] {
  return [
    [`${v4}.1/30`, `${v6}::1/64`],
    [`${v4}.2/30`, `${v6}::2/64`],
  ];
}

function wanEnds(v4: string, first: number, v6: string | null): { edge: string[]; box: string[] } {
  return {
    edge: [`${v4}.${first + 1}/30`, ...(v6 === null ? [] : [`${v6}::2/64`])],
    box: [`${v4}.${first + 2}/30`, ...(v6 === null ? [] : [`${v6}::1/64`])],
  };
}

/** @param routers addresses, with or without a prefix length, at most one of each family */
function defaultRoutes(routers: readonly string[], device: string): string {
  return routers.map((router) => `route add default via ${bare(router)} dev ${device}`).join('\n');
}

/** Without the prefix length. */
function bare(address: string): string {
  return address.split('/')[0]!;
}

function hexByte(value: number): string {
  return value.toString(16).padStart(2, '0');
}
