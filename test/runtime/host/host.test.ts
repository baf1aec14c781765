/** Hosts in the simulator: connect, open, close, intercept. */
import { getEventListeners } from 'node:events';
import { describe, expect, it } from 'vitest';
import type { Core } from '../../../bindings/index.ts';
import { Host } from '../../../runtime/host/index.ts';
import type { Session } from '../../../runtime/session/index.ts';
import { acceptedSession, DEVICE_NAME, deviceTarget, hosts, pair, testRouter } from '../session/support.ts';

describe('connect', () => {
  it('another key than the pin is FINGERPRINT_MISMATCH, and the device accepts no session', async () => {
    const both = await hosts();
    const connect = both.client.dials.connect({ ...deviceTarget(both), pin: 'ab'.repeat(32) });
    await expect(both.simulation.settle(connect)).rejects.toMatchObject({ code: 'FINGERPRINT_MISMATCH' });
    await both.simulation.run(1000);
    expect(both.accepted).toEqual([]);
    expect(both.client.sessions.size).toBe(0);
  });

  it('other ids than expected fail', async () => {
    const both = await hosts();
    const target = { ...deviceTarget(both), name: 'device' };
    const expecting = (expect: Record<string, string>) => both.simulation.settle(both.client.dials.connect({ ...target, expect }));
    await expect(expecting({ ProductId: 'pr-other', DeviceId: 'de-1' })).rejects.toMatchObject({ code: 'WRONG_PRODUCT_ID' });
    await expect(expecting({ ProductId: 'pr-1', DeviceId: 'de-other' })).rejects.toMatchObject({ code: 'WRONG_DEVICE_ID' });
    expect((await expecting({ ProductId: 'pr-1', DeviceId: 'de-1' })).isOpen).toBe(true);
  });

  it('TIMEOUT where no host answers, and where the name is another', async () => {
    const both = await hosts();
    const { pin, name } = deviceTarget(both);
    const nobody = both.client.dials.connect({ address: '10.0.0.9', port: 1, name, pin, timeout: 3000 });
    const start = both.simulation.now;
    await expect(both.simulation.settle(nobody)).rejects.toMatchObject({ code: 'TIMEOUT' });
    expect(both.simulation.now - start).toBeGreaterThanOrEqual(3000);
    expect(both.simulation.now - start).toBeLessThan(3100);
    const other = both.client.dials.connect({ ...deviceTarget(both), name: 'device:pr-1.de-other', timeout: 3000 });
    await expect(both.simulation.settle(other)).rejects.toMatchObject({ code: 'TIMEOUT' });
  });

  it('a connect that is over leaves no listener at its signal', async () => {
    const both = await hosts();
    const { signal } = new AbortController();
    const connect = both.client.dials.connect({ ...deviceTarget(both), signal });
    expect(getEventListeners(signal, 'abort').length).toBe(1);
    await both.simulation.settle(connect);
    expect(getEventListeners(signal, 'abort')).toEqual([]);
  });

  it('STOPPED by its signal', async () => {
    const both = await hosts();
    await expect(both.client.dials.connect({ ...deviceTarget(both), signal: AbortSignal.abort() })).rejects.toMatchObject({
      code: 'STOPPED',
    });
    const controller = new AbortController();
    const connect = both.client.dials.connect({ ...deviceTarget(both), address: '10.0.0.9', signal: controller.signal });
    await both.simulation.run(100);
    controller.abort();
    await expect(connect).rejects.toMatchObject({ code: 'STOPPED' });
  });

  it.each([
    { address: 'device', port: 1 },
    { address: '10.0.0.1', port: 0 },
    { address: '10.0.0.1', port: 65_536 },
    { address: '10.0.0.1', port: 1, socket: 4 },
  ])('INVALID_ARGUMENT for %o', async (to) => {
    const both = await hosts();
    await expect(both.client.dials.connect({ name: DEVICE_NAME, ...to })).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' });
  });

  it('a host without responder is invisible', async () => {
    const both = await hosts();
    const target = { address: '10.0.0.2', port: both.client.sockets.bound[0]!.port, name: 'device', timeout: 2000 };
    await expect(both.simulation.settle(both.device.dials.connect(target))).rejects.toMatchObject({ code: 'TIMEOUT' });
  });

  it('a device at its limit ends the session with DEVICE_INTERNAL_ERROR, and accepts it when there is capacity again', {
    tags: ['slow'],
  }, async () => {
    const both = await hosts({ device: { limits: { connections: 1 } } });
    const first = await both.simulation.settle(both.client.dials.connect(deviceTarget(both)));
    const attempt = async (): Promise<string> => {
      try {
        const session = await both.client.dials.connect(deviceTarget(both));
        const response = await session.request({ method: 'GET', path: '/nothing' });
        return `answered ${response.status}`;
      } catch (error) {
        return (error as { code: string }).code;
      }
    };
    expect(await both.simulation.settle(attempt())).toBe('DEVICE_INTERNAL_ERROR');
    await both.simulation.settle(first.close());
    await both.simulation.run(5000);
    expect(await both.simulation.settle(attempt())).toBe('answered 404');
  });

  it('succeeds under loss', { tags: ['slow'] }, async () => {
    for (let seed = 1; seed <= 10; seed++) {
      const { simulation, session } = await pair({ seed, link: { loss: 0.2, delay: 20 } });
      expect((await simulation.settle(session.request({ method: 'GET', path: '/nothing' }))).status).toBe(404);
    }
  });
});

describe('open and close', () => {
  it('PORT_IN_USE leaves nothing bound', async () => {
    const both = await hosts();
    const identity = both.deviceEnvironment.crypto.generateKey();
    const again = Host.open(both.deviceEnvironment, { identity, binds: [{ port: 6000 }, { port: 5592 }] });
    await expect(both.simulation.settle(again)).rejects.toMatchObject({ code: 'PORT_IN_USE' });
    const free = await both.simulation.settle(Host.open(both.deviceEnvironment, { identity, binds: [{ port: 6000 }] }));
    await both.simulation.settle(free.close());
  });

  it('close ends the sessions of every peer, fails connects in progress and frees the port', async () => {
    const both = await pair();
    await acceptedSession(both);
    const connect = both.device.dials.connect({ address: '10.0.0.9', port: 1, name: 'x' });
    const results = Promise.allSettled([connect, both.device.close(), both.device.close()]);
    const [connected, closed] = await both.simulation.settle(results);
    expect(connected).toMatchObject({ reason: { code: 'STOPPED' } });
    expect(closed.status).toBe('fulfilled');
    expect(await both.simulation.settle(both.session.closed)).toMatchObject({ code: 'CLOSED' });
    expect(await both.accepted[0]!.closed).toBeNull();
    await expect(both.device.dials.connect(deviceTarget(both))).rejects.toMatchObject({ code: 'STOPPED' });
    const identity = both.deviceEnvironment.crypto.generateKey();
    const next = await both.simulation.settle(Host.open(both.deviceEnvironment, { identity, binds: [{ port: 5592 }] }));
    expect(next.sockets.bound[0]!.port).toBe(5592);
  });

  it('a session listener that throws is logged, and the session continues', async () => {
    const both = await pair({
      device: {
        onSession: () => {
          throw new Error('mine');
        },
      },
    });
    expect((await both.simulation.settle(both.session.request({ method: 'GET', path: '/x' }))).status).toBe(404);
    expect(both.errors.length).toBe(1);
  });
});

it('passes each datagram to its interceptors first, in their order; the first that consumes it keeps it', async () => {
  const both = await pair();
  const taken: number[] = [];
  const seen: number[] = [];
  both.device.datagrams.intercept((datagram, path) => {
    if (datagram[0] !== 0x88) return false;
    taken.push(datagram.length);
    both.device.datagrams.send(Uint8Array.of(0x42, 7), path);
    return true;
  });
  const remove = both.device.datagrams.intercept((datagram) => {
    if (datagram[0]! >= 0x88) seen.push(datagram[0]!);
    return datagram[0] === 0x89;
  });
  const returned: number[] = [];
  both.client.datagrams.intercept((datagram) => datagram[0] === 0x42 && returned.push(datagram[1]!) > 0);
  for (const first of [0x88, 0x89]) both.client.datagrams.send(new Uint8Array(30).fill(first), both.session.paths.active);
  await both.simulation.run(100);
  expect([taken, seen, returned]).toEqual([[30], [0x89], [7]]);
  remove();
  both.client.datagrams.send(new Uint8Array(30).fill(0x89), both.session.paths.active);
  await both.simulation.run(100);
  expect(seen).toEqual([0x89]);
  expect((await both.simulation.settle(both.session.request({ method: 'GET', path: '/x' }))).status).toBe(404);
});

it('garbage on the socket is dropped and disturbs no session', async () => {
  const both = await pair();
  const [from, to] = [
    { address: '10.0.0.2', port: both.client.sockets.bound[0]!.port },
    { address: '10.0.0.1', port: 5592 },
  ];
  for (let i = 0; i < 500; i++) {
    both.simulation.inject(from, to, both.clientEnvironment.crypto.randomBytes(i));
    both.simulation.inject(to, from, both.clientEnvironment.crypto.randomBytes(i));
  }
  await both.simulation.run(5000);
  expect(both.errors).toEqual([]);
  expect((await both.simulation.settle(both.session.request({ method: 'GET', path: '/x' }))).status).toBe(404);
  expect(both.device.stats()).toMatchObject({ failures: 0 });
});

describe('a core that fails', () => {
  /** A pair whose device cores are kept, newest last. */
  async function breakable() {
    const cores: Core[] = [];
    const both = await hosts();
    const create = both.deviceEnvironment.createCore.bind(both.deviceEnvironment);
    const environment = Object.assign(Object.create(both.deviceEnvironment), {
      createCore: async (options: Parameters<typeof create>[0]) => {
        const core = await create(options);
        cores.push(core);
        return core;
      },
    });
    await both.simulation.settle(both.device.close());
    const identity = both.deviceEnvironment.crypto.generateKey();
    const sessions: Session[] = [];
    const device = await both.simulation.settle(
      Host.open(environment, {
        identity,
        binds: [{ port: 5592 }],
        responder: () => [DEVICE_NAME],
        router: testRouter(both.deviceEnvironment),
        onSession: (session) => sessions.push(session),
      }),
    );
    return { ...both, device, cores, sessions };
  }

  it('ends its connections; a new one serves on the same socket', async () => {
    const both = await breakable();
    const { simulation, client, cores, sessions, device } = both;
    const session = await simulation.settle(client.dials.connect(deviceTarget(both)));
    await simulation.run(() => sessions.length === 1);
    const failed = sessions[0]!.closed;
    const open = sessions[0]!.request({ method: 'GET', path: '/never' });
    open.catch(() => {});
    expect(() => cores[0]!.failForTest()).toThrow(expect.objectContaining({ code: 'CORE_FAILED' }));
    void session.request({ method: 'GET', path: '/hello' }).catch(() => {});
    expect(await simulation.settle(failed)).toMatchObject({ code: 'CORE_FAILED' });
    await expect(open).rejects.toMatchObject({ code: 'CORE_FAILED' });
    await simulation.run(1000);
    expect(cores.length).toBe(2);
    expect(both.errors).toEqual([expect.stringContaining('data plane failed')]);
    const again = await simulation.settle(client.dials.connect(deviceTarget({ ...both, device })));
    expect((await simulation.settle(again.request({ method: 'GET', path: '/hello' }))).status).toBe(205);
  });

  it('is replaced at once also when only the close of a session meets the failure', async () => {
    const both = await breakable();
    const { simulation, client, cores, sessions } = both;
    await simulation.settle(client.dials.connect(deviceTarget(both)));
    await simulation.run(5_000);
    expect(() => cores[0]!.failForTest()).toThrow();
    void sessions[0]!.close();
    await simulation.run(100);
    expect(cores.length).toBe(2);
  });

  it('uses no route, also before its end was noticed', async () => {
    const both = await breakable();
    const { simulation, client, cores, sessions, device } = both;
    await simulation.settle(client.dials.connect(deviceTarget(both)));
    await simulation.run(100);
    const [channel] = sessions;
    device.routes.path(channel!, new Uint8Array(8).fill(1));
    await simulation.run(125_000);
    expect(() => cores[0]!.failForTest()).toThrow();
    expect(device.routes.path(channel!, new Uint8Array(8).fill(2)).kind).toBe('route');
  });
});
