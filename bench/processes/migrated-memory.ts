/**
 * Bench process: bytes that both ends together keep for a migrated connection's further ids and second path, outside
 * the core; the mean of many connections. It runs in a separate process, like `rendezvous-memory.ts`.
 */
import { strict as assert } from 'node:assert';
import { nativeCrypto } from '../../platform/node/crypto.ts';
import { Host } from '../../runtime/host/index.ts';
import type { Session } from '../../runtime/session/index.ts';
import { Simulation } from '../../testing/index.ts';
import { serve } from './child.ts';

/** Connections that migrate before the others, so that shared state exists; and all connections. */
const FIRST = 100;
const COUNT = 900;
const LARGE = { limits: { connections: 2 * COUNT }, core: { connections: 2 * COUNT } };
const RUNS = 3;
const PORT = 4000;
const NAME = 'device';
/** ms until an idle connection has freed the memory that it needed to migrate. */
const REST = 30_000;

/** Returns the bytes per connection. All migrate to the same path, so that the path itself does not count. */
async function bytesOfMigrations(): Promise<number> {
  const simulation = new Simulation({ crypto: nativeCrypto });
  const open = (name: string, address: string, port: number): Promise<Host> => {
    const environment = simulation.host(name, { addresses: [`${address}/24`] });
    const identity = environment.crypto.generateKey();
    return simulation.settle(Host.open(environment, { binds: [{ port }], identity, responder: () => [NAME], ...LARGE }));
  };
  const device = await open('device', '10.0.0.1', PORT);
  const client = await open('client', '10.0.0.2', 0);
  const socket = await simulation.settle(client.sockets.bind({ port: 0 }));
  const path = socket.path('10.0.0.1', PORT);
  const target = { address: '10.0.0.1', port: PORT, name: NAME, pin: device.fingerprint, timeout: 300_000 };
  const sessions: Session[] = [];
  for (let made = 0; made < COUNT; made++) sessions.push(await simulation.settle(client.dials.connect(target)));
  const migrate = async (some: readonly Session[]): Promise<void> => {
    for (const session of some) {
      session.paths.migrate(path);
      await simulation.run(100);
    }
    await simulation.run(REST);
  };
  await migrate(sessions.slice(0, FIRST));
  const before = heapUsed();
  await migrate(sessions.slice(FIRST));
  const after = heapUsed();
  assert(sessions.every((session) => session.paths.active === path));
  return (after - before) / (COUNT - FIRST);
}

/** Returns the median of several runs: the first includes memory of V8 itself, and a collection may miss garbage. */
async function typical(): Promise<number> {
  const runs: number[] = [];
  for (let run = 0; run < RUNS; run++) runs.push(await bytesOfMigrations());
  return runs.toSorted((a, b) => a - b)[(RUNS - 1) >> 1]!;
}

/** Returns the bytes of the heap after three collections: one alone leaves garbage to the next. */
function heapUsed(): number {
  for (let i = 0; i < 3; i++) globalThis.gc?.();
  return process.memoryUsage().heapUsed;
}

serve({ moves: typical });
