/** What a host remembers of the stations that it asked. */
import { expect, test } from 'vitest';
import { PlainHost } from '../../../bench/nat/plain-host.ts';
import { Gatherer, type StationView, StunDispatcher } from '../../../runtime/rendezvous/index.ts';
import { Simulation } from '../../../testing/index.ts';

test('the results of 16 stations are remembered; that of a 17th takes the place of the oldest', async () => {
  const simulation = new Simulation();
  const host = new PlainHost(simulation.host('device', { addresses: ['198.51.100.2/24'] }), 5_600);
  const gatherer = new Gatherer({ host, dispatcher: new StunDispatcher(host) });
  const observed = { address: '203.0.113.1', port: 7_000 };
  const stations = Array.from({ length: 17 }, (_, index): StationView => {
    const at = { address: `198.51.100.${100 + index}`, port: 4_433 };
    return { at, observed, ask: async () => observed, stun: [{ port: 4_434 }], name: null };
  });
  for (const station of stations) {
    gatherer.gather(station, true, () => {});
    await simulation.run(1_000);
  }
  expect(stations.map((station) => gatherer.stunAnswers(station).length)).toEqual([0, ...Array(16).fill(1)]);
});
