/** What a connection keeps for its further ids and its second path once it has moved, beside the core: bytes of both ends together, of many. */
import { expect, test } from 'vitest';
import type { Session } from '../../../transport/session/index.ts';
import { heapUsed } from '../../support/garbage.ts';
import { size } from '../../support/size.ts';
import { deviceTarget, hosts } from '../session/support.ts';

const FIRST = 20;
const COUNT = 200;
const LARGE = { limits: { connections: 2 * COUNT }, core: { connections: 2 * COUNT } };
const RUNS = 4;
/** ms until an idle connection has let go of what it needed while it moved. */
const REST = 30_000;
/** Seconds of collections. */
const isShort = size(0, 1) === 0;

/** All paths are one, so that the path itself does not count. */
async function bytesOfMoves(): Promise<number> {
  const both = await hosts({ client: LARGE, device: LARGE });
  const { simulation, client, device } = both;
  const socket = await simulation.settle(client.bind({ port: 0 }));
  const path = socket.path('10.0.0.1', device.sockets[0]!.port);
  const sessions: Session[] = [];
  for (let made = 0; made < COUNT; made++) sessions.push(await simulation.settle(client.connect(deviceTarget(both))));
  const move = async (some: readonly Session[]): Promise<void> => {
    for (const session of some) {
      session.migrate(path);
      await simulation.run(100);
    }
    await simulation.run(REST);
  };
  await move(sessions.slice(0, FIRST));
  const before = heapUsed();
  await move(sessions.slice(FIRST));
  const after = heapUsed();
  expect(sessions.every((session) => session.path === path)).toBe(true);
  return (after - before) / (COUNT - FIRST);
}

test.skipIf(isShort)(
  'three further ids each way and a second path take less than 1,650 bytes of both ends together (long run only)',
  async () => {
    const runs: number[] = [];
    for (let run = 0; run < RUNS; run++) runs.push(await bytesOfMoves());
    // The collector has not always seen all, and the engine's own part comes with the first run: the lower middle one counts.
    expect(runs.toSorted((a, b) => a - b)[(RUNS - 1) >> 1]).toBeLessThan(1.5 * 1_100);
  },
);
