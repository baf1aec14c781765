/** Interfaces and routers of this host: parsed from texts that Linux wrote. */
import { Socket } from 'node:dgram';
import { type NetworkInterfaceInfo, networkInterfaces } from 'node:os';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import type { HostInterface } from '../../../platform/environment.ts';
import { type DefaultRoute, ipv4DefaultRoutes, ipv6DefaultRoutes } from '../../../platform/node/default-routes.ts';
import { nodeEnvironment } from '../../../platform/node/environment.ts';
import {
  gatewaysOf,
  type HostFacts,
  hostInterfaces,
  reachableAddresses,
  recent,
  type Traits,
} from '../../../platform/node/host-interfaces.ts';
import { OutwardAddresses, sourceFor } from '../../../platform/node/outward-addresses.ts';
import { parsePrefix } from '../../../protocol/address.ts';

/** A laptop on Wi-Fi and cable, with Docker, and a VPN whose link has no router. */
const ROUTE = `Iface	Destination	Gateway 	Flags	RefCnt	Use	Metric	Mask		MTU	Window	IRTT
wlan0	00000000	0102A8C0	0003	0	0	600	00000000	0	0	0
eth0	00000000	FE00000A	0003	0	0	100	00000000	0	0	0
ppp0	00000000	00000000	0001	0	0	700	00000000	0	0	0
dead0	00000000	0103A8C0	0002	0	0	50	00000000	0	0	0
docker0	000011AC	00000000	0001	0	0	0	0000FFFF	0	0	0
tun0	00000000	0100080A	0003	0	0	0	00000080	0	0	0
short	00000000
`;
const zeros = '0'.repeat(32);
const IPV6_ROUTE = `
fd000000000000000000000000000000 40 ${zeros} 00 ${zeros} 00000100 00000001 00000000 00000001     eth0
${zeros} 00 ${zeros} 00 fe80000000000000021122fffe334455 00000400 00000002 00000000 00450003     eth0
${zeros} 00 ${zeros} 00 20010db8000000000000000000000001 00000100 00000002 00000000 00000003    wlan0
${zeros} 00 20010db8000000000000000000000000 40 fe80000000000000021122fffe334455 00000001 00000002 00000000 00450003     eth0
${zeros} 00 ${zeros} 00 ${zeros} ffffffff 00000001 00000000 00200200       lo
`;

describe('default routes', () => {
  it('of IPv4 are sorted by their metrics', () => {
    expect(ipv4DefaultRoutes(ROUTE, 'LE')).toEqual([
      { interface: 'eth0', gateway: '10.0.0.254', metric: 100 },
      { interface: 'wlan0', gateway: '192.168.2.1', metric: 600 },
      { interface: 'ppp0', gateway: null, metric: 700 },
    ]);
  });

  it('of IPv4 are byte-swapped on a big-endian machine', () => {
    expect(ipv4DefaultRoutes('eth0 00000000 C0A80201 0003 0 0 0 00000000', 'BE')).toEqual([
      { interface: 'eth0', gateway: '192.168.2.1', metric: 0 },
    ]);
  });

  it('of IPv6 have a zone where the router is link-local, and exclude unreachable and source-specific ones', () => {
    expect(ipv6DefaultRoutes(IPV6_ROUTE)).toEqual([
      { interface: 'wlan0', gateway: '2001:db8::1', metric: 0x100 },
      { interface: 'eth0', gateway: 'fe80::211:22ff:fe33:4455%eth0', metric: 0x400 },
    ]);
  });

  it('are empty for a text that is no table', () => {
    for (const text of ['', '\n\n', 'eth0', 'eth0 00000000 xx 0003 0 0 0 00000000', `${zeros} 00`]) {
      expect([...ipv4DefaultRoutes(text), ...ipv6DefaultRoutes(text)]).toEqual([]);
    }
  });

  it('name each router once', () => {
    const route = (gateway: string | null): DefaultRoute => ({ interface: 'eth0', gateway, metric: 0 });
    expect(gatewaysOf([route('10.0.0.1'), route(null), route('fe80::1%eth0'), route('10.0.0.1')])).toEqual(['10.0.0.1', 'fe80::1%eth0']);
  });
});

/** Of this very host. */
const own = Object.values(networkInterfaces()).flatMap((list) => list ?? []);
const hasInterface = own.some(({ internal, family, address }) => !internal && family === 'IPv4' && !address.startsWith('169.254.'));
const PLAIN: Traits = { bridge: false, tun: false, type: null };

function info(cidr: string, internal = false): NetworkInterfaceInfo {
  const address = cidr.split('/')[0]!;
  const common = { address, netmask: '', mac: '', internal, cidr };
  return address.includes(':') ? { ...common, family: 'IPv6', scopeid: 0 } : { ...common, family: 'IPv4' };
}

function interfaces(addresses: Record<string, string[]>, more: Partial<HostFacts> & { is?: Record<string, Partial<Traits>> } = {}) {
  const list = Object.fromEntries(Object.entries(addresses).map(([name, cidrs]) => [name, cidrs.map((cidr) => info(cidr, name === 'lo'))]));
  const traits = (name: string): Traits => ({ ...PLAIN, ...more.is?.[name] });
  return hostInterfaces({ interfaces: list, routes: [], outward: [], traits, ...more });
}

const kinds = (list: ReturnType<typeof interfaces>): string[] => list.map(({ name, kind }) => `${name} ${kind}`);
const over = (...names: string[]): DefaultRoute[] => names.map((name, metric) => ({ interface: name, gateway: '10.0.0.1', metric }));

describe('interfaces', () => {
  it('are in the order default, other, virtual, those with routes by the order of these', () => {
    const list = interfaces(
      { lo: ['127.0.0.1/8'], docker0: ['172.17.0.1/16'], eth1: ['10.1.0.2/24'], wlan0: ['192.168.2.7/24'], eth0: ['10.0.0.7/24'] },
      { routes: over('eth0', 'wlan0', 'eth0') },
    );
    expect(kinds(list)).toEqual(['eth0 default', 'wlan0 default', 'eth1 other', 'docker0 virtual']);
  });

  it('have IPv4 addresses, then global, then unique local ones, and no link-local ones', () => {
    const [eth0] = interfaces({
      eth0: ['fe80::1/64', '169.254.7.7/16', 'fd00::7/64', '2001:db8::7/64', '10.0.0.7/24'],
      'eth0:1': ['10.0.0.8/24'],
      eth1: ['fe80::2/64'],
    });
    expect(eth0!.addresses).toEqual(['10.0.0.7/24', '10.0.0.8/24', '2001:db8::7/64', 'fd00::7/64']);
    expect(interfaces({ eth1: ['fe80::2/64'], eth2: ['169.254.8.8/16'] })).toEqual([]);
  });

  it.each([
    'docker0',
    'br-0123456789ab',
    'veth12',
    'virbr0',
    'cni0',
    'podman1',
    'lxcbr0',
    'tailscale0',
    'wg0',
    'zt7nnig34o',
    'utun3',
    'vEthernet (WSL)',
  ])('named %s are virtual, also with a default route', (name) => {
    expect(kinds(interfaces({ [name]: ['10.9.0.1/24'] }, { routes: over(name) }))).toEqual([`${name} virtual`]);
  });

  it('are virtual by their type in Linux', () => {
    for (const is of [{ tun: true }, { type: 'wireguard' }, { bridge: true }])
      expect(kinds(interfaces({ net0: ['10.9.0.1/24'] }, { is: { net0: is } }))).toEqual(['net0 virtual']);
    expect(kinds(interfaces({ net0: ['10.9.0.1/24'] }, { is: { net0: { type: 'wlan' } } }))).toEqual(['net0 other']);
  });

  it('that are a bridge or PPP are default when a default route leads over them', () => {
    const is = { br0: { bridge: true } };
    for (const name of ['br0', 'ppp0', 'br-lan']) {
      expect(kinds(interfaces({ [name]: ['10.9.0.1/24'] }, { is, routes: over(name) }))).toEqual([`${name} default`]);
      expect(kinds(interfaces({ [name]: ['10.9.0.1/24'] }, { is }))).toEqual([`${name} ${name === 'br-lan' ? 'other' : 'virtual'}`]);
    }
  });

  it('are default by the source address of the system, where it lists no routes', () => {
    const addresses = { en0: ['10.0.0.7/24'], en1: ['10.0.1.7/24'], utun0: ['10.9.0.1/24'] };
    expect(kinds(interfaces(addresses, { outward: ['10.0.1.7', '10.9.0.1'] }))).toEqual(['en1 default', 'en0 other', 'utun0 virtual']);
  });

  it('are examined only where they have an address that counts', () => {
    const asked: string[] = [];
    const traits = (name: string): Traits => {
      asked.push(name);
      return PLAIN;
    };
    interfaces({ lo: ['127.0.0.1/8'], veth1: ['fe80::1/64'], eth0: ['10.0.0.7/24'], veth2: [] }, { traits });
    expect(asked).toEqual(['eth0']);
  });

  it('are read at most once a second', () => {
    let reads = 0;
    const interfaces = recent(() => [{ name: `eth${++reads}`, addresses: ['10.0.0.7/24'], kind: 'default' }]);
    const seen = [5, 5, 1_004, 1_005, 2_000, 2_005].map((now) => interfaces(now)[0]!.name);
    expect(seen).toEqual(['eth1', 'eth1', 'eth1', 'eth2', 'eth2', 'eth3']);
  });

  it.skipIf(!hasInterface)(`of this host are its own${hasInterface ? '' : ' (skipped: needs an interface with an IPv4 address)'}`, () => {
    const { interfaces, gateways } = nodeEnvironment().network;
    expect(interfaces!()).toBe(interfaces!());
    const cidrs = own.map(({ cidr }) => cidr);
    const found = interfaces!().flatMap(({ addresses }) => addresses);
    expect(found.length).toBeGreaterThan(0);
    for (const address of found) {
      expect(cidrs).toContain(address);
      expect(parsePrefix(address)).not.toBeNull();
    }
    for (const gateway of gateways!()) expect(parsePrefix(gateway)).not.toBeNull();
  });
});

describe('addresses where others reach this host', () => {
  const docker: HostInterface = { name: 'docker0', kind: 'virtual', addresses: ['172.17.0.1/16'] };
  const cable: HostInterface = { name: 'eth0', kind: 'default', addresses: ['2001:db8::9/64', '10.0.0.9/8'] };

  it('are IPv4 first, and none of a container bridge beside others', () => {
    expect(reachableAddresses([docker, cable])).toEqual(['10.0.0.9', '2001:db8::9']);
  });

  it('are those of a virtual interface where there is no other', () => {
    expect(reachableAddresses([docker])).toEqual(['172.17.0.1']);
    expect(reachableAddresses([])).toEqual([]);
  });
});

describe('the source addresses of the system', () => {
  const hasRouter = (nodeEnvironment().network.gateways?.() ?? []).some((gateway) => !gateway.includes(':'));

  it.skipIf(!hasRouter)(`are its own${hasRouter ? '' : ' (skipped: needs an IPv4 router)'}`, async () => {
    const outward = new OutwardAddresses();
    expect(outward.now()).toEqual([]);
    await outward.refresh();
    expect(outward.now().length).toBeGreaterThan(0);
    for (const address of outward.now()) expect(own.map((each) => each.address)).toContain(address);
  });

  it('are those of sockets connected to remote addresses, and send nothing', async () => {
    const sources = { udp4: '10.0.0.7', udp6: '2001:db8::7' };
    const connected: unknown[] = [];
    const { prototype } = Socket;
    const spies = [
      vi.spyOn(prototype, 'connect').mockImplementation(function (this: Socket, _port: number, address: unknown) {
        connected.push(address);
        this.emit('connect');
      }),
      vi.spyOn(prototype, 'address').mockImplementation(function (this: Socket) {
        const { type } = this as unknown as { type: keyof typeof sources };
        return { address: sources[type], family: type, port: 1 };
      }),
    ];
    const send = vi.spyOn(prototype, 'send').mockImplementation(() => {});
    onTestFinished(() => {
      for (const spy of [...spies, send]) spy.mockRestore();
    });
    const outward = new OutwardAddresses();
    await outward.refresh();
    expect([outward.now(), connected, send.mock.calls]).toEqual([Object.values(sources), ['192.0.2.1', '2001:db8::1'], []]);
  });

  it('are null where there is no route', async () => {
    expect([await sourceFor('udp4', '127.0.0.1'), await sourceFor('udp4', '2001:db8::1')]).toEqual(['127.0.0.1', null]);
  });
});
