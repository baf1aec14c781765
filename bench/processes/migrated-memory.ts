/**
 * Bench process: bytes of both ends together that a connection keeps for its further ids and its second path once it has moved, beside the core; of many. In a
 * process of its own, as `rendezvous-memory.ts`.
 */
import { strict as assert } from 'node:assert';
import { Host } from '../../transport/host/index.ts';
import { nativeCrypto } from '../../transport/node/crypto.ts';
import type { Session } from '../../transport/session/index.ts';
import { Simulation } from '../../transport/sim/index.ts';
import { serve } from './child.ts';

/** Connections that move before the others, so that what all share is there, and all. */
const FIRST = 100;
const COUNT = 900;
const LARGE = { limits: { connections: 2 * COUNT }, core: { connections: 2 * COUNT } };
const RUNS = 3;
const PORT = 4000;
const NAME = 'device';
/** ms until an idle connection has let go of what it needed while it moved. */
const REST = 30_000;

/** All paths are one, so that the path itself does not count. */
async function bytesOfMoves(): Promise<number> {
  const simulation = new Simulation({ crypto: nativeCrypto });
  const open = (name: string, address: string, port: number): Promise<Host> => {
    const environment = simulation.host(name, { addresses: [`${address}/24`] });
    const identity = environment.crypto.generateKey();
    return simulation.settle(Host.open(environment, { binds: [{ port }], identity, responder: () => [NAME], ...LARGE }));
  };
  const device = await open('device', '10.0.0.1', PORT);
  const client = await open('client', '10.0.0.2', 0);
  const socket = await simulation.settle(client.bind({ port: 0 }));
  const path = socket.path('10.0.0.1', PORT);
  const target = { address: '10.0.0.1', port: PORT, name: NAME, pin: device.fingerprint, timeout: 300_000 };
  const sessions: Session[] = [];
  for (let made = 0; made < COUNT; made++) sessions.push(await simulation.settle(client.connect(target)));
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
  assert(sessions.every((session) => session.path === path));
  return (after - before) / (COUNT - FIRST);
}

/** The engine's own part comes with the first run, and the collector has not always seen all: the middle one counts. */
async function typical(): Promise<number> {
  const runs: number[] = [];
  for (let run = 0; run < RUNS; run++) runs.push(await bytesOfMoves());
  return runs.toSorted((a, b) => a - b)[(RUNS - 1) >> 1]!;
}

/** Bytes of the heap after what one collection leaves to the next is gone. */
function heapUsed(): number {
  for (let i = 0; i < 3; i++) globalThis.gc?.();
  return process.memoryUsage().heapUsed;
}

serve({ moves: typical });
