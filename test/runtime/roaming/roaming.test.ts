/**
 * Hosts whose network changes: checks of the network, emitted events, and bounds. The same with products:
 * test/e2e/roaming.test.ts.
 */
import { describe, expect, it } from 'vitest';
import { Roaming, type RoamingEvent } from '../../../runtime/roaming/index.ts';
import type { Session } from '../../../runtime/session/index.ts';
import type { RawPeer } from '../../support/fixture/raw-peer.ts';
import { SessionFixture } from '../../support/fixture/sessions.ts';

const HOME = '192.0.2.10/24';
const network = (number: number): string => `198.51.100.${number}/24`;

interface Scene {
  readonly fixture: SessionFixture;
  readonly device: RawPeer;
  readonly client: RawPeer;
  readonly roaming: Roaming;
  readonly events: RoamingEvent[];
  /** Times of the checks. */
  readonly looks: number[];
  connect(): Promise<Session>;
  move(number: number): void;
}

async function scene({ takesFreshSocket = true, isWaiting = false } = {}): Promise<Scene> {
  const fixture = new SessionFixture({ link: { delay: 20 } });
  const device = await fixture.device();
  const client = await fixture.client({ addresses: [HOME] });
  const events: RoamingEvent[] = [];
  const looks: number[] = [];
  const { network: own } = client.environment;
  const { sourceAddress, interfaces } = own;
  own.sourceAddress = (destination) => {
    looks.push(fixture.sim.now);
    return sourceAddress!(destination);
  };
  own.interfaces = () => {
    looks.push(fixture.sim.now);
    return interfaces!();
  };
  const roaming = new Roaming({ host: client.host, takesFreshSocket, onEvent: (event) => events.push(event), isWaiting: () => isWaiting });
  return {
    fixture,
    device,
    client,
    roaming,
    events,
    looks,
    connect: () => fixture.settle(client.host.dials.connect(device.target)),
    move: (number) => fixture.sim.move(client.environment, { addresses: [number === 0 ? HOME : network(number)] }),
  };
}

describe('checks of the network', () => {
  it('run each second while a session is open, and not otherwise', async () => {
    const { fixture, looks, connect } = await scene();
    await fixture.sim.run(10_000);
    expect(looks).toEqual([]);
    const session = await connect();
    await fixture.sim.run(10_000);
    expect(looks.length).toBe(11);
    await fixture.settle(session.close());
    await fixture.sim.run(2_000);
    const closed = looks.length;
    await fixture.sim.run(10_000);
    expect(looks.length).toBe(closed);
  });

  it('run also while a session is wanted', async () => {
    const { fixture, looks, events, move } = await scene({ isWaiting: true });
    await fixture.sim.run(5_000);
    expect(looks.length).toBe(6);
    move(1);
    await fixture.sim.run(1_000);
    expect(events).toEqual(['changed']);
  });

  it('end with it', async () => {
    const { fixture, looks, connect, roaming, move } = await scene();
    await connect();
    roaming.close();
    const before = looks.length;
    move(1);
    await fixture.sim.run(10_000);
    expect(looks.length).toBe(before);
  });

  it('run at once when a datagram cannot be sent', async () => {
    const { fixture, looks, connect, move, client, device } = await scene();
    const session = await connect();
    await fixture.sim.run(1_500);
    fixture.sim.move(client.environment, { addresses: [] });
    const before = looks.length;
    session.ping();
    client.host.datagrams.send(Uint8Array.of(1), client.host.sockets.bound[0]!.path('203.0.113.9', 9));
    await fixture.sim.run(120);
    expect(looks.length).toBeGreaterThan(before);
    expect(session.paths.active.address).toBe(device.environment.addresses[0]);
    move(0);
  });
});

describe('a session', () => {
  it('migrates to a fresh socket, and the old one is closed', async () => {
    const { fixture, client, events, connect, move } = await scene();
    const session = await connect();
    await fixture.sim.run(1_000);
    const [before] = client.host.sockets.bound;
    const seen = new Set<number>();
    fixture.sim.onPacket = ({ source }) => void (source.address === '198.51.100.1' && seen.add(source.port));
    move(1);
    await fixture.sim.run(1_200);
    // No id of the old network appears in the new one.
    expect(seen).toEqual(new Set([client.host.sockets.bound[0]!.port]));
    expect(session.paths.active.socket).toBe(client.host.sockets.bound[0]!.index);
    expect(client.host.sockets.bound[0]).not.toBe(before);
    await fixture.sim.run(5_000);
    expect(client.host.sockets.bound).not.toContain(before);
    move(2);
    await fixture.sim.run(8_000);
    expect([events, session.paths.all.length, client.host.sockets.bound.length]).toEqual([['changed', 'changed'], 1, 1]);
  });

  it('removes the path that it has left, and leaves others alone', async () => {
    const { fixture, device, client, connect, move } = await scene();
    const session = await connect();
    const warm = (await fixture.settle(client.host.sockets.bind({ port: 0 }))).path(device.target.address, device.target.port);
    session.paths.add(warm, { keepInterval: 25_000 });
    await fixture.sim.run(1_000);
    for (const number of [1, 2]) {
      move(number);
      await fixture.sim.run(1_500);
      expect(new Set(session.paths.all)).toEqual(new Set([session.paths.active, warm]));
    }
  });

  it('keeps its socket where its port is known to peers, and is followed', async () => {
    const { fixture, device, client, connect, move } = await scene({ takesFreshSocket: false });
    const session = await connect();
    const path = session.paths.active;
    await fixture.sim.run(1_000);
    move(1);
    await fixture.sim.run(1_500);
    expect([client.host.sockets.bound.length, session.paths.active]).toEqual([1, path]);
    expect(device.incoming.at(-1)!.paths.active.address).toBe('198.51.100.1');
  });

  it('stays on its path after a change that was reverted, without another validation', async () => {
    const { fixture, client, events, connect, move } = await scene();
    const session = await connect();
    await fixture.sim.run(1_000);
    const path = session.paths.active;
    const [socket] = client.host.sockets.bound;
    // The other network carries nothing, nor does the fresh socket once the first network is back.
    fixture.sim.onPacket = ({ source }) =>
      source.address === '198.51.100.1' || (source.address === '192.0.2.10' && source.port !== socket!.port) ? 'drop' : undefined;
    move(1);
    await fixture.sim.run(1_000);
    move(0);
    await fixture.sim.run(1_000);
    expect([events, session.paths.active, client.host.sockets.bound[0]]).toEqual([['changed', 'reverted'], path, socket]);
    await fixture.sim.run(5_000);
    expect([client.host.sockets.bound.length, session.paths.all.length]).toEqual([1, 1]);
  });

  it('probes its path after a sleep, and emits nothing', async () => {
    const { fixture, client, events, connect } = await scene();
    const session = await connect();
    await fixture.sim.run(1_000);
    const paths: unknown[] = [];
    session.on('path', (event) => paths.push(event));
    client.environment.sleep(30_000);
    await fixture.sim.run(30_000);
    const sent: number[] = [];
    fixture.sim.onPacket = ({ from, data }) => void (from === client.environment.name && sent.push(data.length));
    await fixture.sim.run(1_500);
    expect([events, paths]).toEqual([['slept'], []]);
    // A challenge and a PING.
    expect(sent).toContain(1_200);
    expect(Math.min(...sent)).toBeLessThan(60);
  });
});

describe('bounds', () => {
  it('at most four replaced sockets are kept while something uses them', async () => {
    const { fixture, client, connect, move } = await scene();
    // No fresh path is ever validated.
    const isFresh = new Set<number>();
    fixture.sim.onPacket = ({ from, data, source }) =>
      from === 'client2' && data.length === 1_200 && isFresh.has(source.port) ? 'drop' : undefined;
    for (let n = 1; n <= 8; n++) {
      await connect();
      move(n);
      const bound = new Set(client.host.sockets.bound);
      const { network: own } = client.environment;
      const bind = own.bind;
      own.bind = async (options) => {
        const socket = await bind(options);
        if (!bound.has(socket)) isFresh.add(socket.port);
        return socket;
      };
      await fixture.sim.run(8_000);
      own.bind = bind;
      // The next connect leaves from it.
      isFresh.clear();
    }
    expect(client.host.sockets.bound.length).toBe(5);
    expect([...client.host.sessions].every(({ isOpen }) => isOpen)).toBe(true);
  });

  it('hundreds of sessions probe 64 at a time', { tags: ['slow'] }, async () => {
    const fixture = new SessionFixture({ link: { delay: 20 } });
    const many = { limits: { connections: 300 }, core: { connections: 310, memory: 32 << 20 } };
    const client = await fixture.client({ addresses: [HOME], ...many });
    const device = await fixture.device(many);
    new Roaming({ host: device.host, takesFreshSocket: false });
    for (let n = 0; n < 200; n++) await fixture.settle(client.host.dials.connect(device.target));
    await fixture.sim.run(5_000);
    const times: number[] = [];
    fixture.sim.onPacket = ({ from, time }) => void (from === device.environment.name && times.push(time));
    device.environment.sleep(10_000);
    await fixture.sim.run(10_000);
    const woken = fixture.sim.now;
    await fixture.sim.run(2_000);
    const asked = new Set(times.filter((time) => time >= woken));
    expect(asked.size).toBeGreaterThanOrEqual(4);
  });
});
