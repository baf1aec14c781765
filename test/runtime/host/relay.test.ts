/**
 * Relayed connects with a miniature base station: it carries Initiate and Respond, forwards Route packets, and can
 * disappear.
 */
import { getEventListeners } from 'node:events';
import { expect, it } from 'vitest';
import { CloseCode } from '../../../protocol/errors/index.ts';
import { encodeReset, PacketType } from '../../../protocol/packet/index.ts';
import { type RouteEnd, RouteTable } from '../../../protocol/relay/index.ts';
import type { Session } from '../../../runtime/session/index.ts';
import { SessionFixture } from '../../support/fixture/sessions.ts';
import { openedStream } from '../../support/opened-stream.ts';
import { nativeSimulation } from '../../support/simulation.ts';
import { DEVICE_NAME, openStation, STATION_PORT, testRouter } from '../session/support.ts';

async function relayed(options: { loss?: number } = {}) {
  const simulation = nativeSimulation({ link: { delay: 10, loss: options.loss ?? 0 } });
  const station = await openStation(simulation, 'station', '10.0.0.9');
  const table = new RouteTable(station.environment.crypto, new Uint8Array(32), {}, simulation.now);
  station.host.datagrams.intercept((datagram, path) => {
    if (datagram[0] !== PacketType.ROUTE) return false;
    const to = table.forward(datagram, path, simulation.now);
    if (to !== null) station.host.datagrams.send(datagram, to.channel.paths.validated);
    return true;
  });
  const raw = new SessionFixture({ sim: simulation });
  const open = async (name: string, address: string, config: object) => {
    const { environment, host } = await raw.client({ machine: name, addresses: [`${address}/24`], ...config });
    const channel = await simulation.settle(
      host.dials.connect({ address: '10.0.0.9', port: STATION_PORT, name: 'station', pin: station.host.fingerprint, timeout: 60_000 }),
    );
    return { environment, host, channel };
  };
  const accepted: Session[] = [];
  const device = await open('device', '10.0.0.1', {
    responder: () => [DEVICE_NAME],
    acceptStreams: true,
    onSession: (session: Session) => {
      session.router = testRouter(device.environment);
      session.onStream = (incoming) => void incoming.accept();
      accepted.push(session);
    },
  });
  const client = await open('client', '10.0.0.2', {});
  await simulation.run(() => station.host.sessions.size === 2);
  const [deviceChannel, clientChannel] = [...station.host.sessions];

  /** The work of POST /client/connect and /p2p/connect. */
  const connect = async (): Promise<{ session: Session; end: RouteEnd }> => {
    const end = table.open(clientChannel!, deviceChannel!, simulation.now)!;
    const prepared = client.host.dials.prepare({ name: DEVICE_NAME, pin: device.host.fingerprint, timeout: 60_000 });
    const devicePath = device.host.routes.path(device.channel, end.other.id, { resetToken: end.other.resetToken });
    const respond = device.host.routes.accept(prepared.initiate, devicePath);
    const session = await prepared.establish(respond, client.host.routes.path(client.channel, end.id, { resetToken: end.resetToken }));
    return { session, end };
  };
  return { simulation, station, table, device, client, accepted, connect, deviceChannel: deviceChannel!, clientChannel: clientChannel! };
}

const get = { method: 'GET', path: '/hello' } as const;

it('a session over a route serves requests and streams, and both ends report RELAY', async () => {
  const { simulation, connect, accepted } = await relayed({ loss: 0.05 });
  const { session } = await simulation.settle(connect());
  expect((await simulation.settle(session.request(get))).status).toBe(205);
  expect([session.paths.type, accepted[0]!.paths.type]).toEqual(['RELAY', 'RELAY']);
  expect([session.paths.isLocal, accepted[0]!.paths.isLocal]).toEqual([false, false]);
  expect(session.peer.verified).toBe('pinned');
  const stream = await simulation.settle(openedStream(session, 1));
  await simulation.settle(stream.write(new Uint8Array(50_000)));
  await simulation.settle(stream.close());
});

it('the same route is the same path object', async () => {
  const { client } = await relayed();
  const id = new Uint8Array(8).fill(1);
  const path = client.host.routes.path(client.channel, id);
  expect(client.host.routes.path(client.channel, id.slice())).toBe(path);
  expect(client.host.routes.path(client.channel, new Uint8Array(8))).not.toBe(path);
  expect(path).toMatchObject({ kind: 'route', address: '10.0.0.9', port: STATION_PORT, local: false });
  expect(path.key).toBe(`route:0101010101010101@${client.channel.paths.active.key}`);
});

it('many sessions share one channel', async () => {
  const { simulation, connect, client } = await relayed();
  const sessions = await simulation.settle(Promise.all(Array.from({ length: 10 }, () => connect())));
  const statuses = await simulation.settle(Promise.all(sessions.map(({ session }) => session.request(get))));
  expect(statuses.every(({ status }) => status === 205)).toBe(true);
  expect(client.host.relayedOver(client.channel)).toBe(10);
  for (const { session } of sessions) await simulation.settle(session.close());
  expect(client.host.relayedOver(client.channel)).toBe(0);
});

it('a route that is kept warm behind a direct path counts for its channel', async () => {
  const { simulation, connect, client, device } = await relayed();
  const { session } = await simulation.settle(connect());
  session.paths.keep(session.paths.active, 5000);
  session.paths.migrate(client.host.sockets.bound[0]!.path('10.0.0.1', device.host.sockets.bound[0]!.port));
  await simulation.run(500);
  expect([session.paths.type, client.host.relayedOver(client.channel)]).toEqual(['DIRECT', 1]);
});

it('a session that hears nothing on its route makes the channel under it suspected', async () => {
  const { simulation, connect, client } = await relayed();
  const { session } = await simulation.settle(connect());
  let suspected = 0;
  client.channel.on('suspected', () => suspected++);
  await simulation.run(1000);
  simulation.link('device', 'station', { loss: 1 });
  session.ping();
  await simulation.run(1000);
  expect(suspected).toBeGreaterThan(0);
});

it('a socket that is unbound ends the channel on it, and the sessions on its routes', async () => {
  const { simulation, connect, client, accepted } = await relayed();
  const { session } = await simulation.settle(connect());
  await simulation.settle(client.host.sockets.unbind(client.host.sockets.bound[0]!));
  await expect(client.channel.closed).resolves.toMatchObject({ code: 'STOPPED' });
  await expect(session.closed).resolves.toMatchObject({ code: 'CLOSED' });
  await simulation.run(100);
  expect([client.host.sessions.size, accepted[0]!.isOpen]).toEqual([0, false]);
});

it('a wrong pin fails on the Respond, and leaves no listener at the signal', async () => {
  const { signal } = new AbortController();
  const { simulation, client, device, accepted } = await relayed();
  const prepared = client.host.dials.prepare({ name: DEVICE_NAME, pin: 'ab'.repeat(32), signal });
  const respond = device.host.routes.accept(prepared.initiate, device.host.routes.path(device.channel, new Uint8Array(8)));
  const establish = prepared.establish(respond, client.host.routes.path(client.channel, new Uint8Array(8)));
  expect(getEventListeners(signal, 'abort').length).toBe(1);
  await expect(simulation.settle(establish)).rejects.toMatchObject({ code: 'FINGERPRINT_MISMATCH' });
  expect(getEventListeners(signal, 'abort')).toEqual([]);
  await simulation.run(1000);
  expect(accepted).toEqual([]);
});

it('garbage as Initiate and as Respond is a RemoteError, and nothing else', { tags: ['slow'] }, async () => {
  const { simulation, client, device } = await relayed();
  const path = device.host.routes.path(device.channel, new Uint8Array(8));
  for (const bytes of [new Uint8Array(0), new Uint8Array(200), client.environment.crypto.randomBytes(500)]) {
    expect(() => device.host.routes.accept(bytes, path)).toThrow(expect.objectContaining({ name: 'RemoteError' }));
    const prepared = client.host.dials.prepare({ name: DEVICE_NAME, timeout: 1000 });
    const establish = prepared.establish(bytes, client.host.routes.path(client.channel, new Uint8Array(8)));
    await expect(simulation.settle(establish)).rejects.toMatchObject({ name: 'RemoteError', code: 'BAD_RESPONSE' });
  }
});

it('prepare can be cancelled, also by its signal', async () => {
  const { simulation, client } = await relayed();
  const path = client.host.routes.path(client.channel, new Uint8Array(8));
  const prepared = client.host.dials.prepare({ name: DEVICE_NAME });
  prepared.cancel();
  prepared.cancel();
  await expect(prepared.establish(new Uint8Array(0), path)).rejects.toMatchObject({ code: 'STOPPED' });
  const controller = new AbortController();
  const other = client.host.dials.prepare({ name: DEVICE_NAME, signal: controller.signal });
  controller.abort();
  await expect(simulation.settle(other.establish(new Uint8Array(0), path))).rejects.toMatchObject({ code: 'STOPPED' });
});

it('ends with CLOSED and a clear reason when the channel to the station ends, at both ends', async () => {
  const { simulation, connect, accepted, station } = await relayed();
  const { session } = await simulation.settle(connect());
  const pending = session.request({ method: 'GET', path: '/never' });
  pending.catch(() => {});
  await simulation.run(1000);
  await simulation.settle(station.host.close());
  for (const end of [session, accepted[0]!]) {
    const reason = await simulation.settle(end.closed);
    expect(reason).toMatchObject({ code: 'CLOSED' });
    expect(reason?.message).toContain('channel to the base station ended');
  }
  await expect(pending).rejects.toMatchObject({ code: 'CLOSED' });
});

it('ends with CLOSED when the station resets the route', async () => {
  const { simulation, connect, table, station, clientChannel } = await relayed();
  const { session, end } = await simulation.settle(connect());
  await simulation.run(1000);
  table.close(end);
  station.host.datagrams.send(encodeReset({ id: end.id, token: new Uint8Array(16) }), clientChannel.paths.active);
  await simulation.run(100);
  expect(session.isOpen).toBe(true); // a wrong token has no effect
  station.host.datagrams.send(encodeReset({ id: end.id, token: end.resetToken }), clientChannel.paths.active);
  expect(await simulation.settle(session.closed)).toMatchObject({ code: 'CLOSED' });
});

it('a connect on a route fails at once when the channel ends', async () => {
  const { simulation, client } = await relayed();
  const path = client.host.routes.path(client.channel, new Uint8Array(8).fill(7));
  const connect = client.host.dials.connect({ path, name: DEVICE_NAME, timeout: 60_000 });
  connect.catch(() => {});
  await simulation.run(100);
  const start = simulation.now;
  await simulation.settle(client.channel.close(CloseCode.NO_ERROR));
  await expect(simulation.settle(connect)).rejects.toMatchObject({ code: 'CLOSED' });
  expect(simulation.now - start).toBeLessThan(10);
});

it('a route whose handshake is half-open is not released for routes that a client requests without end', async () => {
  const { simulation, client, device, table, accepted, deviceChannel, clientChannel } = await relayed();
  const end = table.open(clientChannel, deviceChannel, simulation.now)!;
  const given: string[] = [];
  const offer = (name: string, id: Uint8Array) => device.host.routes.path(device.channel, id, { onUnused: () => given.push(name) });
  const prepared = client.host.dials.prepare({ name: DEVICE_NAME, pin: device.host.fingerprint });
  const respond = device.host.routes.accept(prepared.initiate, offer('honest', end.other.id));
  const offerMany = (mark: number): void => {
    for (let i = 0; i < 1_100; i++) offer('stranger', Uint8Array.of(mark, i >> 8, i & 0xff, 0, 0, 0, 0, 0));
  };
  offerMany(1);
  expect([given.length > 0, given.includes('honest')]).toEqual([true, false]);
  const session = await simulation.settle(prepared.establish(respond, client.host.routes.path(client.channel, end.id)));
  await simulation.run(() => accepted.length === 1);
  offerMany(2);
  expect((await simulation.settle(session.request(get))).status).toBe(205);
  expect(given).not.toContain('honest');
  await simulation.settle(session.close());
  await simulation.run(10_000);
  expect(given).toContain('honest');
});

it('a route whose handshake never ends is released when it is abandoned', async () => {
  const { simulation, client, device } = await relayed();
  const given: string[] = [];
  const path = device.host.routes.path(device.channel, new Uint8Array(8), { onUnused: () => given.push('route') });
  device.host.routes.accept(client.host.dials.prepare({ name: DEVICE_NAME }).initiate, path);
  await simulation.run(9_000);
  expect(given).toEqual([]);
  await simulation.run(2_000);
  expect(given).toEqual(['route']);
});

it('a host that closes keeps the channel while the end of a relayed session may have to be repeated', async () => {
  const { simulation, connect, device, client } = await relayed();
  const { session } = await simulation.settle(connect());
  await simulation.run(500);
  simulation.link('device', 'station', { loss: 1 });
  const closing = device.host.close();
  await simulation.run(1);
  expect(device.channel.isOpen).toBe(true);
  simulation.link('device', 'station', {});
  // Its packet asks for the end that was lost.
  session.ping();
  await simulation.run(50);
  expect(session.isOpen).toBe(false);
  await expect(session.closed).resolves.toMatchObject({ message: expect.stringContaining('shutting down') });
  await simulation.settle(closing);
  expect([device.channel.isOpen, client.channel.isOpen]).toEqual([false, true]);
});
