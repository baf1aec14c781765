/** Sessions in the simulator: requests both ways, observation, datagrams, the end. */
import { getEventListeners } from 'node:events';
import { describe, expect, it } from 'vitest';
import { Router } from '../../../protocol/coap/index.ts';
import { PacketType } from '../../../protocol/packet/index.ts';
import type { Session } from '../../../runtime/session/index.ts';
import { openedStream } from '../../support/opened-stream.ts';
import { acceptedSession, deviceTarget, hosts, type Pair, pair, pattern, testRouter, text, utf8 } from './support.ts';

/** Connected, with the test resources on the device. */
async function served(options: Parameters<typeof pair>[0] = {}) {
  const both = await hosts(options);
  const router = testRouter(both.deviceEnvironment);
  both.device.onSession = (session) => {
    both.accepted.push(session);
    session.router = router;
  };
  const session = await both.simulation.settle(both.client.dials.connect(deviceTarget(both)));
  return { ...both, session, router };
}

const get = (path: string) => ({ method: 'GET', path }) as const;

describe('a session', () => {
  it('shows each end the identity of the other', async () => {
    const both = await pair();
    const { session, device, client } = both;
    const accepted = await acceptedSession(both);
    expect(session.connection.initiator).toBe(true);
    expect(accepted.connection.initiator).toBe(false);
    expect([session.localFingerprint, session.peer.fingerprint]).toEqual([client.fingerprint, device.fingerprint]);
    expect([accepted.localFingerprint, accepted.peer.fingerprint]).toEqual([device.fingerprint, client.fingerprint]);
    expect(session.peer.verified).toBe('pinned');
    expect(session.peer.info).toMatchObject({ ProductId: 'pr-1', DeviceId: 'de-1' });
    expect(session.peer.handshakeHash).toEqual(accepted.peer.handshakeHash);
    expect(session.paths.type).toBe('DIRECT');
    expect(session.stats()).toMatchObject({ openStreams: 0, openRequests: 0 });
  });

  it('without a pin is not verified until a password or pairing verifies it', async () => {
    const both = await hosts();
    const { pin: _, ...target } = deviceTarget(both);
    const session = await both.simulation.settle(both.client.dials.connect(target));
    expect(session.peer.verified).toBe('none');
    session.peer.markVerified('password');
    expect(session.peer.verified).toBe('password');
  });

  it('is local on the local socket from an address of the same network, and only there', async () => {
    const near = await pair();
    expect((await acceptedSession(near)).paths.isLocal).toBe(true);
    expect(near.session.paths.isLocal).toBe(false);
    const other = await pair({ device: { binds: [{ port: 5592 }] } });
    expect((await acceptedSession(other)).paths.isLocal).toBe(false);
  });

  it('is not local before the peer has answered at a new address, and no longer at a distant one', async () => {
    const router = new Router<Session>();
    router.on('GET', '/local', ({ context }) => ({ status: 205, payload: new TextEncoder().encode(`${context.paths.isLocal}`) }));
    const both = await pair({ device: { router }, link: { delay: 5 } });
    const { simulation, session, clientEnvironment } = both;
    const asked = async () => new TextDecoder().decode((await simulation.settle(session.request(get('/local')))).payload);
    expect(await asked()).toBe('true');
    simulation.rebind(clientEnvironment, 'port');
    expect([await asked(), await asked()]).toEqual(['false', 'true']);
    simulation.rebind(clientEnvironment, 'address');
    expect(await asked()).toBe('false');
    await simulation.run(1000);
    expect(await asked()).toBe('false');
    expect((await acceptedSession(both)).paths.active.address).not.toBe('10.0.0.2');
  });

  it('runs on new keys when either end asks for them', async () => {
    const both = await served();
    const accepted = await acceptedSession(both);
    const phases = { client: new Set<boolean>(), device: new Set<boolean>() };
    both.simulation.onPacket = ({ from, data }) => {
      if ((data[0]! & 0xc0) === PacketType.DATA) phases[from as 'client' | 'device'].add((data[0]! & 0x20) !== 0);
      return undefined;
    };
    const talk = () => both.simulation.settle(both.session.request(get('/hello')));
    await talk();
    await both.simulation.run(100); // the device's answer is acknowledged
    // not before 3 PTO have passed
    expect([both.session.connection.updateKey(), accepted.connection.updateKey()]).toEqual([true, true]);
    await talk();
    expect(phases).toEqual({ client: new Set([false]), device: new Set([false]) });
    await both.simulation.run(3000);
    expect((await talk()).status).toBe(205);
    expect(phases).toEqual({ client: new Set([false, true]), device: new Set([false, true]) });
    await both.simulation.settle(both.session.close());
  });

  it('with its own identity shows that one', async () => {
    const both = await hosts();
    const identity = both.clientEnvironment.crypto.generateKey();
    const session = await both.simulation.settle(both.client.dials.connect({ ...deviceTarget(both), identity }));
    const accepted = await acceptedSession(both);
    expect(session.localFingerprint).not.toBe(both.client.fingerprint);
    expect(accepted.peer.fingerprint).toBe(session.localFingerprint);
  });
});

describe('requests', () => {
  it('GET client → device', async () => {
    const { simulation, session } = await served();
    const response = await simulation.settle(session.request(get('/hello')));
    expect(response).toMatchObject({ status: 205, contentFormat: 0 });
    expect(text(response.payload)).toBe('hello');
  });

  it('cost one round trip on a new session', async () => {
    const { simulation, client, ...both } = await served({ link: { delay: 50 } });
    const start = simulation.now;
    const session = await simulation.settle(client.dials.connect(deviceTarget({ simulation, client, ...both })));
    await simulation.settle(session.request(get('/hello')));
    expect(simulation.now - start).toBeLessThan(205); // one for the handshake, one for the request
  });

  it('an unknown path, a session without router, an error and a bug of the handler', async () => {
    const { simulation, session, accepted } = await served();
    expect((await simulation.settle(session.request(get('/nothing')))).status).toBe(404);
    expect((await simulation.settle(session.request(get('/refused')))).status).toBe(403);
    expect((await simulation.settle(session.request(get('/fail')))).status).toBe(500);
    accepted.at(-1)!.router = null;
    expect((await simulation.settle(session.request(get('/hello')))).status).toBe(404);
  });

  it('device → client works the same', async () => {
    const both = await hosts();
    const router = new Router<Session>().on('GET', '/who', ({ context }) => ({ status: 205, payload: utf8(context.peer.fingerprint) }));
    await both.simulation.settle(both.client.dials.connect({ ...deviceTarget(both), router }));
    const response = await both.simulation.settle((await acceptedSession(both)).request(get('/who')));
    expect(text(response.payload)).toBe(both.device.fingerprint);
  });

  it.each([0, 1, 1000, 66_000, 70_000, 300_000])('echoes %d bytes, in blocks when they do not fit one message', async (length) => {
    const { simulation, session } = await served({ link: { delay: 10, loss: 0.02 }, seed: length + 1 });
    const payload = pattern(length);
    const response = await simulation.settle(session.request({ method: 'POST', path: '/echo', contentFormat: 42, payload }));
    expect(response.status).toBe(204);
    expect(response.payload.length).toBe(length);
    expect(response.payload.every((byte, i) => byte === payload[i])).toBe(true);
  });

  it('500 at once, more than may be open', { tags: ['slow'] }, async () => {
    const { simulation, session } = await served({ device: { maxRequests: 1000 }, link: { delay: 20, loss: 0.01 } });
    const payload = pattern(3000);
    const all = Array.from({ length: 500 }, () => session.request({ method: 'POST', path: '/echo', payload }));
    const responses = await simulation.settle(Promise.all(all));
    expect(responses.every(({ status, payload: { length } }) => status === 204 && length === 3000)).toBe(true);
    expect(session.stats()).toMatchObject({ openRequests: 0 });
  });

  it('TIMEOUT after 2 minutes, or after the time set by the caller', async () => {
    const { simulation, session } = await served();
    const start = simulation.now;
    const [long, short] = await simulation.settle(
      Promise.allSettled([session.request(get('/never')), session.request({ ...get('/never'), timeout: 1500 })]),
    );
    expect(long).toMatchObject({ reason: { code: 'TIMEOUT' } });
    expect(short).toMatchObject({ reason: { code: 'TIMEOUT' } });
    expect(simulation.now - start).toBeGreaterThanOrEqual(120_000);
    expect(simulation.now - start).toBeLessThan(121_000);
    await expect(simulation.settle(session.request({ ...get('/never'), timeout: 10 }))).rejects.toMatchObject({ code: 'TIMEOUT' });
    expect((await simulation.settle(session.request(get('/hello')))).status).toBe(205);
  });

  it('STOPPED by its signal, before and while it runs', async () => {
    const { simulation, session } = await served();
    await expect(session.request({ ...get('/hello'), signal: AbortSignal.abort() })).rejects.toMatchObject({ code: 'STOPPED' });
    const controller = new AbortController();
    const request = session.request({ ...get('/never'), signal: controller.signal });
    await simulation.run(50);
    controller.abort();
    await expect(request).rejects.toMatchObject({ code: 'STOPPED' });
    controller.abort();
    expect(session.stats()).toMatchObject({ openRequests: 0 });
  });

  it('leave no listener at a signal once they are answered, like observations and streams', async () => {
    const { simulation, session } = await served();
    const { signal } = new AbortController();
    await simulation.settle(session.request({ ...get('/hello'), signal }));
    expect(getEventListeners(signal, 'abort')).toEqual([]);
    const observation = session.observe({ ...get('/hello'), signal }, () => {});
    expect(getEventListeners(signal, 'abort').length).toBe(1);
    observation.cancel();
    expect(getEventListeners(signal, 'abort')).toEqual([]);
    session.observe({ ...get('/hello'), signal }, () => {});
    const refused = openedStream(session, 1, { signal });
    expect(getEventListeners(signal, 'abort').length).toBe(2);
    await expect(simulation.settle(refused)).rejects.toMatchObject({ code: 'STOPPED' });
    await simulation.run(1_000);
    expect(getEventListeners(signal, 'abort')).toEqual([]);
  });

  it('above the limit are answered 5.03', async () => {
    const { simulation, session } = await served({ device: { maxRequests: 3 } });
    const responses = Promise.all(Array.from({ length: 5 }, () => session.request(get('/slow'))));
    const statuses = (await simulation.settle(responses)).map(({ status }) => status).sort();
    expect(statuses).toEqual([205, 205, 205, 503, 503]);
  });

  it.each(['/no/slash'.slice(1), `/${'x'.repeat(300)}`])('INVALID_ARGUMENT for the path %s', async (path) => {
    const { session } = await served();
    await expect(session.request({ method: 'GET', path })).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' });
  });

  it('a slow answer does not delay a fast one', async () => {
    const { simulation, session } = await served();
    const order: string[] = [];
    const slow = session.request(get('/slow')).then(() => order.push('slow'));
    const fast = session.request(get('/hello')).then(() => order.push('fast'));
    await simulation.settle(Promise.all([slow, fast]));
    expect(order).toEqual(['fast', 'slow']);
  });
});

describe('observation', () => {
  /** GET /value can be observed; `set` notifies. */
  async function observable() {
    const both = await served();
    let value = 0;
    const observers = new Map<number, Session>();
    both.router.on('GET', '/value', ({ observe, exchange, context }) => {
      if (observe) observers.set(exchange, context);
      return { status: 205, payload: Uint8Array.of(value), observe: true };
    });
    const set = (next: number): boolean[] => {
      value = next;
      return [...observers].map(([exchange, session]) =>
        session.notify(exchange, { status: 205, payload: Uint8Array.of(next), observe: true }),
      );
    };
    return { ...both, set, observers };
  }

  it('delivers the first answer and each notification until it is cancelled', async () => {
    const { simulation, session, set } = await observable();
    const seen: number[] = [];
    const observation = session.observe(get('/value'), ({ payload }) => seen.push(payload[0]!));
    await simulation.run(100);
    expect(set(1)).toEqual([true]);
    await simulation.run(100);
    set(2);
    await simulation.run(100);
    expect(seen).toEqual([0, 1, 2]);
    observation.cancel();
    observation.cancel();
    await simulation.run(100);
    expect(set(3)).toEqual([false]);
    await simulation.run(100);
    expect(seen).toEqual([0, 1, 2]);
  });

  it('ends with an error status, and with the session', async () => {
    const { simulation, session, observers } = await observable();
    const ends: unknown[] = [];
    session.observe(
      get('/nothing'),
      ({ status }) => ends.push(status),
      (error) => ends.push(error),
    );
    await simulation.run(100);
    expect(ends).toEqual([404, null]);
    session.observe(
      get('/value'),
      () => {},
      (error) => ends.push(error?.code),
    );
    await simulation.run(100);
    const accepted = [...observers.values()][0]!;
    await simulation.settle(accepted.close());
    await simulation.settle(session.closed);
    expect(ends).toEqual([404, null, 'CLOSED']);
    expect(accepted.notify([...observers.keys()][0]!, { status: 205 })).toBe(false);
  });

  it('a listener that throws is logged and has no other effect', async () => {
    const { simulation, session, errors, set } = await observable();
    session.observe(get('/value'), () => {
      throw new Error('mine');
    });
    await simulation.run(100);
    set(1);
    await simulation.run(100);
    expect(errors.length).toBe(2);
    expect(session.isOpen).toBe(true);
  });
});

describe('datagrams', () => {
  it('go both ways', async () => {
    const both = await pair();
    const accepted = await acceptedSession(both);
    const seen: string[] = [];
    accepted.onDatagram = (data) => {
      seen.push(text(data));
      accepted.datagrams.send(utf8('back'));
    };
    both.session.onDatagram = (data) => seen.push(text(data));
    expect(both.session.datagrams.send(utf8('there'))).toBe(true);
    await both.simulation.run(100);
    expect(seen).toEqual(['there', 'back']);
    await both.simulation.settle(both.session.close());
    expect(both.session.datagrams.send(utf8('late'))).toBe(false);
  });

  it('without a listener are dropped', async () => {
    const both = await pair();
    await acceptedSession(both);
    both.session.datagrams.send(utf8('there'));
    await both.simulation.run(100);
    expect(both.errors).toEqual([]);
    expect(both.session.isOpen).toBe(true);
  });
});

describe('the end of a session', () => {
  it('closed here: everything on it fails with STOPPED, the peer learns CLOSED', async () => {
    const { simulation, session, accepted } = await served();
    const request = session.request(get('/never'));
    const events: unknown[] = [];
    session.on('closed', (error) => events.push(error));
    await simulation.run(100);
    accepted[0]!.on('closed', (error) => events.push(error?.code));
    const [requestResult] = await simulation.settle(Promise.allSettled([request, session.close(0, 'enough'), session.close()]));
    expect(requestResult).toMatchObject({ reason: { code: 'STOPPED' } });
    expect(await session.closed).toBeNull();
    expect(session.isOpen).toBe(false);
    const reason = await simulation.settle(accepted[0]!.closed);
    expect(reason).toMatchObject({ code: 'CLOSED' });
    expect(reason?.message).toContain('enough');
    expect(events).toEqual([null, 'CLOSED']);
    await expect(session.request(get('/hello'))).rejects.toMatchObject({ code: 'NOT_CONNECTED' });
    await expect(openedStream(session, 1)).rejects.toMatchObject({ code: 'NOT_CONNECTED' });
  });

  it('closed by the peer: requests fail with its reason', async () => {
    const both = await served();
    const { simulation, session, accepted } = both;
    const request = session.request(get('/never'));
    await simulation.run(100);
    void accepted[0]!.close();
    await expect(simulation.settle(request)).rejects.toMatchObject({ code: 'CLOSED' });
    expect(both.client.sessions.size).toBe(0);
    expect(both.device.sessions.size).toBe(0);
  });

  it('a peer that vanishes is detected by the keep-alive within a minute', async () => {
    const { simulation, session, deviceEnvironment } = await served();
    await simulation.settle(session.request(get('/hello')));
    const request = session.request(get('/never'));
    await simulation.run(1000);
    deviceEnvironment.stop();
    const start = simulation.now;
    expect(await simulation.settle(session.closed)).toMatchObject({ code: 'TIMEOUT' });
    expect(simulation.now - start).toBeGreaterThan(50_000);
    expect(simulation.now - start).toBeLessThan(60_000);
    await expect(request).rejects.toMatchObject({ code: 'TIMEOUT' });
  });

  it('a client that vanishes is removed by the idle timeout', async () => {
    const both = await pair({ device: { parameters: { idleTimeout: 90_000 } } });
    const accepted = await acceptedSession(both);
    both.clientEnvironment.stop();
    expect(await both.simulation.settle(accepted.closed)).toMatchObject({ code: 'TIMEOUT' });
    expect(both.device.sessions.size).toBe(0);
  });

  it('knows after how long without a packet the first of both ends discards it', { tags: ['slow'] }, async () => {
    for (const [client, device, expected] of [
      [180_000, 90_000, 90_000],
      [60_000, 180_000, 60_000],
      [0, 90_000, 90_000],
      [90_000, 0, 90_000],
      [0, 0, 0],
    ] as const) {
      const both = await pair({ device: { parameters: { idleTimeout: device } }, client: { parameters: { idleTimeout: client } } });
      const accepted = await acceptedSession(both);
      expect(accepted.connection.peer.idleTimeout).toBe(expected);
    }
  });

  it('an idle session with keep-alive lives for hours', { tags: ['slow'] }, async () => {
    const { simulation, session } = await served();
    await simulation.run(6 * 3_600_000);
    expect(session.isOpen).toBe(true);
    expect((await simulation.settle(session.request(get('/hello')))).status).toBe(205);
  });

  it('keep-alive numbers can be changed', async () => {
    const { simulation, session, deviceEnvironment } = await served();
    session.setKeepAlive({ interval: 1000, retryInterval: 500, maxRetries: 3 });
    await simulation.run(10_000);
    deviceEnvironment.stop();
    const start = simulation.now;
    expect(await simulation.settle(session.closed)).toMatchObject({ code: 'TIMEOUT' });
    expect(simulation.now - start).toBeLessThan(4000);
  });
});

it('a device restart is detected by Reset when its secret was kept', async () => {
  const resetSecret = new Uint8Array(32).fill(9);
  const both: Pair = await hosts({ device: { resetSecret } });
  const session = await both.simulation.settle(both.client.dials.connect(deviceTarget(both)));
  await acceptedSession(both);
  both.deviceEnvironment.stop();
  const again = both.simulation.host('device');
  const { Host } = await import('../../../runtime/host/index.ts');
  await both.simulation.settle(
    Host.open(again, { identity: again.crypto.generateKey(), binds: [{ port: 5592 }], responder: () => ['device'], resetSecret }),
  );
  const start = both.simulation.now;
  expect(await both.simulation.settle(session.closed)).toMatchObject({ code: 'CLOSED' });
  expect(both.simulation.now - start).toBeLessThan(26_000);
});
