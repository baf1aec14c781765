/** Ports mapped by UPnP, with a stand-in for the package that speaks it. */
import { describe, expect, it } from 'vitest';
import type { SocketAddress } from '../../../protocol/control/index.ts';
import { type HostInterface, type Log, silentLog } from '../../../transport/environment.ts';
import { nodeUpnp, type UpnpPackage } from '../../../transport/node/upnp.ts';

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
const eth0: HostInterface = { name: 'eth0', addresses: ['192.168.1.7/24'], kind: 'default' };
const network = { gateways: () => ['192.168.1.1'], interfaces: () => [eth0] };

/** Finds routers at these addresses and never comes to an end by itself. */
function setUp(hosts: readonly string[], fails: { map?: boolean } = {}) {
  const calls: string[] = [];
  const lines: string[] = [];
  const log: Log = { ...silentLog, debug: (message) => void lines.push(message), warn: (message) => void lines.push(`warn: ${message}`) };
  const upnp: UpnpPackage = {
    upnpNat: () => ({
      async *findGateways({ signal }) {
        for (const host of hosts)
          yield {
            host,
            map: async (port, own, { protocol }) => {
              calls.push(`map ${host} ${port} ${own} ${protocol}`);
              if (fails.map === true) throw new Error('Code 718');
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
  const mapper = nodeUpnp({ network, log, load: async () => upnp });
  return { mapper, calls, changes, lines, start: () => mapper.start(5000, (mapped) => void changes.push(mapped)) };
}

describe('UPnP', () => {
  it('maps at our own router, with our address there, and gives it back in the end', async () => {
    const { mapper, calls, changes, start } = setUp(['192.168.1.1']);
    start();
    start();
    await turn();
    expect(changes).toEqual([[{ address: '11.22.33.44', port: 5001 }]]);
    await mapper.close();
    await mapper.close();
    expect(calls).toEqual(['map 192.168.1.1 5000 192.168.1.7 udp', 'stop 192.168.1.1']);
  });

  it('asks no other host that calls itself a router, and looks at 32 at most', async () => {
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

  it('logs what a router refuses', async () => {
    const { mapper, changes, start, lines } = setUp(['192.168.1.1'], { map: true });
    start();
    await turn();
    expect([changes, lines]).toEqual([[], ['no port mapping by UPnP']]);
    await mapper.close();
  });

  it('that cannot be loaded changes nothing', async () => {
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
