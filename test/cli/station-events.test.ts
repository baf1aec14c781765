/** The events of `svc basestation --json`, from a base station in virtual time. */
import { beforeEach, expect, test } from 'vitest';
import { stationEvents } from '../../cli/frame/station-events.ts';
import { type Log, silentLog } from '../../platform/environment.ts';
import { ids } from '../support/fixture/identifiers.ts';
import { ProductFixture } from '../support/fixture/products.ts';

const device = `${ids.productId}.${ids.deviceId}`;

let events: Record<string, unknown>[];
let fixture: ProductFixture;
let now: number;

beforeEach(async () => {
  [events, now] = [[], 0];
  const log: Log = stationEvents(silentLog, { now: () => now }, (event) => void events.push({ ...event }));
  fixture = new ProductFixture({ log: (host, level, message, fields) => host === 'station' && log[level](message, fields) });
  await fixture.station();
});

test('are a device that attaches and leaves, and refused requests of both with address and reason', async () => {
  const { channel } = await fixture.raw.attached();
  const client = await fixture.raw.opened();
  await client.connect({ serverKey: 'sk-x' });
  await client.attach();
  await fixture.sim.settle(channel.close());
  await fixture.sim.run(60_000);
  const address = expect.stringMatching(new RegExp(`^${client.environment.addresses[0]}:\\d+$`));
  expect(events).toEqual([
    { event: 'attached', device, address: expect.stringMatching(/^10\.[\d.]+:\d+$/) },
    { event: 'refused', request: 'connect', device, address, reason: 'unknown server key' },
    { event: 'refused', request: 'attach', device, address, reason: expect.any(String) },
    { event: 'detached', device, reason: 'the peer closed the connection' },
    { event: 'refused', request: 'connection', address, reason: 'no valid credential in time' },
    { event: 'counted', 'connect refused': 1, 'attach refused': 1, 'connection refused': 1 },
  ]);
});

test('are twenty refusals at once, of all strangers together, and then one every three seconds', () => {
  const log = stationEvents(silentLog, { now: () => now }, (event) => void events.push({ ...event }));
  for (let index = 0; index < 1_000; index++) log.debug('connection refused', { index });
  expect(events).toHaveLength(20);
  now = 3_000;
  for (let index = 0; index < 1_000; index++) log.debug('connect refused', { index });
  expect(events).toHaveLength(21);
  log.debug('device attached', { device });
  log.info('device attached again', { device });
  expect(events.slice(21)).toEqual([{ event: 'attached', device }]);
});
