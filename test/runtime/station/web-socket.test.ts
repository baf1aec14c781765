/** How a base station is reached where UDP is blocked, and how an open channel migrates between UDP and WebSocket. */
import { describe, expect, test } from 'vitest';
import { Router, Status } from '../../../protocol/coap/index.ts';
import type { Session } from '../../../runtime/session/index.ts';
import { type ConfiguredStation, StationConnector } from '../../../runtime/station/index.ts';
import type { Simulation } from '../../../testing/index.ts';
import { generator } from '../../support/crypto.ts';
import { SessionFixture } from '../../support/fixture/sessions.ts';
import { nativeSimulation } from '../../support/simulation.ts';
import { acceptWebSockets } from '../../support/station-websockets.ts';
import { seeds } from '../../support/tiered.ts';
import { openStation, STATION_PORT } from '../session/support.ts';

interface SceneOptions {
  readonly secure?: boolean;
  readonly webSocketPort?: number;
  readonly settings?: ConfiguredStation['webSocket'];
  readonly seed?: number;
  readonly loss?: number;
}

/** A station with WebSockets, and a client in another network. */
async function scene({ secure = true, webSocketPort = STATION_PORT, settings, seed = 1, loss = 0 }: SceneOptions = {}) {
  const simulation = nativeSimulation({ seed, link: { delay: 25, loss } });
  const { host: stationHost, address, environment } = await openStation(simulation, 'station', '198.51.100.9');
  const router = new Router<Session>();
  router.on('GET', '/hello', () => ({ status: Status.CONTENT }));
  router.on('POST', '/echo', ({ payload }) => ({ status: Status.CONTENT, payload }));
  const accepted: Session[] = [];
  stationHost.onSession = (session) => {
    session.router = router;
    accepted.push(session);
  };
  acceptWebSockets(environment, stationHost, { port: webSocketPort, secure });
  const raw = new SessionFixture({ sim: simulation });
  const { host } = await raw.client({ machine: 'client', addresses: ['192.0.2.2/24'] });
  const connector = new StationConnector({ host, station: { ...address, ...(settings && { webSocket: settings }) }, idleTimeout: 600_000 });
  return { simulation, connector, stationHost, host, accepted, environment };
}

/** Uses the channel once. @returns its transport, and ms until it answered */
async function answered(simulation: Simulation, connector: StationConnector): Promise<{ over: string; after: number; session: Session }> {
  const began = simulation.now;
  const use = connector.use(async (session) => {
    await session.request({ method: 'GET', path: '/hello' });
    return session;
  });
  const session = await simulation.settle(use);
  return { over: session.paths.active.kind, after: simulation.now - began, session };
}

/** Sends bodies over the channel one after the other until `until` ms. @returns the duration of the slowest, ms */
async function traffic(simulation: Simulation, connector: StationConnector, until: number, pause = 300): Promise<number> {
  let slowest = 0;
  const send = async (): Promise<void> => {
    for (let i = 0; simulation.now < until; i++) {
      const payload = new Uint8Array(5_000).fill(i);
      const began = simulation.now;
      const answer = await connector.use((session) => session.request({ method: 'POST', path: '/echo', payload }));
      expect(answer.payload).toEqual(payload);
      slowest = Math.max(slowest, simulation.now - began);
      await new Promise<void>((resolve) => simulation.at(simulation.now + pause, 0, resolve));
    }
  };
  await simulation.settle(send(), 2 * (until - simulation.now) + 120_000);
  return slowest;
}

describe('a station is reached', () => {
  test('by UDP where that gets through, and nothing else is opened', async () => {
    const { simulation, connector } = await scene();
    expect(await answered(simulation, connector)).toMatchObject({ over: 'udp', after: 100 });
    expect(simulation.pipes()).toEqual([]);
  });

  test.each([true, false])('over a WebSocket a second after UDP was silent, with TLS: %s', async (secure) => {
    const { simulation, connector } = await scene({ secure });
    simulation.block('client', 'udp');
    const { over, after } = await answered(simulation, connector);
    expect(over).toBe('websocket');
    expect(after).toBeLessThan(1500);
    expect(simulation.pipes().map(({ url }) => url.slice(0, 5))).toEqual([secure ? 'wss:/' : 'ws://']);
  });

  test('over a WebSocket at once where this network blocked UDP before, and no longer once UDP works', async () => {
    const { simulation, connector } = await scene();
    const unblock = simulation.block('client', 'udp');
    const { session } = await answered(simulation, connector);
    await simulation.settle(session.close());
    const again = await answered(simulation, connector);
    expect(again.over).toBe('websocket');
    expect(again.after).toBeLessThan(400);
    unblock();
    await simulation.settle(again.session.close());
    expect(await answered(simulation, connector)).toMatchObject({ over: 'udp' });
    simulation.block('client', 'udp');
    await simulation.settle(connector.use(async (channel) => channel.close()));
    const forgotten = await answered(simulation, connector);
    expect(forgotten.after).toBeGreaterThan(1000);
  });

  test('at the configured URL, and only there', async () => {
    const { simulation, connector } = await scene({ webSocketPort: 8443, settings: { url: 'wss://station:8443/svc/v1' } });
    simulation.block('client', 'udp');
    expect((await answered(simulation, connector)).over).toBe('websocket');
    const elsewhere = await scene({ settings: { url: 'wss://station:8443/svc/v1' } });
    elsewhere.simulation.block('client', 'udp');
    await expect(answered(elsewhere.simulation, elsewhere.connector)).rejects.toMatchObject({
      code: 'CONNECTION_REFUSED',
      message: expect.stringMatching(/no base station answers at station port \d+; nor over a WebSocket: nothing listens at wss:.*8443/),
    });
  });

  test('not over a WebSocket that stalls, which the error reports', async () => {
    const { simulation, connector } = await scene();
    for (const protocol of ['udp', 'tcp'] as const) simulation.block('client', protocol);
    await expect(answered(simulation, connector)).rejects.toMatchObject({
      code: 'CONNECTION_REFUSED',
      message: expect.stringMatching(
        /^no base station answers at station port \d+; nor over a WebSocket: \S+ did not answer within 8900 ms$/,
      ),
    });
    expect(simulation.now).toBe(10_000);
  });

  test('over a WebSocket as soon as the proxy in front of the base station reaches it again, while UDP is silent', async () => {
    const { simulation, connector, environment, stationHost } = await scene({ settings: { url: 'wss://station:8443/svc/v1' } });
    simulation.block('client', 'udp');
    const asked: number[] = [];
    const accept = (): number => {
      asked.push(simulation.now);
      return 502;
    };
    const proxy = environment.listenWebSocket({ port: 8443, secure: true, protocol: 'svc.1', accept });
    simulation.at(3_500, 0, () => {
      proxy.close();
      acceptWebSockets(environment, stationHost, { port: 8443, secure: true });
    });
    const { over, after } = await answered(simulation, connector);
    expect([over, asked.length]).toEqual(['websocket', 2]);
    expect(after).toBeLessThan(3_500 + 3_000);
  });

  test.each([404, 503])('not where the answer is %i, which the error reports; nothing is tried without TLS then', async (status) => {
    const { simulation, connector, environment } = await scene({ webSocketPort: 8443 });
    simulation.block('client', 'udp');
    const asked: number[] = [];
    const accept = (): number => {
      asked.push(simulation.now);
      return status;
    };
    environment.listenWebSocket({ port: STATION_PORT, secure: true, protocol: 'svc.1', accept });
    await expect(answered(simulation, connector)).rejects.toMatchObject({ message: expect.stringContaining(`answered ${status}`) });
    expect(asked.length).toBe(status === 404 ? 1 : 4);
    expect(simulation.now).toBe(10_000);
  });

  test('without TLS never where a certificate must be valid', async () => {
    const { simulation, connector } = await scene({ secure: false, settings: { verifyCertificate: true } });
    simulation.block('client', 'udp');
    await expect(answered(simulation, connector)).rejects.toMatchObject({ code: 'CONNECTION_REFUSED' });
    expect(simulation.pipes()).toEqual([]);
  });

  test('not when another key answers by UDP', async () => {
    const { simulation, host } = await scene();
    const connector = new StationConnector({ host, station: { host: 'station', port: STATION_PORT, fingerprint: 'ab'.repeat(32) } });
    await expect(answered(simulation, connector)).rejects.toMatchObject({ code: 'FINGERPRINT_MISMATCH' });
    expect(simulation.pipes()).toEqual([]);
  });
});

describe('an open channel', () => {
  test('returns to UDP within a minute after that gets through again, and its WebSocket closes', { tags: ['slow'] }, async () => {
    const { simulation, connector, accepted } = await scene();
    const unblock = simulation.block('client', 'udp');
    const { session } = await answered(simulation, connector);
    await simulation.run(30_000);
    unblock();
    await traffic(simulation, connector, simulation.now + 61_000, 2_000);
    expect([session.isOpen, session.paths.active.kind, accepted.length]).toEqual([true, 'udp', 1]);
    expect(accepted[0]!.paths.validated.kind).toBe('udp');
    await simulation.run(15_000);
    expect(simulation.pipes()).toEqual([]);
    expect((await answered(simulation, connector)).session).toBe(session);
  });

  test('stays on its WebSocket while UDP is blocked', async () => {
    const { simulation, connector } = await scene();
    simulation.block('client', 'udp');
    const { session } = await answered(simulation, connector);
    await simulation.run(290_000);
    expect([session.isOpen, session.paths.active.kind, simulation.pipes().length]).toEqual([true, 'websocket', 1]);
    expect(session.paths.all.length).toBe(1);
  });

  test('migrates to a WebSocket when UDP becomes silent under traffic, and survives', async () => {
    const { simulation, connector, accepted } = await scene();
    const { session } = await answered(simulation, connector);
    simulation.at(simulation.now + 1000, 0, () => simulation.block('client', 'udp'));
    const slowest = await traffic(simulation, connector, simulation.now + 10_000);
    expect([session.isOpen, session.paths.active.kind, accepted.length]).toEqual([true, 'websocket', 1]);
    expect(slowest).toBeLessThan(4000);
  });

  test.each(['stall', 'halfOpen'] as const)('takes another WebSocket when its own stops answering: %s', async (fault) => {
    const { simulation, connector, accepted } = await scene();
    simulation.block('client', 'udp');
    const { session } = await answered(simulation, connector);
    simulation.at(simulation.now + 1000, 0, () => simulation.pipes()[0]![fault]());
    const slowest = await traffic(simulation, connector, simulation.now + 10_000);
    expect([session.isOpen, session.paths.active.kind, accepted.length]).toEqual([true, 'websocket', 1]);
    expect(slowest).toBeLessThan(4000);
    expect(simulation.pipes().filter(({ ends }) => ends.opener.isOpen).length).toBe(1);
  });

  test('whose WebSocket is cut ends, and the next use opens another at once', async () => {
    const { simulation, connector } = await scene();
    simulation.block('client', 'udp');
    const { session } = await answered(simulation, connector);
    simulation.pipes()[0]!.cut();
    await simulation.run(100);
    expect(session.isOpen).toBe(false);
    const again = await answered(simulation, connector);
    expect(again.over).toBe('websocket');
    expect(again.after).toBeLessThan(400);
  });

  test('while idle migrates at its next keep-alive when its UDP becomes silent', async () => {
    const { simulation, connector } = await scene();
    const { session } = await answered(simulation, connector);
    simulation.block('client', 'udp');
    await simulation.run(40_000);
    expect([session.isOpen, session.paths.active.kind]).toEqual([true, 'websocket']);
  });

  test('leaves nothing open when it ends', async () => {
    const { simulation, connector, host } = await scene();
    simulation.block('client', 'udp');
    await answered(simulation, connector);
    await simulation.settle(connector.close());
    await simulation.run(1000);
    expect([simulation.pipes(), host.sessions.size]).toEqual([[], 0]);
  });
});

/** Paths that open and close at random, not both closed for long. */
class Weather {
  readonly #simulation: Simulation;
  readonly #random: () => number;
  #unblock: (() => void) | null = null;

  constructor(simulation: Simulation, seed: number) {
    this.#simulation = simulation;
    this.#random = generator(seed);
  }

  /** From now on, until `until` ms; then everything is open. */
  begin(until: number): void {
    const next = this.#simulation.now + 500 + 12_000 * this.#random();
    if (next >= until) this.#simulation.at(until, 0, () => this.#clear());
    else
      this.#simulation.at(next, 0, () => {
        this.#change();
        this.begin(until);
      });
  }

  #change(): void {
    const pipes = this.#simulation.pipes().filter(({ ends }) => ends.opener.isOpen);
    const pipe = pipes[Math.floor(this.#random() * pipes.length)];
    const dice = this.#random();
    if (dice < 0.3) this.#unblock ??= this.#simulation.block('client', 'udp');
    else if (dice < 0.5) this.#clear();
    else if (dice < 0.7) pipe?.stall();
    else if (dice < 0.8) pipe?.halfOpen();
    else if (dice < 0.9) pipe?.resume();
    else pipe?.batch(50);
  }

  #clear(): void {
    this.#unblock?.();
    this.#unblock = null;
  }
}

test.each(seeds(1, 200))('survives paths that open and close, and ends on UDP: seed %i', { tags: ['slow'] }, survives);

async function survives(seed: number): Promise<void> {
  const { simulation, connector, accepted, host } = await scene({ seed, loss: 0.01 });
  const { session } = await answered(simulation, connector);
  const until = simulation.now + 60_000;
  new Weather(simulation, seed).begin(until);
  const slowest = await traffic(simulation, connector, until, 1_500);
  // An end that waits for an answer, with nothing in flight, detects it by its next keep-alive.
  expect(slowest).toBeLessThan(30_000);
  // The next keep-alive, a minute until UDP is tried, and the time a WebSocket lingers.
  await simulation.run(150_000);
  expect([session.isOpen, session.paths.active.kind, accepted.length, session.paths.all.length]).toEqual([true, 'udp', 1, 1]);
  expect(simulation.pipes().filter(({ ends }) => ends.opener.isOpen)).toEqual([]);
  expect(host.sessions.size).toBe(1);
}
