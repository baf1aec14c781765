/** The cost of a client's search for a direct path, and what it leaves behind however it ends. */
import { describe, expect, test } from 'vitest';
import type { Core } from '../../bindings/index.ts';
import type { SimulatedHost, SimulatedPacket } from '../../testing/index.ts';
import { type Homes, HomesFixture, isBetweenHomes } from '../support/fixture/homes.ts';

/** Returns a function that counts the extra sockets of a host: those that an attempt opened. */
function socketsOf(host: SimulatedHost): { count: () => number } {
  const { bind } = host.network;
  let open = 0;
  const network = host.network as { bind: typeof bind };
  network.bind = async (options) => {
    const socket = await bind(options);
    if (options.host !== '0.0.0.0' || options.bulk !== true) return socket;
    open++;
    const { close } = socket;
    let closed = false;
    socket.close = function () {
      if (!closed) open--;
      closed = true;
      close.call(this);
    };
    return socket;
  };
  return { count: () => open };
}

async function withSockets(homes: Homes): Promise<{ fixture: HomesFixture; client: () => number; device: () => number }> {
  const fixture = await HomesFixture.open(homes);
  const client = socketsOf(fixture.clientHome.host);
  const device = socketsOf(fixture.deviceHome.host);
  return { fixture, client: client.count, device: device.count };
}

describe('a direct path', () => {
  test('is found within a second of the connect at 50 ms round trip, and takes at most 4 KiB on the relay', {
    tags: ['slow'],
  }, async () => {
    const fixture = await HomesFixture.open({}, { link: { delay: 25 } });
    const connection = await fixture.relayed();
    const connected = fixture.sim.now;
    let bytes = 0;
    let isCounting = true;
    // Route packets, as the ends send them: the station's copies carry the same bytes again.
    fixture.sim.onPacket = ({ from, to, data, destination, source }: SimulatedPacket) => {
      const isRelay = destination.port === 4_433 || source.port === 4_433;
      if (isCounting && isRelay && to === 'station' && from !== 'station') bytes += data.length;
      return undefined;
    };
    await fixture.untilType(connection, 'DIRECT', 5_000);
    const took = fixture.sim.now - connected;
    isCounting = false;
    expect(took).toBeLessThanOrEqual(1_000);
    expect(bytes).toBeLessThanOrEqual(4_096);
  });
});

describe('sockets', () => {
  const hard = { client: 'random', device: 'port' } as const;

  test.each([
    ['client', hard],
    ['device', { client: 'port', device: 'random' } as const],
  ])(
    'that the %s opened for a NAT with random ports are closed, except the one in use, which closes with its path',
    { tags: ['slow'] },
    async (end, homes) => {
      const { fixture, client, device } = await withSockets(homes);
      const connection = await fixture.relayed();
      await fixture.sim.run(() => connection.getType() === 'DIRECT', 60_000);
      await fixture.sim.run(35_000);
      const counts = { client, device };
      expect([counts[end as 'client' | 'device'](), client() + device()]).toEqual([1, 1]);
      fixture.sim.onPacket = (packet) => (isBetweenHomes(packet) ? 'drop' : undefined);
      await fixture.coap(connection, 'GET', '/hello');
      expect(connection.getType()).toBe('RELAY');
      await fixture.sim.run(1_000);
      expect(device()).toBe(0);
      await fixture.sim.run(95_000);
      expect([client(), device()]).toEqual([0, 0]);
    },
  );

  test.each(['client', 'device'])('are closed when the connection ends on such a path, by the %s', { tags: ['slow'] }, async (end) => {
    for (const homes of [hard, { client: 'port', device: 'random' } as const]) {
      const { fixture, client, device } = await withSockets(homes);
      const connection = await fixture.relayed();
      await fixture.sim.run(() => connection.getType() === 'DIRECT', 60_000);
      await fixture.sim.run(5_000);
      expect(client() + device()).toBe(1);
      await fixture.settle(end === 'client' ? connection.close() : fixture.atDevice.close());
      await fixture.sim.run(2_000);
      expect([client(), device(), connection.isConnected]).toEqual([0, 0, false]);
    }
  });
});

describe('nothing is left', () => {
  /** The time in ms after the connect, and the action. */
  const ends: [string, number, (fixture: HomesFixture) => Promise<unknown>][] = [];
  for (const at of [0, 30, 60, 100, 150, 700, 2_000]) {
    ends.push(['the client stops', at, ({ clientProduct }) => clientProduct.stop()]);
    ends.push(['the device closes', at, ({ under }) => under.device.close()]);
  }

  test.each(ends)('when %s, %d ms after the connect', { tags: ['slow'] }, async (_, at, end) => {
    for (const homes of [{}, { client: 'random', device: 'port' }, { device: 'blocked' }] as const) {
      const { fixture, client, device } = await withSockets(homes);
      await fixture.relayed();
      await fixture.sim.run(at);
      await fixture.settle(end(fixture));
      await fixture.sim.run(130_000);
      await fixture.settle(fixture.clientProduct.stop());
      expect([client(), device()]).toEqual([0, 0]);
    }
  });

  test('of timers, once client, device and station have ended', { tags: ['slow'] }, async () => {
    const fixture = await HomesFixture.open({ client: 'random' });
    await fixture.relayed();
    await fixture.sim.run(800);
    await fixture.settle(fixture.clientProduct.stop());
    await fixture.settle(fixture.under.device.close());
    await fixture.settle(fixture.stationUnderTest.basestation.close());
    // Nothing happens later than two minutes after the last activity.
    await fixture.sim.run(120_000);
    expect(await fixture.sim.run(() => false).catch(() => 'still busy')).toBe(false);
  });
});

describe('two connections of one client', () => {
  test('to the same device become direct at the same time', async () => {
    const fixture = await HomesFixture.open({ rendezvous: 'anyone' });
    const connections = [fixture.looking(), fixture.looking()];
    await fixture.settle(Promise.all(connections.map((connection) => connection.connect())));
    await fixture.sim.run(() => connections.every((connection) => connection.getType() === 'DIRECT'), 30_000);
  });

  test('that both need a spray become direct: one that found a path does not keep the other from a spray of its own', {
    tags: ['slow'],
  }, async () => {
    const fixture = await HomesFixture.open({ client: 'random', device: 'port' });
    const connections = [await fixture.relayed(), await fixture.relayed()];
    for (const each of connections) await fixture.untilType(each, 'DIRECT', 120_000);
  });
});

describe('a session that ends', () => {
  test('in the middle of a round frees the slot of the round, of which a device has one for strangers and a client 64', {
    tags: ['slow'],
  }, async () => {
    const fixture = await HomesFixture.open({ device: 'blocked' });
    for (let i = 0; i < 70; i++) {
      const connection = await fixture.relayed();
      await fixture.sim.run(100);
      await fixture.settle(connection.close());
      await fixture.sim.run(900);
    }
    const last = await fixture.relayed();
    await fixture.sim.run(10_000);
    expect(last.paths().whyNotDirect?.code).toBe('NO_ANSWER');
  });
});

describe('a core that fails in the middle of a round', () => {
  test.each(['client', 'device'])('at the %s ends the round, and the next connection becomes direct', { tags: ['slow'] }, async (end) => {
    const cores: Core[] = [];
    const fixture = await HomesFixture.open({
      onHosts: (client, device) => {
        const host = end === 'client' ? client : device;
        const { createCore } = host;
        host.createCore = async (options) => {
          const core = await createCore.call(host, options);
          cores.push(core);
          return core;
        };
      },
    });
    const connection = await fixture.relayed();
    await fixture.sim.run(80);
    expect(() => cores.at(-1)!.failForTest()).toThrow(expect.objectContaining({ code: 'CORE_FAILED' }));
    await fixture.sim.run(90_000);
    expect([connection.isConnected, cores.length]).toEqual([false, 2]);
    const next = await fixture.relayed();
    await fixture.untilType(next, 'DIRECT', 10_000);
  });
});
