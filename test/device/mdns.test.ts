/** A device announces itself by mDNS; another host of the simulation listens on the same networks. */
import { describe, expect, test } from 'vitest';
import { Device } from '../../device/index.ts';
import { Announcer } from '../../device/mdns.ts';
import type { Environment } from '../../platform/environment.ts';
import type { MdnsSocket } from '../../platform/mdns.ts';
import { type DnsMessage, dnsQuery, type MdnsSource, SERVICE_TYPE, serviceRecords } from '../../protocol/discovery/index.ts';
import type { SimulatedHost, Simulation } from '../../testing/index.ts';
import { thrownCode } from '../support/code-of.ts';
import { nativeSimulation } from '../support/simulation.ts';

const INSTANCE = `pr-1-de-1.${SERVICE_TYPE}`;

interface Heard {
  readonly time: number;
  readonly link: string;
  readonly message: DnsMessage;
  readonly from: MdnsSource;
}

/** A network with a host that receives everything on the first two networks of the device's host. */
function overheard(networks = ['192.0.2.1/24', '198.51.100.1/24']) {
  const logged: string[] = [];
  const sim = nativeSimulation({ link: { delay: 1 }, log: (host, level, message) => logged.push(`${host} ${level} ${message}`) });
  const home = sim.host('home', { addresses: networks });
  const listener = sim.host('listener', { addresses: ['192.0.2.9/24', '198.51.100.9/24'] });
  const heard: Heard[] = [];
  const sockets = new Map<string, MdnsSocket>();
  for (const link of listener.mdns.links()) {
    const received = (message: DnsMessage, from: MdnsSource, own: boolean): void => {
      if (!own) heard.push({ time: sim.now, link: link.name, message, from });
    };
    sockets.set(link.name, listener.mdns.open(link, { received, failed: () => {} }));
  }
  const responses = (link: string): DnsMessage[] =>
    heard.filter((each) => each.link === link && each.message.response).map(({ message }) => message);
  return { sim, home, listener, heard, sockets, responses, logged };
}

function newDevice(environment: Environment): Device {
  const device = new Device({ environment, productId: 'pr-1', deviceId: 'de-1', localPort: 5700, p2pPort: 0, basestationAttach: false });
  device.setPrivateKey(device.createPrivateKey());
  return device;
}

/** The TXT items, addresses and port of a response. */
function contents(message: DnsMessage | undefined) {
  const all = [...(message?.answers ?? []), ...(message?.additionals ?? [])];
  const texts = all.flatMap((record) => (record.type === 'TXT' ? record.data.map((item) => new TextDecoder().decode(item)) : []));
  const addresses = all.flatMap((record) => (record.type === 'A' || record.type === 'AAAA' ? [record.data] : []));
  return { texts, addresses, port: all.flatMap((record) => (record.type === 'SRV' ? [record.data.port] : [])) };
}

describe('an announced device', () => {
  test('is on every link with its address there, answers, and withdraws everything at the end', async () => {
    const { sim, home, sockets, responses } = overheard();
    const device = newDevice(home);
    device.enableMdns();
    device.mdnsAddSubtype('tcptunnel');
    device.mdnsAddTxtItem('floor', '2');
    await sim.settle(device.start());
    await sim.run(5_000);
    for (const [link, address] of [
      ['192.0.2.9/24', '192.0.2.1'],
      ['198.51.100.9/24', '198.51.100.1'],
    ] as const) {
      expect(responses(link)).toHaveLength(2);
      const texts = ['productid=pr-1', 'deviceid=de-1', 'floor=2'];
      expect(contents(responses(link)[1])).toEqual({ texts, addresses: [address], port: [5700] });
    }
    sockets
      .get('192.0.2.9/24')
      ?.send(dnsQuery({ questions: [{ name: `tcptunnel._sub.${SERVICE_TYPE}`, type: 'PTR', unicast: false }] }), null);
    await sim.run(1_000);
    expect(responses('192.0.2.9/24')[2]?.answers).toMatchObject([{ type: 'PTR', data: INSTANCE }]);
    expect(responses('198.51.100.9/24')).toHaveLength(2);
    await sim.settle(device.close());
    await sim.run(10_000);
    for (const link of sockets.keys())
      expect(
        responses(link)
          .at(-1)
          ?.answers.map(({ ttl }) => ttl),
      ).toEqual(Array(6).fill(0));
    expect(responses('192.0.2.9/24')).toHaveLength(4);
  });

  test('shows TXT items that change while it runs; keys are case-insensitive', async () => {
    const { sim, home, responses } = overheard();
    const device = newDevice(home);
    device.enableMdns();
    await sim.settle(device.start());
    await sim.run(5_000);
    device.mdnsAddTxtItem('Room', 'kitchen');
    await sim.run(5_000);
    device.mdnsAddTxtItem('room', 'cellar');
    device.mdnsAddTxtItem('fn', 'Boiler');
    await sim.run(5_000);
    const seen = responses('192.0.2.9/24').map((message) => contents(message).texts.slice(2));
    const both = ['fn=Boiler', 'room=cellar'];
    expect(seen).toEqual([[], [], ['Room=kitchen'], ['Room=kitchen'], ['room=cellar'], both, both]);
    await sim.settle(device.close());
  });

  test('is silent unless announcing is enabled', async () => {
    const { sim, home, heard } = overheard();
    const device = newDevice(home);
    device.mdnsAddTxtItem('floor', '2');
    await sim.settle(device.start());
    await sim.run(60_000);
    expect(heard).toEqual([]);
    await sim.settle(device.close());
  });

  test('follows its links: new ones, other addresses, removed ones', async () => {
    const { sim, home, responses } = overheard(['192.0.2.1/24']);
    const device = newDevice(home);
    device.enableMdns();
    await sim.settle(device.start());
    await sim.run(4_000);
    home.mdns.setNetworks(['192.0.2.1/24', '198.51.100.2/24']);
    await sim.run(10_000);
    expect(contents(responses('198.51.100.9/24')[0]).addresses).toEqual(['198.51.100.2']);
    expect(responses('192.0.2.9/24')).toHaveLength(2);
    home.mdns.setNetworks(['198.51.100.2/24']);
    await sim.run(20_000);
    home.mdns.setNetworks(['198.51.100.2/24', '192.0.2.3/24']);
    await sim.run(10_000);
    expect(contents(responses('192.0.2.9/24').at(-1)).addresses).toEqual(['192.0.2.3']);
    await sim.settle(device.close());
  });

  test('logs an unusable link once and retries it, while the others work', async () => {
    const { sim, home, responses, logged } = overheard();
    let broken = true;
    let tries = 0;
    const mdns: Environment['mdns'] = {
      links: () => home.mdns.links(),
      open: (link, handlers) => {
        if (!broken || !link.name.startsWith('192')) return home.mdns.open(link, handlers);
        tries++;
        home.clock.schedule(1, () => handlers.failed(new Error('no such device')));
        return { send: () => {}, close: async () => {} };
      },
    };
    const { clock, crypto, network, log } = home;
    const device = newDevice({ clock, crypto, network, log, mdns, createCore: (options) => home.createCore(options) });
    device.enableMdns();
    await sim.settle(device.start());
    await sim.run(21_000);
    expect(tries).toBe(5);
    expect(logged).toEqual(['home warn mDNS does not work on an interface']);
    expect(responses('198.51.100.9/24')).toHaveLength(2);
    broken = false;
    await sim.run(21_000);
    expect(responses('192.0.2.9/24')).toHaveLength(2);
    await sim.settle(device.close());
  });

  test('logs a namesake once for each link, and continues', async () => {
    const { sim, home, sockets, logged, responses } = overheard();
    const device = newDevice(home);
    device.enableMdns();
    await sim.settle(device.start());
    await sim.run(5_000);
    const answers = serviceRecords({ name: 'pr-1-de-1', port: 1, subtypes: [], txt: [], addresses: ['192.0.2.9'] });
    for (let i = 0; i < 3; i++) {
      sockets.get('192.0.2.9/24')?.send({ ...dnsQuery({ answers }), response: true }, null);
      await sim.run(1_000);
    }
    expect(logged).toEqual(['home warn mDNS: another host announces the ids of this device']);
    sockets.get('192.0.2.9/24')?.send(dnsQuery({ questions: [{ name: INSTANCE, type: 'SRV', unicast: false }] }), null);
    await sim.run(2_000);
    expect(responses('192.0.2.9/24').at(-1)?.answers).toMatchObject([{ type: 'SRV', flush: false, data: { port: 5700 } }]);
    await sim.settle(device.close());
  });
});

describe('a device refuses', () => {
  test('to announce in an environment without multicast, and all but TXT once it is started', async () => {
    const { sim, home } = overheard();
    const { clock, crypto, network, log } = home;
    const bare = newDevice({ clock, crypto, network, log, createCore: (options) => home.createCore(options) });
    expect(thrownCode(() => bare.enableMdns())).toBe('NOT_IMPLEMENTED');
    const device = newDevice(home);
    await sim.settle(device.start());
    expect(thrownCode(() => device.enableMdns())).toBe('INVALID_STATE');
    expect(thrownCode(() => device.mdnsAddSubtype('x'))).toBe('INVALID_STATE');
    device.mdnsAddTxtItem('a', 'b');
    await sim.settle(device.close());
  });

  test.each(['', 'a.b', 'a b', 'ü', 'back\\slash', 'x'.repeat(64)])('the subtype %j', (subtype) => {
    expect(thrownCode(() => newDevice(overheard().home).mdnsAddSubtype(subtype))).toBe('INVALID_ARGUMENT');
  });

  test('the 33rd subtype', () => {
    const device = newDevice(overheard().home);
    for (let i = 0; i < 32; i++) device.mdnsAddSubtype(`s${i}`);
    device.mdnsAddSubtype('s7');
    expect(thrownCode(() => device.mdnsAddSubtype('s32'))).toBe('INVALID_ARGUMENT');
  });

  test('TXT items that are too long, have an invalid key, or a key reserved for the device', () => {
    const device = newDevice(overheard().home);
    device.mdnsAddTxtItem('key', 'x'.repeat(251));
    expect(thrownCode(() => device.mdnsAddTxtItem('key', 'x'.repeat(252)))).toBe('STRING_TOO_LONG');
    expect(thrownCode(() => device.mdnsAddTxtItem('key', 'é'.repeat(126)))).toBe('STRING_TOO_LONG');
    for (const key of ['', 'a=b', 'ü', 'a\n', 'ProductId', 'deviceid'])
      expect(thrownCode(() => device.mdnsAddTxtItem(key, 'x'))).toBe('INVALID_ARGUMENT');
    for (const key of ['b', 'c', 'd', 'e']) device.mdnsAddTxtItem(key, 'x'.repeat(253));
    expect(thrownCode(() => device.mdnsAddTxtItem('f', 'x'.repeat(100)))).toBe('STRING_TOO_LONG');
  });
});

test('a friendly name of any length is shown, cut between two characters', async () => {
  const { sim, home, responses }: { sim: Simulation; home: SimulatedHost; responses: (link: string) => DnsMessage[] } = overheard();
  const announcer = new Announcer(home);
  announcer.enable();
  announcer.setFriendlyName('é'.repeat(300));
  announcer.start({ productId: 'pr-1', deviceId: 'de-1', port: 1 });
  await sim.run(2_000);
  expect(contents(responses('192.0.2.9/24')[0]).texts).toContain(`fn=${'é'.repeat(126)}`);
  await sim.settle(announcer.close());
});
