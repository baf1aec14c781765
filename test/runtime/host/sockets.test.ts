/** Sockets of an open host: bound later, and closed while sessions, connects and paths use them. */
import { beforeEach, describe, expect, it } from 'vitest';
import type { BoundSocket } from '../../../platform/environment.ts';
import type { Session } from '../../../runtime/session/index.ts';
import { acceptedSession, type ConnectedPair, DEVICE_NAME, deviceTarget, hosts, type Pair, testRouter } from '../session/support.ts';

const GET = { method: 'GET', path: '/hello' } as const;

async function status({ simulation }: Pair, session: Session): Promise<number> {
  return (await simulation.settle(session.request({ ...GET, timeout: 60_000 }))).status;
}

/** A pair whose device answers requests. */
async function served(): Promise<ConnectedPair> {
  const both = await hosts();
  both.device.onSession = (session) => {
    both.accepted.push(session);
    session.router = testRouter(both.deviceEnvironment);
  };
  const session = await both.simulation.settle(both.client.dials.connect(deviceTarget(both)));
  return { ...both, session };
}

/** The device's address on a socket of the client. */
function pathOn(socket: BoundSocket, { device }: Pair) {
  return socket.path('10.0.0.1', device.sockets.bound[0]!.port);
}

let both: Awaited<ReturnType<typeof served>>;
beforeEach(async () => {
  both = await served();
});

describe('bind', () => {
  it('gives an open host a further socket where peers reach it', { tags: ['slow'] }, async () => {
    const socket = await both.simulation.settle(both.device.sockets.bind({ port: 7000 }));
    expect(both.device.sockets.bound.map(({ port }) => port)).toEqual([5592, 7000]);
    const second = await both.simulation.settle(both.client.dials.connect({ ...deviceTarget(both), port: socket.port }));
    expect([await status(both, second), await status(both, both.session)]).toEqual([205, 205]);
  });

  it('gives a connect a socket to leave by, and a session a path', async () => {
    const socket = await both.simulation.settle(both.client.sockets.bind({ port: 0 }));
    const second = await both.simulation.settle(both.client.dials.connect({ ...deviceTarget(both), socket: 1 }));
    expect([second.paths.active.socket, await status(both, second)]).toEqual([socket.index, 205]);
    expect(both.session.paths.migrate(pathOn(socket, both))).toBe(true);
    await both.simulation.run(1000);
    expect([both.session.paths.active.socket, await status(both, both.session)]).toEqual([socket.index, 205]);
  });

  it('fails as in open, and leaves the host unchanged', async () => {
    await expect(both.simulation.settle(both.device.sockets.bind({ port: 5592 }))).rejects.toMatchObject({ code: 'PORT_IN_USE' });
    expect(both.device.sockets.bound).toHaveLength(1);
    expect(await status(both, both.session)).toBe(205);
  });

  it('fails with STOPPED once the host is closed', async () => {
    const both = await hosts();
    const closing = both.client.close();
    await expect(both.simulation.settle(both.client.sockets.bind({ port: 6000 }))).rejects.toMatchObject({ code: 'STOPPED' });
    await both.simulation.settle(closing);
    await expect(both.simulation.settle(both.client.sockets.bind({ port: 6000 }))).rejects.toMatchObject({ code: 'STOPPED' });
  });

  it('fails with STOPPED when the host is closed meanwhile, and leaves the port free', async () => {
    const both = await hosts();
    const binding = both.client.sockets.bind({ port: 6000 });
    const closing = both.client.close();
    await expect(both.simulation.settle(binding)).rejects.toMatchObject({ code: 'STOPPED' });
    await both.simulation.settle(closing);
    expect(both.clientEnvironment.socketFor('10.0.0.2', 6000)).toBeUndefined();
  });
});

describe('unbind', () => {
  it('ends sessions that have no other path: STOPPED here, CLOSED at the peer at once', async () => {
    const accepted = await acceptedSession(both);
    await both.simulation.settle(both.client.sockets.unbind(both.client.sockets.bound[0]!));
    await expect(both.session.closed).resolves.toMatchObject({ code: 'STOPPED' });
    await both.simulation.run(50);
    await expect(accepted.closed).resolves.toMatchObject({ code: 'CLOSED' });
    expect([both.client.sockets.bound, both.client.sessions.size, both.device.sessions.size]).toEqual([[], 0, 0]);
  });

  it('leaves sessions of other sockets alone', async () => {
    const socket = await both.simulation.settle(both.client.sockets.bind({ port: 0 }));
    const other = await both.simulation.settle(both.client.dials.connect({ ...deviceTarget(both), socket: 1 }));
    await both.simulation.settle(both.client.sockets.unbind(both.client.sockets.bound[0]!));
    expect([both.session.isOpen, other.isOpen, both.client.sockets.bound]).toEqual([false, true, [socket]]);
    expect(await status(both, other)).toBe(205);
  });

  it('migrates a session to a path that it has on another socket', async () => {
    const socket = await both.simulation.settle(both.client.sockets.bind({ port: 0 }));
    expect(both.session.paths.add(pathOn(socket, both))).toBe(true);
    await both.simulation.run(1000);
    const moves: string[] = [];
    both.session.on('path', ({ path, reason }) => moves.push(`${path.socket} ${reason}`));
    await both.simulation.settle(both.client.sockets.unbind(both.client.sockets.bound[0]!));
    expect(await status(both, both.session)).toBe(205);
    expect([moves, both.session.isOpen]).toEqual([[`${socket.index} failed-over`], true]);
    expect(both.client.stats().failures).toBe(0);
  });

  it('of a path that is not in use removes only that path of a session', async () => {
    const socket = await both.simulation.settle(both.client.sockets.bind({ port: 0 }));
    expect(both.session.paths.add(pathOn(socket, both))).toBe(true);
    await both.simulation.run(1000);
    const before = both.session.paths.active;
    await both.simulation.settle(both.client.sockets.unbind(socket));
    expect([both.session.connection.paths.all, both.session.paths.active]).toEqual([[before], before]);
    expect(await status(both, both.session)).toBe(205);
  });

  it('ends a session all of whose paths are on the socket', async () => {
    await both.simulation.settle(both.device.sockets.bind({ port: 7000 }));
    expect(both.session.paths.add(both.client.sockets.bound[0]!.path('10.0.0.1', 7000))).toBe(true);
    await both.simulation.run(1000);
    await both.simulation.settle(both.client.sockets.unbind(both.client.sockets.bound[0]!));
    await expect(both.session.closed).resolves.toMatchObject({ code: 'STOPPED' });
  });

  it('fails connects in progress on it with STOPPED, and not those of other sockets', async () => {
    const both = await hosts({ client: { binds: [{ port: 0 }, { port: 0 }] } });
    const [first] = both.client.sockets.bound;
    const here = both.client.dials.connect({ ...deviceTarget(both), socket: 0 });
    const there = both.client.dials.connect({ ...deviceTarget(both), socket: 1 });
    const unbinding = both.client.sockets.unbind(first!);
    await expect(both.simulation.settle(here)).rejects.toMatchObject({ code: 'STOPPED' });
    expect((await both.simulation.settle(there)).isOpen).toBe(true);
    await both.simulation.settle(unbinding);
  });

  it('prevents the session of a handshake that ends meanwhile', async () => {
    const both = await hosts({ link: { delay: 10 } });
    const { clock } = both.deviceEnvironment;
    const { defer } = clock;
    const connecting = both.client.dials.connect({ ...deviceTarget(both), timeout: 10_000 });
    // The Complete is in flight, and a batch of IO takes a millisecond.
    await both.simulation.run(29.5);
    clock.defer = (run) => void clock.schedule(1, run);
    await both.simulation.settle(both.device.sockets.unbind(both.device.sockets.bound[0]!));
    clock.defer = defer;
    expect((await both.simulation.settle(connecting)).isOpen).toBe(true);
    await both.simulation.run(5000);
    expect([both.accepted, both.device.sessions.size]).toEqual([[], 0]);
  });

  it('has no effect twice, for a socket of another host, and after close', async () => {
    const socket = both.device.sockets.bound[0]!;
    await both.simulation.settle(both.client.sockets.unbind(socket));
    expect(await status(both, both.session)).toBe(205);
    const closings = [both.device.sockets.unbind(socket), both.device.sockets.unbind(socket)];
    await both.simulation.settle(Promise.all(closings));
    await both.simulation.settle(both.device.close());
    await both.simulation.settle(both.device.sockets.unbind(socket));
    expect(both.errors).toEqual([]);
  });

  it('frees the port, and a host without sockets gets one again', async () => {
    await both.simulation.settle(both.device.sockets.unbind(both.device.sockets.bound[0]!));
    expect(both.device.stats()).toMatchObject({ receiveBuffer: 0, failures: 0 });
    await both.simulation.settle(both.client.sockets.unbind(both.client.sockets.bound[0]!));
    expect(() => both.client.dials.start({ ...deviceTarget(both) })).toThrow('this host has no socket 0');
    await both.simulation.settle(both.client.sockets.bind({ port: 0 }));
    await both.simulation.settle(both.device.sockets.bind({ port: 5592 }));
    const target = { address: '10.0.0.1', port: 5592, name: DEVICE_NAME };
    const session = await both.simulation.settle(both.client.dials.connect(target));
    expect(await status(both, session)).toBe(205);
  });
});
