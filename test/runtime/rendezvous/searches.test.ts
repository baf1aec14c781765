/** One timer and one network watch for all searches of a client. */
import { expect, test } from 'vitest';
import { PlainHost } from '../../../bench/nat/plain-host.ts';
import type { CoapResponse } from '../../../protocol/coap/index.ts';
import type { Path } from '../../../protocol/path.ts';
import { clientLimits, HostBudget } from '../../../protocol/rendezvous/index.ts';
import { DirectSearch, LocalEnd, type MigratingSession, Searches } from '../../../runtime/rendezvous/index.ts';
import { Simulation } from '../../../testing/index.ts';
import { noKeepAlive } from '../../support/no-keep-alive.ts';

const NEVER = Number.POSITIVE_INFINITY;
const NO_STATION = { hardNat: true, ...noKeepAlive, stationOf: () => null };

/** The shared part of one client's searches, in a simulation. */
function opened() {
  const simulation = new Simulation();
  const environment = simulation.host('client', { addresses: ['198.51.100.1/24'] });
  const end = new LocalEnd(new PlainHost(environment, 0), { mapsPort: false });
  const { clock, log } = environment;
  const shared = new Searches(end, new HostBudget(clientLimits), { clock, log });
  return { simulation, environment, clock, shared };
}

test('each is woken only at its time, and notified of another network, until it is removed', async () => {
  const { simulation, environment, clock, shared } = opened();
  const began = clock.now();
  const woken: string[] = [];
  const search = (name: string, ...times: number[]) => {
    const each = {
      wakeAt: began + times.shift()!,
      wake: () => {
        woken.push(`${name} ${clock.now() - began}`);
        each.wakeAt = began + (times.shift() ?? NEVER);
      },
      networkChanged: () => void woken.push(`${name} moved`),
    };
    shared.add(each);
    return each;
  };
  const a = search('a', 700, 900);
  const b = search('b', 300, 5_000);
  const c = search('c', NEVER);
  await simulation.run(1_000);
  expect(woken.splice(0)).toEqual(['b 300', 'a 700', 'a 900']);
  shared.remove(b);
  c.wakeAt = began + 2_000;
  shared.arm(c);
  await simulation.run(9_000);
  expect(woken.splice(0)).toEqual(['c 2000']);
  Object.assign(environment.network, { interfaces: () => [{ name: 'other', addresses: ['203.0.113.9/24'], kind: 'default' }] });
  await simulation.run(4_000);
  expect(woken.splice(0)).toEqual(['a moved', 'c moved']);
  for (const each of [a, c]) shared.remove(each);
  // No event is left: no timer, and no network watch.
  expect(await simulation.run(() => false)).toBe(false);
});

test('more searches than concurrent slots all ask within seconds, and waiting costs them no attempt', async () => {
  const { simulation, clock, shared } = opened();
  const places = clientLimits.rounds.known;
  const asked: number[] = [];
  const searches = Array.from(
    { length: 3 * places },
    () => new DirectSearch({ session: refusing(clock, asked), shared, kind: NO_STATION }),
  );
  await simulation.run(500);
  expect(asked).toHaveLength(places);
  expect(searches.filter((search) => search.report().whyNotDirect?.code === 'LIMITED')).toHaveLength(2 * places);
  await simulation.run(4_000);
  expect(asked).toHaveLength(3 * places);
  // All were refused, each in its first attempt: the next comes 5 s later, or a little more.
  for (const search of searches) expect(search.report()).toMatchObject({ whyNotDirect: { code: 'DISABLED' } });
  const next = searches.map((search) => search.report().nextAttempt!);
  expect([Math.max(...next) < 6_250, new Set(next).size > places]).toEqual([true, true]);
  for (const search of searches) search.stop();
});

/** A relayed session whose device refuses each round, a moment after the request. */
function refusing(clock: { now(): number; schedule(delay: number, run: () => void): unknown }, asked: number[]): MigratingSession {
  const path: Path = { kind: 'route', key: 'route', address: '203.0.113.1', port: 1, socket: 0, local: false };
  const response: CoapResponse = { status: 403, payload: new Uint8Array(0) };
  return {
    ...{ peer: { fingerprint: 'device', verified: 'pinned' }, isOpen: true, restReason: null, on: () => () => {} },
    paths: {
      ...{ active: path, all: [path], type: 'RELAY', rtt: null, stats: () => null },
      ...{ supplyIds: () => {}, keep: () => true, remove: () => {}, migrate: () => false },
    },
    request: () => Promise.reject(new Error('no request is sent')),
    observe: (_, onResponse) => {
      asked.push(clock.now());
      clock.schedule(200, () => onResponse(response));
      return { cancel: () => {} };
    },
  };
}
