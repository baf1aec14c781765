/** A base station whose disk is full or read-only continues with everything that needs no write, and logs the state. */
import { beforeEach, describe, expect, test, vi } from 'vitest';
import { DevicePath, encodeTokens } from '../../../protocol/control/index.ts';
import { StorageHealth } from '../../../server/station/storage-health.ts';
import { ids, SCT } from '../../support/fixture/identifiers.ts';
import { ProductFixture } from '../../support/fixture/products.ts';
import type { StationUnderTest } from '../../support/fixture/station.ts';
import { nativeSimulation } from '../../support/simulation.ts';

const FULL = Object.assign(new Error('database or disk is full'), { code: 'SQLITE_FULL' });

let fixture: ProductFixture;
let station: StationUnderTest;
beforeEach(async () => {
  fixture = new ProductFixture();
  station = await fixture.station();
});

function fillDisk(): () => void {
  const spies = (['replaceTokens', 'tryWrite', 'addDevice'] as const).map((write) =>
    vi.spyOn(station.store, write).mockRejectedValue(FULL),
  );
  return () => {
    for (const spy of spies) spy.mockRestore();
  };
}

test('known devices attach and are reached', { tags: ['slow'] }, async () => {
  const privateKey = fixture.client().createPrivateKey();
  const under = await fixture.attached({ privateKey });
  await fixture.settle(under.device.close());
  fillDisk();
  await fixture.sim.run(1_000);
  const again = await fixture.device({ privateKey, registered: false });
  await fixture.start(again);
  await fixture.until(again, 'ATTACHED');
  const connection = await fixture.connected();
  expect(connection.getType()).toBe('RELAY');
  expect(station.basestation.storageFailed).toBe(false);
});

test('a new list of tokens is refused until the disk has room, and no channel ends', { tags: ['slow'] }, async () => {
  const under = await fixture.attached();
  const emptyDisk = fillDisk();
  under.device.addServerConnectToken('late');
  await fixture.sim.run(200_000);
  expect(station.basestation.storageFailed).toBe(true);
  expect(under.events).toEqual(['ATTACHED']);
  expect((await fixture.connected()).getType()).toBe('RELAY');
  emptyDisk();
  await fixture.sim.run(() => under.device.areServerConnectTokensSynchronized());
  expect(await fixture.settle(station.tokens(SCT, 'late'))).toEqual([SCT, 'late']);
  await fixture.sim.run(61_000);
  expect(station.basestation.storageFailed).toBe(false);
});

test('the upload is answered 5.03 with a time to wait', async () => {
  const device = await fixture.raw.client();
  await station.register(ids, device.host.fingerprint);
  await device.open();
  await device.attach();
  fillDisk();
  expect(await device.request('PUT', DevicePath.SCT, encodeTokens(['a']))).toMatchObject({ status: 503, maxAge: 60 });
  expect(station.basestation.storageFailed).toBe(true);
});

describe('StorageHealth', () => {
  test('notices the failure within a minute, logs one line a minute, and notices the recovery', async () => {
    const sim = nativeSimulation();
    const { clock } = sim.host('station');
    const lines: string[] = [];
    const log = { error: (text: string) => lines.push(text), info: (text: string) => lines.push(text), warn() {}, debug() {}, trace() {} };
    const store = { tryWrite: vi.fn(async () => {}) };
    const health = new StorageHealth({ clock, log, store });
    await sim.run(120_000);
    expect([health.failed, lines]).toEqual([false, []]);
    store.tryWrite.mockRejectedValue(FULL);
    await sim.run(60_000);
    expect(health.failed).toBe(true);
    for (let second = 0; second < 180; second++) {
      health.writeFailed(FULL);
      await sim.run(1_000);
    }
    expect(lines).toHaveLength(4);
    expect(new Set(lines)).toEqual(new Set(['storage: failed; changes are refused, everything else continues']));
    store.tryWrite.mockResolvedValue();
    await sim.run(60_000);
    expect([health.failed, lines.at(-1)]).toEqual([false, 'storage: works again']);
    health.stop();
    expect(await sim.run(() => false)).toBe(false);
  });
});
