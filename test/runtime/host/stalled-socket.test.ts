/**
 * A host with two sockets, one of which stalls: the effect on its sessions and on those of the other.
 */
import { describe, expect, it } from 'vitest';
import { Host } from '../../../runtime/host/index.ts';
import type { Session } from '../../../runtime/session/index.ts';
import { openedStream } from '../../support/opened-stream.ts';
import { DEVICE_NAME, DEVICE_PORT, hosts, type Pair, pattern } from '../session/support.ts';
import { type StallableBoundSocket, stallable } from '../stallable-socket.ts';

const LENGTH = 2_000_000;
/** Enough that the sum of their windows exceeds the packets of the core. */
const STALLED_SESSIONS = 6;
/** Packets of a core of 8 MiB, and the share that one of two sockets may have of them. */
const SLOTS = 128;
const SHARE = (3 / 4) * SLOTS;

interface StalledPair extends Pair {
  sockets: StallableBoundSocket[];
  /** Sessions over socket 0 of the client. */
  sessions: Session[];
  /** Session over socket 1. */
  other: Session;
}

/** @param binds of the client: one or two sockets */
async function stalledPair(binds = 2): Promise<StalledPair> {
  // 20 Mbit/s, 10 ms.
  const both = await hosts({ link: { delay: 10, rate: 20_000_000 } });
  const { environment, sockets } = stallable(both.clientEnvironment);
  const { simulation } = both;
  const identity = environment.crypto.generateKey();
  const client = await simulation.settle(
    Host.open(environment, { identity, binds: Array(binds).fill({ port: 0 }), core: { memory: 32 << 20 } }),
  );
  both.device.onSession = serve;
  const target = { address: '10.0.0.1', port: DEVICE_PORT, name: DEVICE_NAME, timeout: 10_000 };
  const connects = Array.from({ length: STALLED_SESSIONS }, () => client.dials.connect({ ...target, socket: 0 }));
  const sessions = await simulation.settle(Promise.all(connects));
  const other = await simulation.settle(client.dials.connect({ ...target, socket: binds - 1 }));
  return { ...both, client, sockets, sessions, other };
}

/** Reads every stream to its end. */
function serve(session: Session): void {
  session.onStream = (incoming) => {
    const stream = incoming.accept();
    const read = (): void => void stream.read().then(read, () => {});
    read();
  };
}

/** Sends this many bytes; resolves when all are acknowledged. */
async function upload(session: Session, length = LENGTH): Promise<void> {
  const stream = await openedStream(session, 1);
  await stream.write(pattern(length));
  await stream.close();
}

async function timeOf({ simulation }: StalledPair, work: Promise<void>): Promise<number> {
  const start = simulation.now;
  await simulation.settle(work);
  return simulation.now - start;
}

it('a socket that stalls has its share also beside many sockets that the host has adopted', async () => {
  const pair = await stalledPair(1);
  const { simulation, client, clientEnvironment, sessions, sockets } = pair;
  for (let i = 0; i < 10; i++)
    client.sockets.adopt(await simulation.settle(clientEnvironment.network.bind({ port: 0, host: '0.0.0.0', receive: () => {} })));
  const hanging = Promise.all(sessions.map((session) => upload(session, 30_000)));
  await simulation.run(30);
  sockets[0]!.stalled = true;
  await simulation.run(200);
  expect(sockets[0]!.held).toBe(SHARE);
  sockets[0]!.resume();
  await simulation.settle(hanging);
  await simulation.settle(client.close());
});

describe('a socket that stalls', { tags: ['slow'] }, () => {
  it('in the middle of a transfer leaves a session of another socket its full rate', async () => {
    const quiet = await stalledPair();
    const alone = await timeOf(quiet, upload(quiet.other));

    const stalled = await stalledPair();
    const hanging = Promise.all(stalled.sessions.map((session) => upload(session)));
    await stalled.simulation.run(500);
    stalled.sockets[0]!.stalled = true;
    await stalled.simulation.run(1000);
    expect(stalled.sockets[0]!.held).toBe(SHARE);
    const beside = await timeOf(stalled, upload(stalled.other));
    expect(beside).toBeLessThan(1.02 * alone);
    // Held packets leave once the socket accepts packets again, and the transfers end.
    stalled.sockets[0]!.resume();
    await stalled.simulation.settle(hanging);
    expect(stalled.client.stats()).toMatchObject({ dropped: 0, failures: 0 });
    await stalled.simulation.settle(stalled.client.close());
  });

  it.each([1, 2])('for a moment, of %i sockets, loses no close: every peer receives it once it accepts packets again', async (binds) => {
    const stalled = await stalledPair(binds);
    const ends: unknown[] = [];
    for (const session of stalled.sessions) void upload(session).catch(() => {});
    await stalled.simulation.run(500);
    for (const session of stalled.device.sessions) void session.closed.then((error) => ends.push(error));
    stalled.sockets[0]!.stalled = true;
    await stalled.simulation.run(300);
    const closing = stalled.client.close();
    await stalled.simulation.run(200);
    stalled.sockets[0]!.resume();
    await stalled.simulation.settle(closing);
    await stalled.simulation.run(1000);
    expect(ends).toHaveLength(STALLED_SESSIONS + 1);
    for (const end of ends) expect(end).toMatchObject({ code: 'CLOSED' });
    expect(stalled.client.stats()).toMatchObject({ dropped: 0, failures: 0 });
  });

  it('permanently ends its own sessions by their timeouts, and its host closes in time', async () => {
    const stalled = await stalledPair();
    stalled.sockets[0]!.stalled = true;
    await stalled.simulation.run(150_000);
    for (const session of stalled.sessions) await expect(session.closed).resolves.toMatchObject({ code: 'TIMEOUT' });
    expect(stalled.other.isOpen).toBe(true);
    const start = stalled.simulation.now;
    await stalled.simulation.settle(stalled.client.close());
    expect(stalled.simulation.now - start).toBeLessThanOrEqual(1000);
    await stalled.simulation.run(10);
    expect(stalled.sockets.map(({ held, closed }) => [held, closed])).toEqual([
      [0, 1],
      [0, 1],
    ]);
  });

  it('permanently, as the only one, ends all sessions by their timeouts', async () => {
    const stalled = await stalledPair(1);
    for (const session of stalled.sessions) void upload(session).catch(() => {});
    await stalled.simulation.run(500);
    stalled.sockets[0]!.stalled = true;
    await stalled.simulation.run(1000);
    expect(stalled.sockets[0]!.held).toBeGreaterThanOrEqual(SLOTS - 1);
    await stalled.simulation.run(150_000);
    for (const session of [...stalled.sessions, stalled.other]) await expect(session.closed).resolves.toMatchObject({ code: 'TIMEOUT' });
  });

  it('and lets one packet leave each millisecond gets another for it at once', async () => {
    const stalled = await stalledPair(1);
    const [socket] = stalled.sockets;
    const each = 200_000;
    const uploads = Promise.all(stalled.sessions.map((session) => upload(session, each)));
    socket!.stalled = true;
    let ticks = 0;
    const tick = (): void => {
      ticks++;
      socket!.leave(1);
      stalled.clientEnvironment.clock.schedule(1, tick);
    };
    tick();
    await stalled.simulation.settle(uploads);
    const packets = (STALLED_SESSIONS * each) / 1400;
    expect(ticks).toBeLessThan(1.2 * packets);
  });
});
