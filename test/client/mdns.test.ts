/** Discovery by the client: devices and a client on hosts of one simulation, which share one network or two. */
import { beforeEach, describe, expect, test } from 'vitest';
import { SvcClient as BrowserClient } from '../../client/browser.ts';
import { type MdnsResult, type MdnsResultReceiver, SvcClient } from '../../client/node.ts';
import { Device } from '../../device/index.ts';
import type { Environment } from '../../platform/environment.ts';
import type { LinkOptions, SimulatedHost } from '../../testing/index.ts';
import { nativeSimulation } from '../support/simulation.ts';
import { seeds } from '../support/tiered.ts';

/** A home network, and one for guests. */
const HOME = '192.0.2';
const GUESTS = '198.51.100';

class Lan {
  readonly logged: string[] = [];
  readonly sim;
  readonly host: SimulatedHost;
  readonly client: SvcClient;
  readonly hosts = new Map<string, SimulatedHost>();

  constructor(link: LinkOptions = { delay: 1 }, networks = [`${HOME}.9/24`, `${GUESTS}.9/24`], seed?: string) {
    this.sim = nativeSimulation({
      link,
      ...(seed !== undefined && { seed }),
      log: (host, level, message) => this.logged.push(`${host} ${level} ${message}`),
    });
    this.host = this.sim.host('client', { addresses: networks });
    this.client = SvcClient.create({ environment: this.host });
  }

  /** An announced device. */
  async device(id: string, { networks = [HOME], subtypes = [] as string[], items = {} as Record<string, string> } = {}): Promise<Device> {
    const number = this.hosts.size + 1;
    const environment = this.sim.host(id, { addresses: networks.map((network) => `${network}.${number + 10}/24`) });
    this.hosts.set(id, environment);
    const device = new Device({ environment, productId: 'pr-1', deviceId: id, localPort: 5592, p2pPort: 0, basestationAttach: false });
    device.setPrivateKey(device.createPrivateKey());
    device.enableMdns();
    for (const subtype of subtypes) device.mdnsAddSubtype(subtype);
    for (const [key, value] of Object.entries(items)) device.mdnsAddTxtItem(key, value);
    await this.sim.settle(device.start());
    return device;
  }

  async close(device: Device): Promise<void> {
    await this.sim.settle(device.close());
  }
}

/** Records results in short form. */
class Notes implements MdnsResultReceiver {
  readonly results: MdnsResult[] = [];

  onResultReady(result: MdnsResult): void {
    this.results.push(result);
  }

  /** Action and device of each result since the last call. */
  taken(): string[] {
    return this.results.splice(0).map(({ action, deviceId }) => `${action} ${deviceId}`);
  }
}

let lan: Lan;
beforeEach(() => {
  lan = new Lan();
});

test('a listener gets devices: ADD, UPDATE of items, REMOVE when they leave', async () => {
  const results: MdnsResult[] = [];
  const device = await lan.device('de-1', { items: { fn: 'Boiler' } });
  await lan.sim.run(5_000);
  lan.client.addMdnsResultListener({ onResultReady: (result) => void results.push(result) });
  await lan.sim.run(500);
  expect(results.splice(0)).toEqual([
    {
      action: 0,
      serviceInstanceName: 'pr-1-de-1._svc._udp.local',
      productId: 'pr-1',
      deviceId: 'de-1',
      txtItems: { productid: 'pr-1', deviceid: 'de-1', fn: 'Boiler' },
      addresses: [{ address: '192.0.2.11', port: 5592 }],
    },
  ]);
  device.mdnsAddTxtItem('room', 'cellar');
  await lan.sim.run(3_000);
  expect(results.splice(0)).toMatchObject([{ action: 1, deviceId: 'de-1', txtItems: { room: 'cellar' } }]);
  await lan.close(device);
  await lan.sim.run(3_000);
  expect(results.splice(0)).toMatchObject([{ action: 2, deviceId: 'de-1', txtItems: { room: 'cellar' } }]);
  await lan.sim.settle(lan.client.stop());
});

test('a device without power is removed when its records expire', { tags: ['slow'] }, async () => {
  const notes = new Notes();
  lan.client.addMdnsResultListener(notes);
  await lan.device('de-1');
  await lan.sim.run(3_600_000);
  expect(notes.taken()).toEqual(['0 de-1']);
  lan.hosts.get('de-1')?.stop();
  await lan.sim.run(121_000);
  expect(notes.taken()).toEqual(['2 de-1']);
  await lan.sim.settle(lan.client.stop());
});

test('a subtype has its own devices; null and the empty text mean the whole type', async () => {
  const [all, empty, tunnels] = [new Notes(), new Notes(), new Notes()];
  lan.client.addMdnsResultListener(all, null);
  lan.client.addMdnsResultListener(empty, '');
  lan.client.addMdnsResultListener(tunnels, 'TcpTunnel');
  await lan.device('plain');
  await lan.device('tunnel', { subtypes: ['tcptunnel'] });
  await lan.sim.run(5_000);
  expect([all.taken().sort(), empty.taken().sort(), tunnels.taken()]).toEqual([
    ['0 plain', '0 tunnel'],
    ['0 plain', '0 tunnel'],
    ['0 tunnel'],
  ]);
  await lan.sim.settle(lan.client.stop());
});

test('each listener has its own results: a new one gets the known devices, a removed one nothing more', async () => {
  const [first, second] = [new Notes(), new Notes()];
  lan.client.addMdnsResultListener(first);
  lan.client.addMdnsResultListener(first);
  const device = await lan.device('de-1');
  await lan.sim.run(5_000);
  expect(first.taken()).toEqual(['0 de-1']);
  lan.client.addMdnsResultListener(second);
  expect(second.results).toEqual([]);
  await lan.sim.run(0);
  expect([first.taken(), second.taken()]).toEqual([[], ['0 de-1']]);
  lan.client.removeMdnsResultListener(first);
  lan.client.removeMdnsResultListener(first);
  lan.client.addMdnsResultListener(first);
  lan.client.removeMdnsResultListener(first);
  await lan.close(device);
  await lan.sim.run(5_000);
  expect([first.taken(), second.taken()]).toEqual([[], ['2 de-1']]);
  await lan.sim.settle(lan.client.stop());
});

test('a listener that throws, or removes itself, harms no other', async () => {
  const notes = new Notes();
  const once: MdnsResultReceiver = {
    onResultReady: (result) => {
      notes.onResultReady(result);
      lan.client.removeMdnsResultListener(once);
    },
  };
  const failing = new Notes();
  lan.client.addMdnsResultListener({
    onResultReady: () => {
      throw new Error('mine');
    },
  });
  lan.client.addMdnsResultListener(once);
  lan.client.addMdnsResultListener(failing);
  await lan.device('de-1');
  await lan.device('de-2');
  await lan.sim.run(5_000);
  expect([notes.taken().length, failing.taken().sort()]).toEqual([1, ['0 de-1', '0 de-2']]);
  expect(lan.logged.filter((line) => line.includes('the mDNS listener threw'))).toHaveLength(2);
  await lan.sim.settle(lan.client.stop());
});

describe('a scanner', () => {
  test('passes results to its receivers while it is started', async () => {
    const scanner = lan.client.createMdnsScanner('thermostat');
    const [early, late] = [new Notes(), new Notes()];
    scanner.addMdnsResultReceiver(early);
    await lan.device('other');
    const device = await lan.device('de-1', { subtypes: ['thermostat'] });
    await lan.sim.run(5_000);
    expect([scanner.isStarted(), early.taken()]).toEqual([false, []]);
    scanner.start();
    scanner.start();
    await lan.sim.run(5_000);
    scanner.addMdnsResultReceiver(late);
    scanner.addMdnsResultReceiver(late);
    await lan.sim.run(5_000);
    expect([scanner.isStarted(), early.taken(), late.taken()]).toEqual([true, ['0 de-1'], ['0 de-1']]);
    scanner.removeMdnsResultReceiver(late);
    scanner.removeMdnsResultReceiver(late);
    device.mdnsAddTxtItem('a', 'b');
    await lan.sim.run(5_000);
    expect([early.taken(), late.taken()]).toEqual([['1 de-1'], []]);
    scanner.stop();
    await lan.close(device);
    await lan.sim.run(5_000);
    expect([scanner.isStarted(), early.taken()]).toEqual([false, []]);
    scanner.start();
    await lan.sim.settle(lan.client.stop());
    expect(scanner.isStarted()).toBe(false);
    expect(() => scanner.start()).toThrowError(expect.objectContaining({ code: 'STOPPED' }));
  });
});

describe('links', () => {
  test('a device on two of them is one result with both addresses, until the last is gone', async () => {
    const notes = new Notes();
    lan.client.addMdnsResultListener(notes);
    await lan.device('de-1', { networks: [HOME, GUESTS] });
    await lan.sim.run(5_000);
    const last = notes.results.at(-1);
    expect(last?.addresses.map(({ address }) => address).sort()).toEqual(['192.0.2.11', '198.51.100.11']);
    expect(new Set(notes.results.map(({ serviceInstanceName }) => serviceInstanceName)).size).toBe(1);
    expect(notes.taken()[0]).toBe('0 de-1');
    lan.host.mdns.setNetworks([`${HOME}.9/24`]);
    expect(notes.results).toMatchObject([{ action: 1, addresses: [{ address: '192.0.2.11' }] }]);
    notes.taken();
    lan.host.mdns.setNetworks([]);
    await lan.sim.run(6_000);
    expect(notes.taken()).toEqual(['2 de-1']);
    lan.host.mdns.setNetworks([`${GUESTS}.9/24`]);
    await lan.sim.run(6_000);
    expect(notes.results).toMatchObject([{ action: 0, addresses: [{ address: '198.51.100.11' }] }]);
    await lan.sim.settle(lan.client.stop());
  });

  test('have one socket each, however many listeners there are, for 10 s after the last, and the process for no longer than it', async () => {
    let [open, opened, held] = [0, 0, 0];
    const keepProcess = (): (() => void) => {
      held++;
      return () => void held--;
    };
    const mdns: Environment['mdns'] = {
      links: () => lan.host.mdns.links(),
      open: (link, handlers) => {
        open++;
        opened++;
        const socket = lan.host.mdns.open(link, handlers);
        return {
          send: (message, to) => socket.send(message, to),
          close: async () => {
            open--;
            await socket.close();
          },
        };
      },
    };
    const { clock, crypto, network, log } = lan.host;
    const client = SvcClient.create({
      environment: { clock, crypto, network, log, mdns, keepProcess, createCore: (options) => lan.host.createCore(options) },
    });
    const listeners = [new Notes(), new Notes(), new Notes()];
    expect(open).toBe(0);
    for (const [index, each] of listeners.entries()) client.addMdnsResultListener(each, ['', 'a', 'b'][index] as string);
    await lan.sim.run(10_000);
    expect([open, opened, held]).toEqual([2, 2, 1]);
    for (const each of listeners) client.removeMdnsResultListener(each);
    expect(held).toBe(0);
    await lan.sim.run(9_999);
    expect([open, opened]).toEqual([2, 2]);
    client.addMdnsResultListener(listeners[0]!);
    expect(held).toBe(1);
    await lan.sim.run(1_000);
    client.removeMdnsResultListener(listeners[0]!);
    await lan.sim.run(9_999);
    expect([open, opened]).toEqual([2, 2]);
    await lan.sim.run(1);
    expect([open, opened]).toEqual([0, 2]);
    client.addMdnsResultListener(listeners[1]!);
    await lan.sim.run(1);
    expect([open, opened]).toEqual([2, 4]);
    await lan.sim.settle(client.stop());
    expect([open, held]).toEqual([0, 0]);
    await lan.sim.run(60_000);
    expect(opened).toBe(4);
    await lan.sim.settle(lan.client.stop());
  });
});

test('the last listener may remove itself in a result: nothing is left behind', async () => {
  const pending = new Set<object>();
  const clock: Environment['clock'] = {
    ...lan.host.clock,
    schedule: (delay, run) => {
      const entry = {};
      if (delay < Number.POSITIVE_INFINITY) pending.add(entry);
      const cancel = lan.host.clock.schedule(delay, () => {
        pending.delete(entry);
        run();
      });
      return () => {
        pending.delete(entry);
        cancel();
      };
    },
  };
  const { crypto, network, log, mdns } = lan.host;
  const client = SvcClient.create({
    environment: { clock, crypto, network, log, mdns, createCore: (options) => lan.host.createCore(options) },
  });
  const results: MdnsResult[] = [];
  const once: MdnsResultReceiver = {
    onResultReady: (result) => {
      results.push(result);
      client.removeMdnsResultListener(once);
    },
  };
  client.addMdnsResultListener(once);
  await lan.device('de-1', { networks: [HOME, GUESTS] });
  while (results.length === 0) await lan.sim.run(1);
  await lan.sim.settle(client.stop());
  expect([results.length, pending.size]).toEqual([1, 0]);
});

describe('networks that lose, repeat and reorder', () => {
  async function knowsWhatIsThere(seed: number): Promise<void> {
    const lan = new Lan({ delay: 2, jitter: 20, loss: 0.05, duplicate: 0.2, reorder: 0.2, reorderDelay: 300 }, undefined, `mdns ${seed}`);
    const notes = new Notes();
    lan.client.addMdnsResultListener(notes);
    const devices = new Map<string, Device>();
    for (const id of ['de-1', 'de-2', 'de-3', 'de-4']) {
      devices.set(id, await lan.device(id, { networks: id === 'de-2' ? [HOME, GUESTS] : [HOME] }));
      await lan.sim.run(2_000);
    }
    await lan.sim.run(400_000);
    devices.get('de-1')?.mdnsAddTxtItem('room', 'cellar');
    await lan.close(devices.get('de-3')!);
    lan.hosts.get('de-4')?.stop();
    await lan.sim.run(250_000);
    const there = new Map<string, MdnsResult>();
    for (const result of notes.results) {
      const known = there.has(result.deviceId);
      expect(known).toBe(result.action !== 0);
      if (result.action === 2) there.delete(result.deviceId);
      else there.set(result.deviceId, result);
    }
    expect([...there.keys()].sort()).toEqual(['de-1', 'de-2']);
    expect(there.get('de-1')?.txtItems.room).toBe('cellar');
    expect(there.get('de-2')?.addresses).toHaveLength(2);
    await lan.sim.settle(lan.client.stop());
  }
  test.each(seeds(1, 5))('seed %i: what a listener knows equals what is there', knowsWhatIsThere);
  test.each(seeds(6, 40))('seed %i: what a listener knows equals what is there', { tags: ['slow'] }, knowsWhatIsThere);
});

describe('a client refuses', () => {
  const code = (run: () => unknown): string => {
    try {
      run();
    } catch (error) {
      const { code, message } = error as { code: string; message: string };
      return `${code} ${message}`;
    }
    return 'nothing';
  };

  test('an environment without multicast, such as a browser', () => {
    const { clock, crypto, network, log } = new Lan().host;
    const client = BrowserClient.create({
      environment: { clock, crypto, network, log, createCore: () => Promise.reject(new Error('none')) },
    });
    const expected = /^NOT_IMPLEMENTED there is no multicast DNS where this client runs.* give the address of the device$/;
    expect(code(() => client.addMdnsResultListener(new Notes()))).toMatch(expected);
    expect(code(() => client.createMdnsScanner())).toMatch(expected);
  });

  test('an invalid subtype, and any use after stop', async () => {
    expect(code(() => lan.client.addMdnsResultListener(new Notes(), 'a.b'))).toMatch(/^INVALID_ARGUMENT an mDNS subtype is/);
    expect(code(() => lan.client.createMdnsScanner('ü'))).toMatch(/^INVALID_ARGUMENT/);
    await lan.sim.settle(lan.client.stop());
    await lan.sim.settle(lan.client.stop());
    expect(code(() => lan.client.addMdnsResultListener(new Notes()))).toMatch(/^STOPPED/);
    expect(code(() => lan.client.createMdnsScanner())).toMatch(/^STOPPED/);
  });
});
