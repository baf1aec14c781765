/**
 * Ports mapped at a gateway, in a simulation: renewal, restart of the gateway, deletion, and gateways and neighbours
 * that lie.
 */
import { describe, expect, test } from 'vitest';
import type { BoundSocket, HostInterface, Network } from '../../../platform/environment.ts';
import { gatewaysWithOwn } from '../../../runtime/port-mapping/gateways.ts';
import { PortMapper } from '../../../runtime/port-mapping/index.ts';
import type { Simulation } from '../../../testing/index.ts';
import { seededBytes } from '../../support/crypto.ts';
import { nativeSimulation } from '../../support/simulation.ts';
import { FakeGateway, type Speaks } from './gateway.ts';

const PORT = 5000;
const HOUR = 3_600_000;
const eth0: HostInterface = { name: 'eth0', addresses: ['192.168.1.7/24'], kind: 'default' };

function home(speaks: Speaks = 'pcp', more: Partial<Network> = {}) {
  const sim = nativeSimulation({ link: { delay: 1 }, seed: 'port mapping' });
  const gateway = new FakeGateway(sim.host('gateway', { addresses: ['192.168.1.1/24'] }));
  gateway.speaks = speaks;
  const host = sim.host('host', { addresses: ['192.168.1.7/24'] });
  const gateways = ['192.168.1.1'];
  const network: Network = { ...host.network, interfaces: () => [eth0], gateways: () => gateways, ...more };
  const { clock, crypto, log } = host;
  const mapper = new PortMapper({ environment: { clock, crypto, log, network }, port: PORT });
  mapper.start();
  const mapped = (): string[] => mapper.mapped.map(({ address, port }) => `${address} ${port}`);
  return { sim, gateway, gateways, mapper, mapped };
}

/** Answers of NAT-PMP: the address outside, and a mapping. */
const ANSWERS = [
  [0, 128, 0, 0, 0, 0, 0, 1, 11, 22, 33, 44],
  [0, 129, 0, 0, 0, 0, 0, 1, PORT >> 8, PORT & 255, 5, 5, 0, 0, 14, 16],
].map((answer) => Uint8Array.from(answer));

/** @returns a function that returns the port of the latest request to the gateway, 0 before */
function askerOf(sim: Simulation): () => number {
  let asker = 0;
  sim.onPacket = ({ source, destination }) => {
    if (destination.port === 5351) asker = source.port;
    return undefined;
  };
  return () => asker;
}

function sendFrom(socket: BoundSocket, answer: Uint8Array, port: number): void {
  socket.send(answer, 0, answer.length, socket.path('192.168.1.7', port), () => {});
}

describe('a port', () => {
  test.each([
    ['pcp', ['pcp 5000 3600']],
    ['nat-pmp', ['pcp', 'pmp address', 'pmp 5000 3600']],
  ] as const)(
    'is mapped by %s in a few round trips, renewed at half its lifetime and deleted on close',
    { tags: ['slow'] },
    async (speaks, requests) => {
      const { sim, gateway, mapper, mapped } = home(speaks);
      await sim.run(20);
      expect(gateway.requests).toEqual(requests);
      expect(mapped()).toEqual(['11.22.33.44 40000']);
      gateway.requests.length = 0;
      await sim.run(HOUR / 2 - 100);
      expect(gateway.requests).toEqual([]);
      await sim.run(100);
      expect(gateway.requests.at(-1)).toBe(requests.at(-1));
      await sim.run(20 * HOUR);
      expect(mapped()).toEqual(['11.22.33.44 40000']);
      expect(gateway.requests.length).toBeLessThan(100);
      void mapper.close();
      await sim.run(10);
      expect(gateway.mapped.size).toBe(0);
      expect(gateway.requests.at(-1)).toMatch(/ 5000 0$/);
      gateway.requests.length = 0;
      await sim.run(5 * HOUR);
      expect(gateway.requests).toEqual([]);
    },
  );

  test('is mapped by NAT-PMP where the platform does not report its own address', async () => {
    const { sim, gateway, mapped } = home('nat-pmp', { interfaces: undefined as never });
    await sim.run(20);
    expect(gateway.requests).toEqual(['pmp address', 'pmp 5000 3600']);
    expect(mapped()).toEqual(['11.22.33.44 40000']);
  });

  test('is requested by both protocols and then left alone where the gateway is silent', async () => {
    const { sim, gateway, mapped, mapper } = home('nothing');
    await sim.run(60_000);
    expect(gateway.requests).toEqual([...new Array(3).fill('pcp'), ...new Array(5).fill('pmp')]);
    await sim.run(850_000);
    expect(gateway.requests.length).toBe(8);
    await sim.run(100_000);
    expect(gateway.requests.length).toBe(16);
    expect(mapped()).toEqual([]);
    let closed = false;
    void mapper.close().then(() => (closed = true));
    await sim.run(1_000);
    expect(closed).toBe(true);
  });

  test('that the gateway lost is mapped again at the next renewal, and its new address is passed on', async () => {
    const { sim, gateway, mapped } = home();
    await sim.run(1_000);
    expect(mapped()).toEqual(['11.22.33.44 40000']);
    gateway.restart();
    gateway.external = [11, 22, 33, 45];
    await sim.run(HOUR / 2);
    expect(mapped()).toEqual(['11.22.33.45 40001']);
  });

  test('is no longer a candidate once the gateway has lost it and refuses, and again once it maps', async () => {
    const { sim, gateway, mapped } = home();
    await sim.run(600_000);
    expect(mapped()).toEqual(['11.22.33.44 40000']);
    gateway.restart();
    gateway.result = 8;
    await sim.run(HOUR / 2 - 599_000);
    expect(mapped()).toEqual([]);
    gateway.result = 0;
    await sim.run(300_000);
    expect(mapped()).toEqual(['11.22.33.44 40001']);
  });

  test.each(['pcp', 'nat-pmp'] as const)(
    'stays for its lifetime when a gateway that speaks %s refuses to renew it, or is silent',
    async (speaks) => {
      for (const end of [{ result: 4 }, { speaks: 'nothing' as const }]) {
        const { sim, gateway, mapped } = home(speaks);
        await sim.run(1_000);
        Object.assign(gateway, end);
        await sim.run(HOUR - 10_000);
        expect(mapped()).toEqual(['11.22.33.44 40000']);
        expect(gateway.requests.length).toBeLessThan(20);
        await sim.run(10_000);
        expect(mapped()).toEqual([]);
      }
    },
  );

  test('is requested at new gateways, and discarded at gateways that are gone', async () => {
    const { sim, gateways, mapper, mapped, gateway } = home();
    await sim.run(100);
    gateways.length = 0;
    mapper.refresh();
    await sim.run(100);
    expect([mapped(), gateway.mapped.size]).toEqual([[], 0]);
    gateways.push('192.168.1.1');
    mapper.refresh();
    mapper.refresh();
    await sim.run(100);
    expect(mapped()).toEqual(['11.22.33.44 40001']);
    expect(gateway.requests.length).toBe(3);
  });

  test('is requested at each gateway, and an address that two of them state counts once', async () => {
    const { sim, gateways, mapper } = home();
    const others = ['192.168.1.2', '192.168.1.3'];
    const [same, other] = others.map((address) => new FakeGateway(sim.host(address, { addresses: [`${address}/24`] })));
    other!.externalPort = 50_000;
    gateways.push(...others);
    mapper.refresh();
    await sim.run(100);
    expect(same!.mapped.size).toBe(1);
    expect(mapper.mapped.map(({ port }) => port)).toEqual([40_000, 50_000]);
  });

  test('is requested again, where no socket could be opened, at the next check of the gateways', async () => {
    let tries = 0;
    const { sim, gateway, mapped, mapper } = home('pcp', {
      bind: async () => {
        tries++;
        throw new Error('EADDRNOTAVAIL');
      },
    });
    await sim.run(29_000);
    expect(tries).toBe(1);
    await sim.run(31_000);
    expect(tries).toBe(3);
    expect([gateway.requests, mapped()]).toEqual([[], []]);
    void mapper.close();
    await sim.run(60_000);
    expect(tries).toBe(3);
  });

  test('is requested once the network is there, without notification', async () => {
    const interfaces: HostInterface[] = [];
    const { sim, mapped } = home('pcp', { interfaces: () => interfaces });
    await sim.run(1_000);
    interfaces.push(eth0);
    await sim.run(30_000);
    expect(mapped()).toEqual(['11.22.33.44 40000']);
  });
});

describe('a gateway that lies', () => {
  test.each([
    ['behind another NAT', [192, 168, 0, 2]],
    ['behind a carrier NAT', [100, 64, 1, 2]],
    ['that names no address', [0, 0, 0, 0]],
    ['that names loopback', [127, 0, 0, 1]],
    ['that names a multicast group', [239, 1, 2, 3]],
  ])('%s maps in vain', async (_, external) => {
    const { sim, gateway, mapped } = home();
    gateway.external = external;
    await sim.run(1_000);
    expect([mapped(), gateway.mapped.size]).toEqual([[], 1]);
  });

  const change = (at: number, value: number) => (answer: Uint8Array) => {
    answer[at] = value;
    return answer;
  };
  test.each([
    ['with another nonce', change(24, 99)],
    ['for another port', change(41, 1)],
    ['for TCP', change(36, 6)],
    ['without the bit of an answer', change(1, 1)],
    ['cut off', (answer: Uint8Array) => answer.subarray(0, 56)],
    ['of one more byte', (answer: Uint8Array) => Uint8Array.of(...answer, 0)],
    ['too long', (answer: Uint8Array) => Uint8Array.of(...answer, ...new Uint8Array(1044))],
    ['of nothing', () => new Uint8Array(0)],
  ])('with an answer %s is ignored', async (_, lie) => {
    const { sim, gateway, mapped } = home();
    gateway.lie = lie;
    await sim.run(20_000);
    expect(mapped()).toEqual([]);
    expect(gateway.requests.filter((request) => request.startsWith('pcp')).length).toBe(3);
  });

  test.each([
    ['port 0', { externalPort: 0 }],
    ['a lifetime of a few seconds', { lifetime: 5 }],
  ])('that grants %s is left alone for a while', async (_, lie) => {
    const { sim, gateway, mapped } = home();
    Object.assign(gateway, lie);
    await sim.run(800_000);
    expect([mapped(), gateway.requests.length]).toEqual([[], 1]);
  });

  test('about the time since its start costs a renewal at half the lifetime, and nothing else', async () => {
    const { sim, gateway, mapped } = home();
    let answers = 0;
    gateway.lie = (answer) => {
      answers += 50;
      return change(8, answers & 255)(answer);
    };
    await sim.run(10 * HOUR);
    expect(gateway.requests.length).toBeLessThan(30);
    expect(mapped()).toEqual(['11.22.33.44 40000']);
  });

  test('at random, or answers without a request, changes nothing and costs nothing', async () => {
    const { sim, gateway, mapped } = home();
    const random = seededBytes(7);
    const garbage = (): Uint8Array => random(1 + (random(1)[0]! % 100));
    gateway.lie = garbage;
    const asker = askerOf(sim);
    await sim.run(60_000);
    // No further request is sent until a quarter of an hour is over.
    const asked = gateway.requests.length;
    for (let sent = 0; sent < 100; sent++) {
      for (const answer of [...ANSWERS, garbage()]) sendFrom(gateway.socket, answer, asker());
      await sim.run(1_000);
    }
    expect([mapped(), gateway.requests.length]).toEqual([[], asked]);
    await sim.run(HOUR);
    expect(mapped()).toEqual([]);
    expect(gateway.requests.length).toBeLessThan(60);
  });
});

test('a neighbour that answers in place of the gateway is ignored', async () => {
  // By NAT-PMP, whose answers have no nonce.
  const { sim, gateway, mapped } = home('nat-pmp', { interfaces: undefined as never });
  gateway.lie = () => null;
  const sockets = [sim.host('neighbour', { addresses: ['192.168.1.66/24'] })].map((host) => host.bind({ port: 5351, receive: () => {} }));
  const asker = askerOf(sim);
  const answerAll = async (): Promise<void> => {
    for (const answer of ANSWERS) {
      for (const socket of sockets) sendFrom(socket, answer, asker());
      await sim.run(5);
    }
  };
  await sim.run(5);
  expect(asker()).toBeGreaterThan(0);
  await answerAll();
  expect(mapped()).toEqual([]);
  // The same bytes from the gateway are accepted.
  sockets.splice(0, 1, gateway.socket);
  await answerAll();
  expect(mapped()).toEqual(['11.22.33.44 1285']);
});

describe('our address as a gateway sees it', () => {
  const interfaces: HostInterface[] = [
    { name: 'eth0', addresses: ['192.168.1.7/24', '2001:470::7/64', 'fd00::7/64'], kind: 'default' },
    { name: 'wlan0', addresses: ['10.0.0.7/8', '2001:471::7/64'], kind: 'default' },
    { name: 'docker0', addresses: ['172.17.0.1/16'], kind: 'virtual' },
  ];
  test.each([
    ['192.168.1.1', '192.168.1.7'],
    ['10.9.9.9', '10.0.0.7'],
    ['203.0.113.1', '192.168.1.7'],
    ['fe80::1%wlan0', '2001:471::7'],
    ['2001:470::1', '2001:470::7'],
  ])('%s is %s', (gateway, own) => {
    const network = { gateways: () => [gateway], interfaces: () => interfaces };
    expect(gatewaysWithOwn(network)).toEqual([{ address: gateway, own }]);
  });

  test('is none without one of its family, and gateways are at most four', () => {
    expect(gatewaysWithOwn({ gateways: () => ['fe80::1%eth9', 'router'], interfaces: () => interfaces })).toEqual([]);
    const many = Array.from({ length: 9 }, (_, i) => `192.168.1.${i + 1}`);
    expect(gatewaysWithOwn({ gateways: () => many, interfaces: () => interfaces }).length).toBe(4);
    expect(gatewaysWithOwn({})).toEqual([]);
  });
});
