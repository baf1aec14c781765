/**
 * Base stations that restart on a host of the simulation, with and without SHUTDOWN: the same address, the same key,
 * and none of the state.
 */
import { beforeEach, describe, expect, it } from 'vitest';
import { ProductFixture } from '../support/fixture/products.ts';
import type { StationUnderTest } from '../support/fixture/station.ts';

const KEEP_ALIVE = { interval: 10_000, retryInterval: 1000, maxRetries: 5 };

let fixture: ProductFixture;
let station: StationUnderTest;
beforeEach(async () => {
  fixture = new ProductFixture();
  station = await fixture.station({ keepAlive: KEEP_ALIVE });
});

describe('a base station that restarts', () => {
  it.each([
    ['shutdown', 5000],
    ['killed', 15_000],
    ['unplugged', 15_000],
  ] as const)('by %s: attached devices are attached again within %i ms', { tags: ['slow'] }, async (how, limit) => {
    const { address, fingerprint } = station;
    const under = await fixture.attached();
    const since = fixture.sim.now;
    await station.restart(how, 100);
    expect([station.address, station.fingerprint, station.basestation.attached]).toEqual([address, fingerprint, 0]);
    await fixture.until(under, 'ATTACHED', 2, 60_000);
    expect(fixture.sim.now - since).toBeLessThan(limit);
    expect(under.events).toEqual(['ATTACHED', 'DETACHED', 'ATTACHED']);
  });

  it('is away for the configured time', async () => {
    const before = fixture.sim.now;
    await station.restart('killed', 60_000);
    expect(fixture.sim.now - before).toBeGreaterThanOrEqual(60_000);
  });
});
