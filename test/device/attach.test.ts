/** A device and its base station, in virtual time. */
import { beforeEach, describe, expect, test, vi } from 'vitest';
import { Device } from '../../device/index.ts';
import { bindError } from '../../platform/node/udp-errors.ts';
import { ids, SCT } from '../support/fixture/identifiers.ts';
import { ProductFixture } from '../support/fixture/products.ts';
import type { StationUnderTest } from '../support/fixture/station.ts';
import { seeds } from '../support/tiered.ts';

let fixture: ProductFixture;
let station: StationUnderTest;
beforeEach(async () => {
  fixture = new ProductFixture();
  station = await fixture.station();
});

const storedTokens = (...candidates: string[]) => fixture.settle(station.tokens(...candidates));

describe('attach', () => {
  test('holds, and gives the base station the tokens', async () => {
    const { device, events } = await fixture.attached();
    expect(events).toEqual(['ATTACHED']);
    expect(station.basestation.attached).toBe(1);
    expect(device.areServerConnectTokensSynchronized()).toBe(true);
    expect(await storedTokens(SCT, 'another')).toEqual([SCT]);
  });

  test('a token added later is uploaded at once', async () => {
    const { device } = await fixture.attached();
    device.addServerConnectToken('another');
    expect(device.areServerConnectTokensSynchronized()).toBe(false);
    await fixture.sim.run(() => device.areServerConnectTokensSynchronized());
    expect(await storedTokens(SCT, 'another')).toEqual([SCT, 'another']);
  });

  test('reports an unknown fingerprint, and retries slowly until it is registered', async () => {
    const under = await fixture.device({ registered: false });
    await station.register(ids, null);
    await fixture.start(under);
    await fixture.until(under, 'UNKNOWN_FINGERPRINT');
    const changedAt = fixture.sim.now;
    await fixture.settle(station.store.setFingerprint(ids.productId, ids.deviceId, under.device.deviceFingerprint));
    await fixture.until(under, 'ATTACHED');
    expect(fixture.sim.now - changedAt).toBeGreaterThan(5_000);
    expect(fixture.sim.now - changedAt).toBeLessThan(60_000);
    expect(under.events).not.toContain('DETACHED');
  });

  test('reports a wrong device id of the same organization', async () => {
    const under = await fixture.device({ deviceId: 'de-other', registered: false });
    await station.register(ids, under.device.deviceFingerprint);
    await station.register({ ...ids, deviceId: 'de-other' }, 'ab'.repeat(32));
    await fixture.start(under);
    await fixture.until(under, 'WRONG_DEVICE_ID');
    expect(under.reasons[0]?.code).toBe('WRONG_DEVICE_ID');
  });

  test('refuses a base station with another key', async () => {
    const under = await fixture.device({ serverFingerprint: 'ab'.repeat(32) });
    await fixture.start(under);
    await fixture.until(under, 'CERTIFICATE_VALIDATION_FAILED');
    expect(station.basestation.attached).toBe(0);
  });

  test('reports ten minutes without a base station once', { tags: ['slow'] }, async () => {
    const under = await fixture.device({ serverUrl: 'https://nowhere.invalid' });
    await fixture.start(under);
    await fixture.sim.run(9.9 * 60_000);
    expect(under.events).toEqual([]);
    await fixture.sim.run(60 * 60_000);
    expect(under.events).toEqual(['WATCHDOG_FAILURE']);
  });

  test('can be turned off and on while the device runs', async () => {
    const under = await fixture.attached();
    under.device.setBasestationAttach(false);
    await fixture.until(under, 'DETACHED');
    await fixture.sim.run(60_000);
    expect(station.basestation.attached).toBe(0);
    under.device.setBasestationAttach(true);
    await fixture.until(under, 'ATTACHED', 2);
    expect(under.events).toEqual(['ATTACHED', 'DETACHED', 'ATTACHED']);
  });
});

describe('after its base station was away, a device', () => {
  test('attaches within 5 s of its return: closed', async () => {
    const under = await fixture.attached();
    await fixture.settle(station.basestation.close());
    await fixture.until(under, 'DETACHED');
    station.kill();
    await fixture.sim.run(1_000);
    await station.start();
    const back = fixture.sim.now;
    await fixture.until(under, 'ATTACHED', 2);
    expect(fixture.sim.now - back).toBeLessThan(5_000);
  });

  async function attachesSoon(seed: number): Promise<void> {
    fixture = new ProductFixture({ seed });
    station = await fixture.station({ keepAlive: { interval: 1_000, retryInterval: 500, maxRetries: 20 } });
    const under = await fixture.attached();
    await fixture.sim.run(11_000);
    await fixture.settle(station.basestation.close());
    station.kill();
    await fixture.sim.run(500 + ((seed * 2_713) % 9_500));
    await station.start();
    const back = fixture.sim.now;
    await fixture.until(under, 'ATTACHED', 2, 60_000);
    expect(fixture.sim.now - back).toBeLessThan(5_000);
  }
  test.each(seeds(1, 8))('attaches within 5 s of its return: away for less than 10 s, %i', attachesSoon);
  test.each(seeds(9, 40))('attaches within 5 s of its return: away for less than 10 s, %i', { tags: ['slow'] }, attachesSoon);

  test('attaches within 5 s of its return: killed, which a Reset at the next keep-alive of the attach answer shows', {
    tags: ['slow'],
  }, async () => {
    fixture = new ProductFixture();
    station = await fixture.station({ keepAlive: { interval: 1_000, retryInterval: 500, maxRetries: 10 } });
    const under = await fixture.attached();
    station.kill();
    await fixture.sim.run(1_000);
    await station.start();
    const back = fixture.sim.now;
    await fixture.until(under, 'ATTACHED', 2);
    expect(fixture.sim.now - back).toBeLessThan(5_000);
    expect(under.events).toEqual(['ATTACHED', 'DETACHED', 'ATTACHED']);
  });

  test('the newest device with an identity wins, the other waits a minute', { tags: ['slow'] }, async () => {
    const first = await fixture.device();
    const privateKey = first.device.createPrivateKey();
    fixture = new ProductFixture();
    station = await fixture.station();
    const old = await fixture.attached({ privateKey });
    const next = await fixture.device({ privateKey, registered: false });
    await fixture.start(next);
    await fixture.until(next, 'ATTACHED');
    await fixture.until(old, 'DETACHED');
    expect(old.reasons.at(-1)?.code).toBe('REPLACED');
    await fixture.sim.run(50_000);
    expect(old.events).toEqual(['ATTACHED', 'DETACHED']);
    expect(next.events).toEqual(['ATTACHED']);
  });
});

describe('the lifecycle of a device', () => {
  test('ends with CLOSED, and the device cannot be used again', async () => {
    const { device, events } = await fixture.attached();
    await fixture.settle(device.close());
    expect(events.at(-1)).toBe('CLOSED');
    expect(await fixture.code(device.close())).toBe('INVALID_STATE');
    expect(await fixture.code(device.start())).toBe('INVALID_STATE');
    expect(() => device.setProductId('x')).toThrow(expect.objectContaining({ code: 'INVALID_STATE' }));
    expect(() => device.setBasestationAttach(true)).toThrow(expect.objectContaining({ code: 'INVALID_STATE' }));
    await fixture.sim.run(1_000);
    expect(station.basestation.attached).toBe(0);
  });

  test('a start under way is STOPPED by the end, and leaves no port open', async () => {
    const environment = fixture.sim.host('board');
    const { device, events } = await fixture.device({ environment });
    const starting = fixture.code(device.start());
    await device.close();
    expect(await starting).toBe('STOPPED');
    expect(events).toEqual(['CLOSED']);
    const next = new Device({ environment, ...ids, basestationAttach: false });
    next.setPrivateKey(next.createPrivateKey());
    expect(await fixture.code(next.start())).toBe('OK');
    await fixture.settle(next.close());
  });

  test('fails with UNKNOWN and the reason when a port cannot be opened for a reason without a code', async () => {
    const { device } = await fixture.device();
    const environment = fixture.sim.host('full');
    const failure = bindError(Object.assign(new Error('bind EMFILE'), { code: 'EMFILE' }), { port: 5593, receive: () => {} });
    vi.spyOn(environment.network, 'bind').mockRejectedValueOnce(failure);
    const full = new Device({ environment, ...ids, privateKey: device.createPrivateKey(), basestationAttach: false });
    await expect(fixture.settle(full.start())).rejects.toMatchObject({ code: 'UNKNOWN', message: expect.stringContaining('EMFILE') });
  });

  test('allows another start after ADDRESS_IN_USE for a taken port', async () => {
    const { device } = await fixture.device();
    const environment = fixture.sim.host('busy');
    const make = () => new Device({ environment, ...ids, privateKey: device.createPrivateKey(), basestationAttach: false });
    const first = make();
    await fixture.settle(first.start());
    const second = make();
    expect(await fixture.code(second.start())).toBe('ADDRESS_IN_USE');
    second.setLocalPort(0);
    second.setP2pPort(0);
    expect(await fixture.code(second.start())).toBe('OK');
    expect(second.localPort).not.toBe(first.localPort);
    await fixture.settle(Promise.all([first.close(), second.close()]));
  });
});
