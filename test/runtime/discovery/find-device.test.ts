/** The search for one device on the local network, in a simulation. */
import { beforeEach, describe, expect, test } from 'vitest';
import { Announcer } from '../../../device/mdns.ts';
import type { Environment } from '../../../platform/environment.ts';
import type { MdnsLink, MdnsNetwork, MdnsSocket } from '../../../platform/mdns.ts';
import type { SocketAddress } from '../../../protocol/address.ts';
import { type DnsMessage, dnsResponse, MAX_INSTANCES, serviceRecords } from '../../../protocol/discovery/index.ts';
import { type FindDeviceOptions, findDevice, MdnsBrowser } from '../../../runtime/discovery/index.ts';
import type { LinkOptions, SimulatedHost, Simulation } from '../../../testing/index.ts';
import { nativeSimulation } from '../../support/simulation.ts';
import { seeds } from '../../support/tiered.ts';

const IDS = { productId: 'pr-1', deviceId: 'de-1' };

/** A client on two networks, and another host on the first. */
function lan(link: LinkOptions = { delay: 1 }, seed = 'find') {
  const sim = nativeSimulation({ link, seed });
  const client = sim.host('client', { addresses: ['192.0.2.9/24', '198.51.100.9/24'] });
  return { sim, client, browser: new MdnsBrowser(client) };
}

async function announced(sim: Simulation, address: string, ids = IDS): Promise<SimulatedHost> {
  const host = sim.host(`device ${address}`, { addresses: [`${address}/24`] });
  const announcer = new Announcer(host);
  announcer.enable();
  announcer.start({ ...ids, port: 5592 });
  await sim.run(5_000);
  return host;
}

/** A running search: its candidates with the time of each since the beginning, and the final count. */
function search(sim: Simulation, browser: MdnsBrowser, options: Partial<FindDeviceOptions> = {}) {
  const begin = sim.now;
  const found: [number, SocketAddress][] = [];
  const onCandidate = (candidate: SocketAddress): void => void found.push([sim.now - begin, candidate]);
  const state = { found, count: -1, end: 0 };
  void findDevice(browser, { ...IDS, timeout: 2_000, onCandidate, ...options }).then((count) => {
    state.count = count;
    state.end = sim.now - begin;
  });
  return state;
}

const addresses = ({ found }: { found: [number, SocketAddress][] }): string[] => found.map(([, { address }]) => address).sort();

/** A host that sends what the test specifies. */
function speaker(sim: Simulation, address = '192.0.2.66'): (message: DnsMessage) => void {
  const host = sim.host(`speaker ${address}`, { addresses: [`${address}/24`] });
  const socket = host.mdns.open(host.mdns.links()[0]!, { received: () => {}, failed: () => {} });
  return (message) => socket.send(message, null);
}

let { sim, client, browser } = lan();
beforeEach(() => {
  ({ sim, client, browser } = lan());
});

test('the device answers within a round trip; the search ends with its time', async () => {
  await announced(sim, '192.0.2.1');
  await announced(sim, '192.0.2.2', { productId: 'pr-1', deviceId: 'de-2' });
  const state = search(sim, browser);
  await sim.run(2_100);
  expect(state).toEqual({ found: [[2, { address: '192.0.2.1', port: 5592 }]], count: 1, end: 2_000 });
});

test('a search within a second after another has its answers, and sends no question', async () => {
  await announced(sim, '192.0.2.1');
  const questions: number[] = [];
  const socket = sim.host('neighbour', { addresses: ['192.0.2.77/24'] }).mdns;
  socket.open(socket.links()[0]!, {
    received: ({ response, questions: [first] }) => {
      if (!response && first?.type === 'SRV') questions.push(sim.now - begin);
    },
    failed: () => {},
  });
  const begin = sim.now;
  for (const wait of [10, 980, 10]) {
    const state = search(sim, browser, { timeout: 10 });
    await sim.run(10);
    expect(addresses(state)).toEqual(['192.0.2.1']);
    await sim.run(wait);
  }
  // The third one begins a second after the question.
  expect(questions).toEqual([1, 1_011]);
});

test('a device that is switched on meanwhile is found', async () => {
  const state = search(sim, browser, { timeout: 10_000 });
  await sim.run(3_000);
  await announced(sim, '192.0.2.1');
  await sim.run(3_000);
  expect(addresses(state)).toEqual(['192.0.2.1']);
});

test('without a device there is no candidate', async () => {
  const state = search(sim, browser);
  await sim.run(2_100);
  expect(state).toEqual({ found: [], count: 0, end: 2_000 });
});

test('the signal ends it at once, also before it began', async () => {
  const abort = new AbortController();
  const state = search(sim, browser, { signal: abort.signal });
  await sim.run(700);
  abort.abort();
  await sim.run(0);
  expect([state.count, state.end]).toEqual([0, 700]);
  const late = search(sim, browser, { signal: abort.signal });
  await sim.run(0);
  expect([late.count, late.end]).toEqual([0, 0]);
});

test('ids that no device can have are not searched', async () => {
  const state = search(sim, browser, { productId: 'pr.1' });
  await sim.run(0);
  expect(state).toEqual({ found: [], count: 0, end: 0 });
});

test('a device is found by its subtype where its instance has another name', async () => {
  const say = speaker(sim);
  const records = serviceRecords({ name: 'pr-1-de-1 (2)', port: 7, subtypes: ['pr-1-de-1'], txt: [], addresses: ['192.0.2.3'] });
  const state = search(sim, browser);
  await sim.run(100);
  say(dnsResponse({ answers: records }));
  await sim.run(1_000);
  expect(state.found).toMatchObject([[101, { address: '192.0.2.3', port: 7 }]]);
});

test('two searches at a time, and one after the other, get the same answers', async () => {
  await announced(sim, '192.0.2.1');
  const [one, two] = [search(sim, browser), search(sim, browser)];
  await sim.run(500);
  const three = search(sim, browser);
  await sim.run(2_500);
  const four = search(sim, browser);
  await sim.run(2_500);
  for (const state of [one, two, three, four]) expect(addresses(state)).toEqual(['192.0.2.1']);
  expect(three.found[0]?.[0]).toBe(0);
});

describe('scanAll', () => {
  test('returns the devices whose TXT items have the ids, unchanged', async () => {
    await announced(sim, '192.0.2.1');
    // Another host with another name that announces nearly the same.
    const say = speaker(sim);
    const txt = ['productid=pr-1', 'deviceid=DE-1'].map((text) => new TextEncoder().encode(text));
    await announced(sim, '192.0.2.3', { productId: 'pr-2', deviceId: 'de-1' });
    const state = search(sim, browser, { scanAll: true });
    await sim.run(500);
    say(dnsResponse({ answers: serviceRecords({ name: 'x', port: 7, subtypes: [], txt, addresses: ['192.0.2.66'] }) }));
    await sim.run(1_000);
    expect(addresses(state)).toEqual(['192.0.2.1']);
  });

  test('finds one that announces its ids late', async () => {
    const say = speaker(sim);
    const said = (...texts: string[]) =>
      serviceRecords({
        name: 'any',
        port: 7,
        subtypes: [],
        txt: texts.map((text) => new TextEncoder().encode(text)),
        addresses: ['192.0.2.3'],
      });
    const state = search(sim, browser, { scanAll: true, timeout: 5_000 });
    say(dnsResponse({ answers: said('productid=pr-1') }));
    await sim.run(2_000);
    say(dnsResponse({ answers: said('productid=pr-1', 'deviceid=de-1') }));
    await sim.run(2_000);
    expect(addresses(state)).toEqual(['192.0.2.3']);
  });
});

describe('with an attacker on the link', () => {
  test.each([false, true])(
    'that fills the table with made-up devices, the device is found (scanAll: %s)',
    { tags: ['slow'] },
    async (scanAll) => {
      const device = await announced(sim, '192.0.2.1');
      device.stop();
      const say = speaker(sim);
      const state = search(sim, browser, { scanAll, timeout: 60_000 });
      for (let i = 0; i < MAX_INSTANCES + 200; i++) {
        say(dnsResponse({ answers: serviceRecords({ name: `x-${i}`, port: 1, subtypes: ['pr-1-de-1'], txt: [], addresses: [] }) }));
        await sim.run(1);
      }
      await announced(sim, '192.0.2.7');
      expect(addresses(state)).toEqual(['192.0.2.7']);
    },
  );

  test('that announces endless addresses, 32 are reported', async () => {
    const say = speaker(sim);
    const state = search(sim, browser, { timeout: 10_000 });
    for (let i = 0; i < 250; i++) {
      say(
        dnsResponse({
          answers: serviceRecords({ name: 'pr-1-de-1', port: i + 1, subtypes: [], txt: [], addresses: [`192.0.2.${i + 1}`] }),
        }),
      );
      await sim.run(20);
    }
    await sim.run(10_000);
    expect([state.found.length, state.count]).toEqual([32, 32]);
  });
});

describe('a network that loses every tenth message and repeats others does not hide the device for long', () => {
  async function found(seed: number): Promise<void> {
    const { sim, browser } = lan({ delay: 2, jitter: 5, loss: 0.1, duplicate: 0.2, reorder: 0.1 }, `find ${seed}`);
    await announced(sim, '192.0.2.1');
    const state = search(sim, browser, { timeout: 8_000 });
    await sim.run(8_100);
    expect(addresses(state)).toEqual(['192.0.2.1']);
  }
  test.each(seeds(1, 5))('seed %i', found);
  test.each(seeds(6, 200))('seed %i', { tags: ['slow'] }, found);
});

describe('links', () => {
  /** A host whose only link the test can change. */
  function changeable(client: SimulatedHost) {
    let link: MdnsLink = { name: 'eth0 IPv6', addresses: ['192.0.2.9'], zone: 'eth0' };
    const opened: { link: MdnsLink; closed: boolean; sent: number; handlers: Parameters<MdnsNetwork['open']>[1] }[] = [];
    const mdns: MdnsNetwork = {
      links: () => [link],
      open: (at, handlers): MdnsSocket => {
        const entry = { link: at, closed: false, sent: 0, handlers };
        opened.push(entry);
        return {
          send: () => void entry.sent++,
          close: async () => {
            entry.closed = true;
          },
        };
      },
    };
    const { clock, crypto, network, log } = client;
    const environment: Environment = { clock, crypto, network, log, mdns, createCore: (options) => client.createCore(options) };
    return { browser: new MdnsBrowser(environment), opened, change: (addresses: readonly string[]) => (link = { ...link, addresses }) };
  }

  test('a link-local address has the zone of the link that it was received on', async () => {
    const { browser, opened } = changeable(client);
    const state = search(sim, browser);
    await sim.run(100);
    const answers = serviceRecords({ name: 'pr-1-de-1', port: 7, subtypes: [], txt: [], addresses: ['fe80::7', 'fd00::7', '169.254.0.7'] });
    opened[0]!.handlers.received(dnsResponse({ answers }), { address: 'fe80::7%eth0', port: 5353 }, false);
    expect(addresses(state)).toEqual(['169.254.0.7', 'fd00::7', 'fe80::7%eth0']);
  });

  test('a link with other addresses gets a new socket, which sends a query again; answers to the old one do not count', async () => {
    const { browser, opened, change } = changeable(client);
    const state = search(sim, browser, { timeout: 60_000 });
    await sim.run(4_000);
    expect(opened[0]?.sent).toBeGreaterThan(4);
    change(['192.0.2.10']);
    await sim.run(2_000);
    expect(opened.map(({ link: { addresses }, closed, sent }) => [addresses, closed, sent > 2])).toEqual([
      [['192.0.2.9'], true, true],
      [['192.0.2.10'], false, true],
    ]);
    const answers = serviceRecords({ name: 'pr-1-de-1', port: 7, subtypes: [], txt: [], addresses: ['192.0.2.7'] });
    const from = { address: '192.0.2.7', port: 5353 };
    opened[0]!.handlers.received(dnsResponse({ answers }), from, false);
    opened[0]!.handlers.failed(new Error('late'));
    await sim.run(100);
    expect([addresses(state), opened.length]).toEqual([[], 2]);
    opened[1]!.handlers.received(dnsResponse({ answers }), from, false);
    expect(addresses(state)).toEqual(['192.0.2.7']);
  });

  test('that fail are logged once, however many searches there are', async () => {
    const logged: string[] = [];
    const { clock, crypto, network } = client;
    const mdns: MdnsNetwork = {
      links: () => client.mdns.links(),
      open: (_link, handlers): MdnsSocket => {
        clock.soon(() => handlers.failed(new Error('no multicast here')));
        return { send: () => {}, close: async () => {} };
      },
    };
    const log = { ...client.log, warn: (message: string) => void logged.push(message) };
    const browser = new MdnsBrowser({ clock, crypto, network, log, mdns, createCore: (options) => client.createCore(options) });
    for (let index = 0; index < 3; index++) {
      search(sim, browser);
      await sim.run(3_000);
    }
    expect(logged).toEqual(Array(2).fill('mDNS does not work on an interface'));
  });

  test('that cannot be listed are logged, and listed again later', async () => {
    const logged: string[] = [];
    const { clock, crypto, network } = client;
    let broken = true;
    const mdns: MdnsNetwork = {
      links: () => {
        if (broken) throw new Error('EMFILE');
        return client.mdns.links();
      },
      open: (link, handlers) => client.mdns.open(link, handlers),
    };
    const log = { ...client.log, warn: (message: string) => void logged.push(message) };
    const browser = new MdnsBrowser({ clock, crypto, network, log, mdns, createCore: (options) => client.createCore(options) });
    await announced(sim, '192.0.2.1');
    const state = search(sim, browser, { timeout: 10_000 });
    await sim.run(3_000);
    broken = false;
    await sim.run(4_000);
    expect(addresses(state)).toEqual(['192.0.2.1']);
    expect(logged).toEqual(['mDNS: the interfaces of this host cannot be read']);
  });
});
