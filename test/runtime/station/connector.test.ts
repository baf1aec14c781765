/** A client's channels to base stations: use, reuse, redirects, failures. */
import { beforeEach, describe, expect, it } from 'vitest';
import type { Host } from '../../../runtime/host/index.ts';
import type { Session } from '../../../runtime/session/index.ts';
import { Redirect, type StationAddress, StationConnector } from '../../../runtime/station/index.ts';
import type { Simulation } from '../../../testing/index.ts';
import { SessionFixture } from '../../support/fixture/sessions.ts';
import { nativeSimulation } from '../../support/simulation.ts';
import { openServingStation, STATION_PORT } from '../session/support.ts';

async function client(simulation: Simulation, station: StationAddress, idleTimeout?: number) {
  const raw = new SessionFixture({ sim: simulation });
  const { environment, host } = await raw.client({ machine: 'client', addresses: ['10.0.0.2/24'] });
  const connector = new StationConnector({ host, station, ...(idleTimeout === undefined ? {} : { idleTimeout }) });
  return { environment, host, connector };
}

const station = (simulation: Simulation, name = 'station', address = '10.0.0.9', extra = {}) =>
  openServingStation(simulation, name, address, extra);

const hello = async (session: Session): Promise<number> => (await session.request({ method: 'GET', path: '/hello' })).status;

let simulation: Simulation;
beforeEach(() => {
  simulation = nativeSimulation();
});

describe('use', () => {
  it('connects once for all concurrent uses', async () => {
    const { host: stationHost, address } = await station(simulation);
    const { connector } = await client(simulation, address);
    const seen = new Set<Session>();
    const use = () =>
      connector.use(async (session) => {
        seen.add(session);
        return hello(session);
      });
    expect(await simulation.settle(Promise.all([use(), use(), use()]))).toEqual([205, 205, 205]);
    expect(await simulation.settle(use())).toBe(205);
    expect(seen.size).toBe(1);
    expect(stationHost.sessions.size).toBe(1);
  });

  it('shows the station a throw-away key', async () => {
    const { address } = await station(simulation);
    const { connector, host } = await client(simulation, address, 1000);
    const key = () => connector.use(async (session) => session.localFingerprint);
    const first = await simulation.settle(key());
    await simulation.run(3000);
    const second = await simulation.settle(key());
    expect(new Set([first, second, host.fingerprint]).size).toBe(3);
  });

  it('follows redirects and keeps each channel', async () => {
    const [one, two] = [await station(simulation, 'one', '10.0.0.9'), await station(simulation, 'two', '10.0.0.10')];
    const { connector } = await client(simulation, one.address);
    const seen: [string, number][] = [];
    const use = () =>
      connector.use<number>(async (session, { station: at, redirects }) => {
        seen.push([at.host, redirects]);
        return at.host === 'one' ? new Redirect(two.address) : hello(session);
      });
    expect(await simulation.settle(use())).toBe(205);
    expect(await simulation.settle(use())).toBe(205);
    expect(seen).toEqual([
      ['one', 0],
      ['two', 1],
      ['one', 0],
      ['two', 1],
    ]);
    expect([one.host.sessions.size, two.host.sessions.size]).toEqual([1, 1]);
  });

  it('BAD_RESPONSE for a loop of redirects', async () => {
    const { address } = await station(simulation);
    const { connector } = await client(simulation, address);
    let runs = 0;
    const loop = connector.use<number>(async () => {
      runs++;
      return new Redirect(address);
    });
    await expect(simulation.settle(loop)).rejects.toMatchObject({ code: 'BAD_RESPONSE' });
    expect(runs).toBe(6);
  });

  it('closes when idle, not while it is used', { tags: ['slow'] }, async () => {
    const { host: stationHost, address } = await station(simulation);
    const { connector } = await client(simulation, address, 5000);
    const slow = connector.use((session) => session.request({ method: 'GET', path: '/slow' }));
    await simulation.settle(slow);
    await simulation.run(4000);
    await simulation.settle(connector.use(hello));
    await simulation.run(4000);
    expect(stationHost.sessions.size).toBe(1);
    await simulation.run(2000);
    expect(stationHost.sessions.size).toBe(0);
    expect(await simulation.settle(connector.use(hello))).toBe(205);
  });

  it('stays open while one use takes longer than it may be idle', async () => {
    const { address } = await station(simulation);
    const { environment, connector } = await client(simulation, address, 5000);
    await simulation.settle(connector.use(hello));
    await simulation.run(4000);
    const isOpen = connector.use(async (session) => {
      await new Promise<void>((resolve) => void environment.clock.schedule(3000, resolve));
      return session.isOpen;
    });
    expect(await simulation.settle(isOpen)).toBe(true);
  });

  it('dials at most four addresses of a base station', async () => {
    const { connector, environment, host } = await client(simulation, { host: 'many', port: STATION_PORT, fingerprint: 'ab'.repeat(32) });
    const dialled: string[] = [];
    const addresses = Array.from({ length: 6 }, (_, index) => `10.0.0.${100 + index}`);
    environment.network.resolve = async () => addresses;
    const dial = host.dials.start.bind(host.dials);
    host.dials.start = (options) => {
      if ('address' in options) dialled.push(options.address);
      return dial(options);
    };
    await expect(simulation.settle(connector.use(hello, { timeout: 3000 }))).rejects.toMatchObject({ code: 'CONNECTION_REFUSED' });
    expect(dialled).toEqual(addresses.slice(0, 4));
  });

  it('stays while a relayed session runs over it', async () => {
    const { host: stationHost, address } = await station(simulation);
    const { connector, host } = await client(simulation, address, 1000);
    let dial: ReturnType<Host['dials']['start']> | undefined;
    await simulation.settle(
      connector.use(async (session) => {
        const path = host.routes.path(session, new Uint8Array(8).fill(5));
        dial = host.dials.start({ path, name: 'device', timeout: 20_000 });
        dial.result.catch(() => {});
      }),
    );
    await simulation.run(15_000);
    expect(stationHost.sessions.size).toBe(1);
    await simulation.run(15_000);
    expect(stationHost.sessions.size).toBe(0);
    await expect(dial!.result).rejects.toMatchObject({ code: 'TIMEOUT' });
  });

  it('a kept channel of a restarted station is replaced transparently', { tags: ['slow'] }, async () => {
    const resetSecret = new Uint8Array(32).fill(1);
    const first = await station(simulation, 'station', '10.0.0.9', { resetSecret });
    const { connector } = await client(simulation, first.address, 600_000);
    await simulation.settle(connector.use(hello));
    first.environment.stop();
    await station(simulation, 'station', '10.0.0.9', { resetSecret, identity: first.identity });
    const start = simulation.now;
    expect(await simulation.settle(connector.use(hello))).toBe(205);
    expect(simulation.now - start).toBeLessThan(1000);
  });

  it('an error of the caller is returned to it, and the channel stays', async () => {
    const { host: stationHost, address } = await station(simulation);
    const { connector } = await client(simulation, address);
    await expect(
      simulation.settle(
        connector.use(async () => {
          throw new Error('mine');
        }),
      ),
    ).rejects.toThrow('mine');
    await simulation.run(1000);
    expect(stationHost.sessions.size).toBe(1);
  });
});

describe('failures', () => {
  const nowhere: StationAddress = { host: '10.0.0.77', port: STATION_PORT, fingerprint: 'ab'.repeat(32) };

  it('CONNECTION_REFUSED where no station answers, within the given time; the next use tries again', async () => {
    const { connector } = await client(simulation, nowhere);
    for (let i = 0; i < 2; i++) {
      const start = simulation.now;
      await expect(simulation.settle(connector.use(hello, { timeout: 2000 }))).rejects.toMatchObject({ code: 'CONNECTION_REFUSED' });
      expect(simulation.now - start).toBeGreaterThanOrEqual(2000);
      expect(simulation.now - start).toBeLessThan(2100);
    }
  });

  it('DNS, also when the resolver never answers', async () => {
    const { connector, environment } = await client(simulation, { ...nowhere, host: 'nowhere' });
    await expect(simulation.settle(connector.use(hello))).rejects.toMatchObject({ code: 'DNS' });
    Object.assign(environment.network, { resolve: () => new Promise(() => {}) });
    await expect(simulation.settle(connector.use(hello, { timeout: 1000 }))).rejects.toMatchObject({ code: 'DNS' });
  });

  it('FINGERPRINT_MISMATCH for another key', async () => {
    const { address, host } = await station(simulation);
    const { connector } = await client(simulation, { ...address, fingerprint: 'ab'.repeat(32) });
    await expect(simulation.settle(connector.use(hello))).rejects.toMatchObject({ code: 'FINGERPRINT_MISMATCH' });
    expect(host.sessions.size).toBe(0);
  });

  it('STOPPED by its signal, which leaves the dial to the other uses', async () => {
    const simulation = nativeSimulation({ link: { delay: 200 } });
    const { address } = await station(simulation);
    const { connector } = await client(simulation, address);
    const controller = new AbortController();
    const [mine, other] = [connector.use(hello, { signal: controller.signal }), connector.use(hello)];
    await simulation.run(10);
    controller.abort();
    await expect(mine).rejects.toMatchObject({ code: 'STOPPED' });
    expect(await simulation.settle(other)).toBe(205);
    await expect(connector.use(hello, { signal: controller.signal })).rejects.toMatchObject({ code: 'STOPPED' });
  });

  it('after close', async () => {
    const { address, host: stationHost } = await station(simulation);
    const { connector } = await client(simulation, address);
    await simulation.settle(connector.use(hello));
    await simulation.settle(connector.close());
    await simulation.run(100);
    expect(stationHost.sessions.size).toBe(0);
    await expect(connector.use(hello)).rejects.toMatchObject({ code: 'STOPPED' });
  });
});
