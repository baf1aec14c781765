/** A device and its base station, in virtual time. */
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { hashSecret } from '../../server/storage/secrets.ts';
import { ids, SCT, Scene } from '../client/scene.ts';

let scene: Scene;
beforeEach(async () => {
  scene = await Scene.make();
});
afterEach(() => scene.close());

const storedTokens = () => scene.settle(scene.world.store.tokens(ids.productId, ids.deviceId));

describe('attach', () => {
  test('holds, and the base station then has the tokens', async () => {
    const { device, events } = await scene.attached();
    expect(events).toEqual(['ATTACHED']);
    expect(scene.world.station.attached).toBe(1);
    expect(device.areServerConnectTokensSynchronized()).toBe(true);
    expect(await storedTokens()).toEqual([hashSecret(SCT)]);
  });

  test('a token added later is uploaded at once', async () => {
    const { device } = await scene.attached();
    device.addServerConnectToken('another');
    expect(device.areServerConnectTokensSynchronized()).toBe(false);
    await scene.world.sim.run(() => device.areServerConnectTokensSynchronized());
    expect((await storedTokens()).toSorted()).toEqual([hashSecret(SCT), hashSecret('another')].toSorted());
  });

  test('an unknown fingerprint is told, and tried again slowly until it is registered', async () => {
    const under = await scene.device({ registered: false });
    await scene.world.register(ids, null);
    await scene.start(under);
    await scene.until(under, 'UNKNOWN_FINGERPRINT');
    const told = scene.world.sim.now;
    await scene.settle(scene.world.store.setFingerprint(ids.productId, ids.deviceId, under.device.deviceFingerprint));
    await scene.until(under, 'ATTACHED');
    expect(scene.world.sim.now - told).toBeGreaterThan(5_000);
    expect(scene.world.sim.now - told).toBeLessThan(60_000);
    expect(under.events).not.toContain('DETACHED');
  });

  test('a wrong device id of the same organization is told', async () => {
    const under = await scene.device({ deviceId: 'de-other', registered: false });
    await scene.world.register(ids, under.device.deviceFingerprint);
    await scene.world.register({ ...ids, deviceId: 'de-other' }, 'ab'.repeat(32));
    await scene.start(under);
    await scene.until(under, 'WRONG_DEVICE_ID');
    expect(under.reasons[0]?.code).toBe('WRONG_DEVICE_ID');
  });

  test('a base station with another key is not trusted', async () => {
    const under = await scene.device({ serverFingerprint: 'ab'.repeat(32) });
    await scene.start(under);
    await scene.until(under, 'CERTIFICATE_VALIDATION_FAILED');
    expect(scene.world.station.attached).toBe(0);
  });

  test('ten minutes without a base station are told once', async () => {
    const under = await scene.device({ serverUrl: 'https://nowhere.invalid' });
    await scene.start(under);
    await scene.world.sim.run(9.9 * 60_000);
    expect(under.events).toEqual([]);
    await scene.world.sim.run(60 * 60_000);
    expect(under.events).toEqual(['WATCHDOG_FAILURE']);
  });

  test('can be turned off and on while the device runs', async () => {
    const under = await scene.attached();
    under.device.setBasestationAttach(false);
    await scene.until(under, 'DETACHED');
    await scene.world.sim.run(60_000);
    expect(scene.world.station.attached).toBe(0);
    under.device.setBasestationAttach(true);
    await scene.until(under, 'ATTACHED', 2);
    expect(under.events).toEqual(['ATTACHED', 'DETACHED', 'ATTACHED']);
  });
});

describe('after the base station went away', () => {
  test('closed: attached again at most 5 s after it is back', async () => {
    const under = await scene.attached();
    await scene.settle(scene.world.station.close());
    await scene.until(under, 'DETACHED');
    scene.world.stopStation();
    await scene.world.sim.run(1_000);
    await scene.world.startStation();
    const back = scene.world.sim.now;
    await scene.until(under, 'ATTACHED', 2);
    expect(scene.world.sim.now - back).toBeLessThan(5_000);
  });

  test('killed: noticed by Reset at the next keep-alive of the attach answer, attached again at most 5 s after it is back', async () => {
    await scene.close();
    scene = await Scene.make({ keepAlive: { interval: 1_000, retryInterval: 500, maxRetries: 10 } });
    const under = await scene.attached();
    scene.world.stopStation();
    await scene.world.sim.run(1_000);
    await scene.world.startStation();
    const back = scene.world.sim.now;
    await scene.until(under, 'ATTACHED', 2);
    expect(scene.world.sim.now - back).toBeLessThan(5_000);
    expect(under.events).toEqual(['ATTACHED', 'DETACHED', 'ATTACHED']);
  });

  test('the newest device with an identity wins, the other waits a minute', async () => {
    const first = await scene.device();
    const privateKey = first.device.createPrivateKey();
    await scene.close();
    scene = await Scene.make();
    const old = await scene.attached({ privateKey });
    const next = await scene.device({ privateKey, registered: false });
    await scene.start(next);
    await scene.until(next, 'ATTACHED');
    await scene.until(old, 'DETACHED');
    expect(old.reasons.at(-1)?.code).toBe('REPLACED');
    await scene.world.sim.run(50_000);
    expect(old.events).toEqual(['ATTACHED', 'DETACHED']);
    expect(next.events).toEqual(['ATTACHED']);
  });
});

describe('life of a device', () => {
  test('CLOSED is the last event, and it cannot be used again', async () => {
    const { device, events } = await scene.attached();
    await scene.settle(device.close());
    expect(events.at(-1)).toBe('CLOSED');
    expect(await scene.code(device.close())).toBe('INVALID_STATE');
    expect(await scene.code(device.start())).toBe('INVALID_STATE');
    expect(() => device.setProductId('x')).toThrow();
    expect(() => device.setBasestationAttach(true)).toThrow();
    await scene.world.sim.run(1_000);
    expect(scene.world.station.attached).toBe(0);
  });

  test('a port that is taken is ADDRESS_IN_USE, and another start may follow', async () => {
    const { device } = await scene.device();
    const environment = scene.world.sim.host('busy');
    const { Device } = await import('../../device/index.ts');
    const make = () => new Device({ environment, ...ids, privateKey: device.createPrivateKey(), basestationAttach: false });
    const first = make();
    await scene.settle(first.start());
    const second = make();
    expect(await scene.code(second.start())).toBe('ADDRESS_IN_USE');
    second.setLocalPort(0);
    second.setP2pPort(0);
    expect(await scene.code(second.start())).toBe('OK');
    expect(second.localPort).not.toBe(first.localPort);
    await scene.settle(Promise.all([first.close(), second.close()]));
  });
});
