/**
 * Bench process: bytes for each search for a direct path, and for each session after a round; the mean of many over one
 * session that costs nothing. It runs in a separate process, since other code that has run in a process changes how V8
 * compiles this code.
 */
import { strict as assert } from 'node:assert';
import { setFlagsFromString } from 'node:v8';
import { silentLog } from '../../platform/environment.ts';
import type { CoapResponse } from '../../protocol/coap/index.ts';
import { ConnectionPath, encodeRendezvousOffer } from '../../protocol/control/index.ts';
import type { Path } from '../../protocol/path.ts';
import { clientLimits, HostBudget } from '../../protocol/rendezvous/index.ts';
import {
  DirectSearch,
  LocalEnd,
  type MigratingSession,
  RendezvousResponder,
  Searches,
  type SearchKind,
  type ServingSession,
} from '../../runtime/rendezvous/index.ts';
import { Simulation } from '../../testing/index.ts';
import { PlainHost } from '../nat/plain-host.ts';
import { DeviceEnd } from '../nat/signalling.ts';
import { serve } from './child.ts';

// V8 compiles frequent code in another thread, and its results lie on the heap, too.
setFlagsFromString('--no-opt');

const COUNT = 1_000;
/** Concurrent rounds, few enough that their shared state stays small beside the measured memory. */
const TOGETHER = 50;
const MINUTE = 60_000;
const RUNS = 6;
const CREATED = 201;
const REFUSED = 403;

const route: Path = { kind: 'route', key: 'route', address: '203.0.113.1', port: 1, socket: 0, local: false };
const direct: Path = { kind: 'udp', key: 'udp', address: '203.0.113.2', port: 2, socket: 0, local: false };

function openEnd() {
  const simulation = new Simulation();
  const environment = simulation.host('end', { addresses: ['198.51.100.2/24'] });
  const end = new LocalEnd(new PlainHost(environment, 5_600), { mapsPort: false });
  return { simulation, environment, end };
}

/** Returns one session for all searches. Its device refuses each round. */
function sessionOf(path: { now: Path }, clock: { schedule(delay: number, run: () => void): unknown }): MigratingSession {
  const refusal: CoapResponse = { status: REFUSED, contentFormat: undefined, payload: new Uint8Array(0) } as unknown as CoapResponse;
  const session = {
    ...{ peer: { fingerprint: 'device', verified: 'pinned' }, isOpen: true, restReason: null, on: () => () => {} },
    paths: {
      ...{ stats: () => null, supplyIds: () => {}, keep: () => {}, remove: () => {}, migrate: () => false },
      get active() {
        return path.now;
      },
      get all() {
        return [path.now];
      },
      get type() {
        return path.now === route ? 'RELAY' : 'DIRECT';
      },
    },
    request: () => Promise.reject(new Error('nothing is asked')),
    observe: (_: unknown, onResponse: (response: CoapResponse) => void) => {
      clock.schedule(10, () => onResponse(refusal));
      return { cancel: () => {} };
    },
  };
  return session as unknown as MigratingSession;
}

/** Returns the lower median of several runs: V8 has compiled frequent code after the first. */
async function typical(measure: () => Promise<readonly number[]>): Promise<readonly number[]> {
  const runs: (readonly number[])[] = [];
  for (let run = 0; run < RUNS; run++) runs.push(await measure());
  return runs[0]!.map((_, i) => Math.round(runs.map((run) => run[i]!).toSorted((a, b) => a - b)[(RUNS - 1) >> 1]!));
}

/**
 * Returns the bytes of a search before its first attempt, after a failed attempt, and of a connection that has been
 * direct for a minute.
 */
async function bytesOfSearches(): Promise<readonly number[]> {
  const { simulation, environment, end } = openEnd();
  const { clock, log } = environment;
  const path = { now: route };
  const shared = new Searches(end, new HostBudget(clientLimits), { clock, log });
  const session = sessionOf(path, clock);
  const kind: SearchKind = {
    hardNat: true,
    stationOf: () => null,
    keepInterval: () => 25_000,
    keepAliveReport: () => ({ state: 'off', timeout: null, isAtLeast: false, losses: 0, interval: null }),
  };
  const searches: DirectSearch[] = [];
  const add = (count: number): void => {
    for (let i = 0; i < count; i++) searches.push(new DirectSearch({ session, shared, kind }));
  };
  // What all share is made with the first.
  add(TOGETHER);
  await simulation.run(100);
  const before = heapUsed();
  for (let i = 0; i < COUNT; i += TOGETHER) {
    add(TOGETHER);
    await simulation.run(100);
  }
  const refused = heapUsed();
  assert(searches.every((search) => search.report().whyNotDirect?.code === 'DISABLED'));
  path.now = direct;
  for (const search of searches) search.migrated(direct);
  await simulation.run(MINUTE);
  assert(searches.every((search) => search.report().localNat === null));
  const rested = heapUsed();
  add(COUNT);
  const fresh = heapUsed();
  for (const search of searches) search.stop();
  return [fresh - rested, refused - before, rested - before].map((bytes) => bytes / COUNT);
}

/** Returns the bytes of a device's session after a round. */
async function bytesOfRounds(): Promise<readonly number[]> {
  const { simulation, end } = openEnd();
  const responder = new RendezvousResponder<ServingSession>({
    ...{ end, budget: new HostBudget(clientLimits), hardNat: true },
    ...{ trustOf: () => ({ peer: 'known', isWelcome: true }) as const, station: () => null, peerAddress: () => undefined },
  });
  const [tag, key] = [new Uint8Array(8), new Uint8Array(16)];
  const payload = encodeRendezvousOffer({ round: 1, tag, key, number: 1, candidates: [] });
  const sessions = Array.from({ length: COUNT }, () => new DeviceEnd(silentLog, () => {}));
  const round = async (context: DeviceEnd, exchange: number): Promise<void> => {
    const request = { exchange, method: 'POST', path: ConnectionPath.RENDEZVOUS, payload, observe: true } as const;
    assert.equal(responder.begin({ ...request, segments: [], query: [], parameters: {}, context }).status, CREATED);
    responder.cancelled(context, exchange);
    await simulation.run(1);
  };
  await round(new DeviceEnd(silentLog, () => {}), 0);
  const before = heapUsed();
  for (const [i, session] of sessions.entries()) await round(session, i + 1);
  const after = heapUsed();
  assert(sessions.every((session) => responder.facts(session) !== null));
  return [(after - before) / COUNT];
}

/** Returns the bytes of the heap after three collections: one alone leaves garbage to the next. */
function heapUsed(): number {
  for (let i = 0; i < 3; i++) globalThis.gc?.();
  return process.memoryUsage().heapUsed;
}

serve({ searches: () => typical(bytesOfSearches), rounds: () => typical(bytesOfRounds) });
