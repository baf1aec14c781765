/** Ports mapped by UPnP, with a stand-in for the UPnP package. */
import { describe, expect, it } from 'vitest';
import type { SocketAddress } from '../../../protocol/control/index.ts';
import { type HostInterface, type Log, silentLog } from '../../../transport/environment.ts';
import { nodeUpnp, type UpnpPackage } from '../../../transport/node/upnp.ts';

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
const eth0: HostInterface = { name: 'eth0', addresses: ['192.168.1.7/24'], kind: 'default' };
const network = { gateways: () => ['192.168.1.1'], interfaces: () => [eth0] };

interface Behaviour {
  /** The router refuses. */
  map?: boolean;
  /** It has mapped, and then does not report its address. */
  address?: boolean;
  /** It does not answer before the request is cancelled. */
  silent?: boolean;
  /** It answers at the moment when the request is cancelled. */
  late?: boolean;
}

/** Finds routers at these addresses and never ends by itself. */
function setUp(hosts: readonly string[], fails: Behaviour = {}) {
  const routers = { gateways: ['192.168.1.1'], addresses: ['192.168.1.7/24'] };
  const calls: string[] = [];
  const lines: string[] = [];
  const log: Log = { ...silentLog, debug: (message) => void lines.push(message), warn: (message) => void lines.push(`warn: ${message}`) };
  const upnp: UpnpPackage = {
    upnpNat: () => ({
      async *findGateways({ signal }) {
        for (const host of hosts)
          yield {
            host,
            map: async (port, own, { protocol, signal: given }) => {
              calls.push(`map ${host} ${port} ${own} ${protocol}`);
              if (fails.silent === true) await new Promise((_, reject) => given.addEventListener('abort', () => reject(given.reason)));
              if (fails.late === true) await new Promise((resolve) => given.addEventListener('abort', resolve));
              if (fails.map === true) throw new Error('Code 718');
              if (fails.address === true) throw new Error('Code 501');
              return { externalPort: port + 1 };
            },
            externalIp: async () => '11.22.33.44',
            stop: async () => void calls.push(`stop ${host}`),
          };
        await new Promise((resolve) => signal.addEventListener('abort', resolve));
      },
    }),
  };
  const changes: (readonly SocketAddress[])[] = [];
  const own = { gateways: () => routers.gateways, interfaces: () => [{ ...eth0, addresses: routers.addresses }] };
  const mapper = nodeUpnp({ network: own, log, load: async () => upnp });
  return { routers, mapper, calls, changes, lines, start: () => mapper.start(5000, (mapped) => void changes.push(mapped)) };
}

describe('UPnP', () => {
  it('maps at our own router, with our address there, and deletes the mapping at the end', async () => {
    const { mapper, calls, changes, start } = setUp(['192.168.1.1']);
    start();
    start();
    await turn();
    expect(changes).toEqual([[{ address: '11.22.33.44', port: 5001 }]]);
    await mapper.close();
    await mapper.close();
    expect(calls).toEqual(['map 192.168.1.1 5000 192.168.1.7 udp', 'stop 192.168.1.1']);
  });

  it('asks no other host that claims to be a router, and examines at most 32', async () => {
    const others = Array.from({ length: 31 }, (_, i) => `192.168.1.${100 + i}`);
    const first = setUp([...others, '192.168.1.1']);
    first.start();
    await turn();
    await first.mapper.close();
    expect(first.calls).toEqual(['map 192.168.1.1 5000 192.168.1.7 udp', 'stop 192.168.1.1']);
    expect(first.lines).toEqual(new Array(31).fill('UPnP: not our router'));
    const second = setUp([...others, '127.0.0.1', '192.168.1.1']);
    second.start();
    await turn();
    await second.mapper.close();
    expect(second.calls).toEqual([]);
  });

  it('logs the refusal of a router', async () => {
    const { mapper, changes, start, lines } = setUp(['192.168.1.1'], { map: true });
    start();
    await turn();
    expect([changes, lines]).toEqual([[], ['no port mapping by UPnP']]);
    await mapper.close();
  });

  it.each<[string, Behaviour]>([
    ['refuses', { map: true }],
    ['does not say its address, or only after 5 s,', { address: true }],
  ])('makes a router that %s delete a possible mapping: the package would renew it', async (_, fails) => {
    const { mapper, calls, changes, start } = setUp(['192.168.1.1'], fails);
    start();
    await turn();
    expect([calls, changes]).toEqual([['map 192.168.1.1 5000 192.168.1.7 udp', 'stop 192.168.1.1'], []]);
    await mapper.close();
    expect(calls.length).toBe(2);
  });

  it('that closes during a request makes the router delete a possible mapping', async () => {
    const { mapper, calls, start } = setUp(['192.168.1.1'], { silent: true });
    start();
    await turn();
    expect(calls).toEqual(['map 192.168.1.1 5000 192.168.1.7 udp']);
    await mapper.close();
    expect(calls.slice(1)).toEqual(['stop 192.168.1.1']);
  });

  it('that cannot be loaded has no effect', async () => {
    const lines: string[] = [];
    const load = () => Promise.reject(new Error('Cannot find package'));
    const mapper = nodeUpnp({ network, log: { ...silentLog, debug: (message) => void lines.push(message) }, load });
    mapper.start(5000, () => expect.unreachable());
    await turn();
    expect(lines).toEqual(['no port mapping by UPnP']);
    await mapper.close();
  });

  it('that was closed does not start', async () => {
    const { mapper, calls, start } = setUp(['192.168.1.1']);
    await mapper.close();
    start();
    await turn();
    expect(calls).toEqual([]);
  });
});

describe('UPnP, when the network changes,', () => {
  it('ends the mapping at the router that is gone, and maps at the new one', async () => {
    const { routers, mapper, calls, changes, start } = setUp(['192.168.1.1', '10.0.0.1']);
    start();
    await turn();
    const mapped = { address: '11.22.33.44', port: 5001 };
    expect(changes).toEqual([[mapped]]);
    Object.assign(routers, { gateways: ['10.0.0.1'], addresses: ['10.0.0.7/8'] });
    mapper.refresh();
    expect(changes).toEqual([[mapped], []]);
    await turn();
    expect(changes).toEqual([[mapped], [], [mapped]]);
    expect(calls).toEqual(['map 192.168.1.1 5000 192.168.1.7 udp', 'stop 192.168.1.1', 'map 10.0.0.1 5000 10.0.0.7 udp']);
    await mapper.close();
    expect(calls.slice(3)).toEqual(['stop 10.0.0.1']);
  });

  it('maps to our new address', async () => {
    const { routers, mapper, calls, changes, start } = setUp(['192.168.1.1']);
    start();
    await turn();
    routers.addresses = ['192.168.1.8/24'];
    mapper.refresh();
    await turn();
    expect(calls.slice(1)).toEqual(['stop 192.168.1.1', 'map 192.168.1.1 5000 192.168.1.8 udp']);
    expect(changes.length).toBe(3);
    await mapper.close();
  });

  it('keeps the mapping of a router that is still there', async () => {
    const { routers, mapper, calls, changes, start } = setUp(['192.168.1.1', '192.168.1.2', '192.168.1.3']);
    routers.gateways = ['192.168.1.1', '192.168.1.2'];
    start();
    await turn();
    expect(calls.length).toBe(2);
    routers.gateways = ['192.168.1.2', '192.168.1.3'];
    mapper.refresh();
    await turn();
    expect(calls.slice(2)).toEqual(['stop 192.168.1.1', 'map 192.168.1.3 5000 192.168.1.7 udp']);
    expect(changes.map(({ length }) => length)).toEqual([1, 2, 1, 2]);
    await mapper.close();
    expect(calls.slice(4).sort()).toEqual(['stop 192.168.1.2', 'stop 192.168.1.3']);
  });

  it('searches also when there was none at first', async () => {
    const { routers, mapper, calls, start } = setUp(['192.168.1.1']);
    routers.gateways = [];
    mapper.refresh();
    start();
    await turn();
    expect(calls).toEqual([]);
    routers.gateways = ['192.168.1.1'];
    mapper.refresh();
    await turn();
    expect(calls).toEqual(['map 192.168.1.1 5000 192.168.1.7 udp']);
    await mapper.close();
  });

  it.each<Behaviour>([{ silent: true }, { late: true }])('abandons the request to a router: %j', async (fails) => {
    const { routers, mapper, calls, changes, start } = setUp(['192.168.1.1'], fails);
    start();
    await turn();
    routers.gateways = [];
    mapper.refresh();
    await turn();
    expect([calls, changes]).toEqual([['map 192.168.1.1 5000 192.168.1.7 udp', 'stop 192.168.1.1'], []]);
    await mapper.close();
    expect(calls.length).toBe(2);
  });

  it('does nothing without a change, and once it is closed', async () => {
    const { routers, mapper, calls, changes, start } = setUp(['192.168.1.1']);
    start();
    await turn();
    mapper.refresh();
    await turn();
    expect([calls.length, changes.length]).toEqual([1, 1]);
    await mapper.close();
    routers.gateways = [];
    mapper.refresh();
    await turn();
    expect([calls.length, changes.length]).toEqual([2, 1]);
  });
});
