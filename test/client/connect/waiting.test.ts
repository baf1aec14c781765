/** IgnoreDeviceNotAttached: a connect that waits for a device, in virtual time. */
import { getEventListeners } from 'node:events';
import { beforeEach, describe, expect, test } from 'vitest';
import { answerAfterWait, whileNotAttached } from '../../../client/connect/waiting.ts';
import type { Connection, ConnectionOptions } from '../../../client/node.ts';
import { Router } from '../../../protocol/coap/index.ts';
import { ClientPath, DevicePath, encodeTokens, StationPath, stationReply } from '../../../protocol/control/index.ts';
import { RemoteError, StationCode } from '../../../protocol/errors/index.ts';
import { pause } from '../../../runtime/pause.ts';
import type { Session } from '../../../runtime/session/index.ts';
import type { DeviceUnderTest } from '../../support/fixture/devices-and-clients.ts';
import { ids, SCT } from '../../support/fixture/identifiers.ts';
import { ProductFixture } from '../../support/fixture/products.ts';
import type { StationUnderTest } from '../../support/fixture/station.ts';
import { recordEvents } from '../../support/recorded-events.ts';

let fixture: ProductFixture;
let station: StationUnderTest;
beforeEach(async () => {
  fixture = new ProductFixture();
  station = await fixture.station();
});

/** A connect under way, with its events. Its result: OK or a code, and the duration in ms. */
function connecting(options: ConnectionOptions = {}, connection?: Connection) {
  const made = connection ?? fixture.connection({ Local: false, IgnoreDeviceNotAttached: true, ...options });
  const events: string[] = [];
  recordEvents(made, events);
  const began = fixture.sim.now;
  const result: Promise<[string, number]> = made.connect().then(
    () => ['OK', fixture.sim.now - began],
    (error: { code: string; remoteChannelErrorCode?: string }) => [error.remoteChannelErrorCode ?? error.code, fixture.sim.now - began],
  );
  return { connection: made, events, result };
}

/** A device that the base station knows, with its token, and that is not attached. */
async function away(): Promise<DeviceUnderTest> {
  const under = await fixture.attached();
  under.device.setBasestationAttach(false);
  await fixture.sim.run(1_000);
  return under;
}

/** Waiting clients and routes at the base station. */
const atStation = (): (number | undefined)[] => {
  const { waiting, routes } = station.basestation.stats();
  return [waiting, routes];
};

describe('a device that is not attached', () => {
  test.each([1_000, 15_000, 110_000])('is connected as soon as it attaches, after %d ms', async (time) => {
    const { device, events: ofDevice } = await away();
    const { connection, events, result } = connecting();
    await fixture.sim.run(time);
    expect([events, atStation()]).toEqual([['waiting'], [1, 0]]);
    device.setBasestationAttach(true);
    await fixture.sim.run(() => ofDevice.filter((event) => event === 'ATTACHED').length === 2);
    const attached = fixture.sim.now;
    expect((await fixture.settle(result))[0]).toBe('OK');
    // The handshake that waited at the base station: to the device, back, and on to the client.
    expect(fixture.sim.now - attached).toBeLessThanOrEqual(30);
    expect([connection.getType(), events]).toEqual(['RELAY', ['waiting', 'open']]);
    expect((await fixture.coap(connection, 'GET', '/')).status).toBe(404);
    await fixture.sim.run(300_000);
    expect([connection.isConnected, atStation()]).toEqual([true, [0, 1]]);
  });

  test('is awaited until ConnectTimeout; then the base station forgets the client', async () => {
    await away();
    const { connection, events, result } = connecting({ ConnectTimeout: 50_000 });
    expect(await fixture.settle(result)).toEqual(['TIMEOUT', 50_000]);
    await fixture.sim.run(1_000);
    expect([events, atStation(), connection.getRemoteChannelErrorCode()]).toEqual([['waiting'], [0, 0], 'OPERATION_IN_PROGRESS']);
  });

  test('is no longer awaited after close; the base station forgets the client', async () => {
    await away();
    const { connection, events, result } = connecting();
    await fixture.sim.run(20_000);
    await fixture.settle(connection.close());
    expect(await fixture.settle(result)).toEqual(['STOPPED', 20_000]);
    await fixture.sim.run(1_000);
    expect([events, atStation()]).toEqual([['waiting'], [0, 0]]);
  });

  test.each([5, 15, 25, 35, 45])('leaves nothing at the base station when close follows %d ms after connect', async (time) => {
    await away();
    const { connection, result } = connecting();
    await fixture.sim.run(time);
    await fixture.settle(connection.close());
    expect((await fixture.settle(result))[0]).toBe('STOPPED');
    await fixture.sim.run(2_000);
    expect(atStation()).toEqual([0, 0]);
  });

  test('fails without the option, and emits no event without a wait', { tags: ['slow'] }, async () => {
    const { device } = await away();
    const without = connecting({ IgnoreDeviceNotAttached: false });
    expect((await fixture.settle(without.result))[0]).toBe('NOT_ATTACHED');
    device.setBasestationAttach(true);
    await fixture.sim.run(2_000);
    const { events, result } = connecting();
    expect((await fixture.settle(result))[0]).toBe('OK');
    expect([without.events, events]).toEqual([[], ['open']]);
  });

  test('does not stop other channels: a direct candidate added meanwhile connects, and the wait ends', { tags: ['slow'] }, async () => {
    const { device, host } = await away();
    const connection = fixture.connection({ Local: false, IgnoreDeviceNotAttached: true });
    connection.enableDirectCandidates();
    const { result } = connecting({}, connection);
    await fixture.sim.run(30_000);
    connection.addDirectCandidate(host, device.localPort);
    expect((await fixture.settle(result))[0]).toBe('OK');
    await fixture.sim.run(1_000);
    expect([connection.getType(), atStation()]).toEqual(['DIRECT', [0, 0]]);
  });

  test('is awaited by several connects of one client side by side', async () => {
    const { device } = await away();
    const client = fixture.client();
    const options = { Local: false, IgnoreDeviceNotAttached: true };
    const all = [1, 2, 3].map(() => connecting({}, fixture.connection(options, client)));
    await fixture.sim.run(40_000);
    expect(atStation()).toEqual([3, 0]);
    device.setBasestationAttach(true);
    const results = await fixture.settle(Promise.all(all.map(({ result }) => result)));
    expect(results.map(([code]) => code)).toEqual(['OK', 'OK', 'OK']);
  });
});

describe('a wait survives', () => {
  test.each(['is closed', 'is killed'])('a base station that %s and starts again', { tags: ['slow'] }, async (how) => {
    const { device } = await away();
    const { events, result } = connecting();
    await fixture.sim.run(5_000);
    if (how === 'is closed') await fixture.settle(station.basestation.close());
    station.kill();
    await fixture.sim.run(3_000);
    await station.start();
    await fixture.sim.run(70_000);
    expect(atStation()).toEqual([1, 0]);
    device.setBasestationAttach(true);
    expect((await fixture.settle(result))[0]).toBe('OK');
    expect(events).toEqual(['waiting', 'open']);
  });

  test('a device that is attached and does not answer', async () => {
    const silent = await fixture.raw.client();
    await station.register(ids, silent.host.fingerprint);
    await silent.open(new Router<Session>().on('POST', StationPath.P2P_CONNECT, () => new Promise(() => {})));
    await silent.attach();
    await silent.request('PUT', DevicePath.SCT, encodeTokens([SCT]));
    const { events, result } = connecting();
    await fixture.sim.run(20_000);
    expect(events).toEqual(['waiting']);
    const under = await fixture.device({ registered: false });
    await station.store.setFingerprint(ids.productId, ids.deviceId, under.device.deviceFingerprint);
    await fixture.start(under);
    expect((await fixture.settle(result))[0]).toBe('OK');
  });

  test('a base station that cannot wait: it is asked again, less and less often', { tags: ['slow'] }, async () => {
    let asked = 0;
    const router = new Router<Session>().on('POST', ClientPath.CONNECT, () => {
      asked++;
      return stationReply(StationCode.NOT_ATTACHED);
    });
    const old = await fixture.raw.station({ machine: 'old', router });
    const { events, result } = connecting({ ServerUrl: 'https://old:4433', ServerFingerprint: old.host.fingerprint });
    expect(await fixture.settle(result)).toEqual(['TIMEOUT', 120_000]);
    expect(events).toEqual(['waiting']);
    expect(asked).toBeGreaterThan(5);
    expect(asked).toBeLessThan(40);
  });
});

describe('a fault that a person must fix ends a wait:', () => {
  test.each<[string, ConnectionOptions, string]>([
    ['an unknown device', { DeviceId: 'de-x' }, 'UNKNOWN_DEVICE_ID'],
    ['a wrong token', { ServerConnectToken: 'wrong' }, 'TOKEN_REJECTED'],
    ['a base station that is not there', { ServerUrl: 'https://station:1', DtlsHelloTimeout: 2_000 }, 'CONNECTION_REFUSED'],
    ['a base station with another key', { ServerFingerprint: 'ab'.repeat(32) }, 'FINGERPRINT_MISMATCH'],
  ])('%s: no wait begins', async (_, options, code) => {
    await away();
    const { events, result } = connecting(options);
    const [ended, took] = await fixture.settle(result);
    expect([ended, events]).toEqual([code, []]);
    expect(took).toBeLessThan(3_000);
  });

  test('a token that is withdrawn meanwhile, as soon as the device attaches', async () => {
    const { device } = await away();
    const { events, result } = connecting();
    await fixture.sim.run(20_000);
    await station.store.removeDevice(ids.productId, ids.deviceId);
    await station.register(ids, device.deviceFingerprint);
    device.removeServerConnectToken(SCT);
    device.addServerConnectToken('another');
    device.setBasestationAttach(true);
    expect((await fixture.settle(result))[0]).toBe('TOKEN_REJECTED');
    expect(events).toEqual(['waiting']);
  });

  test('a device with another key than the pinned one', { tags: ['slow'] }, async () => {
    const { device } = await away();
    const { result } = connecting({ DeviceFingerprint: 'ab'.repeat(32) });
    await fixture.sim.run(20_000);
    device.setBasestationAttach(true);
    expect((await fixture.settle(result))[0]).toBe('FINGERPRINT_MISMATCH');
  });
});

test('an attempt that took 30 s is not the next of a row of failures: another one begins at once', async () => {
  const environment = fixture.sim.host('desk');
  const signal = new AbortController().signal;
  const began: number[] = [];
  const attempt = async (): Promise<string> => {
    const count = began.push(fixture.sim.now);
    if (count === 13) return 'attached';
    if (count === 12) await pause(environment.clock, 30_000);
    throw new RemoteError('NOT_ATTACHED', 'not yet');
  };
  await fixture.settle(whileNotAttached(environment, attempt, { signal, onWaiting: () => {} }));
  expect((began[12] as number) - (began[11] as number)).toBeLessThanOrEqual(30_250);
  expect(getEventListeners(signal, 'abort')).toEqual([]);
});

test('a wait that ends leaves no listener at its signal', async () => {
  const { signal } = new AbortController();
  let refuse = (_: RemoteError): void => {};
  const observe = (_: object, __: unknown, onEnd: (error: RemoteError) => void) => {
    refuse = onEnd;
    return { cancel: () => {} };
  };
  const answer = answerAfterWait({ observe } as unknown as Session, { method: 'POST', path: '/' }, { signal, waits: () => {} });
  expect(getEventListeners(signal, 'abort').length).toBe(1);
  refuse(new RemoteError('CLOSED', 'over'));
  await expect(answer).rejects.toMatchObject({ code: 'CLOSED' });
  expect(getEventListeners(signal, 'abort')).toEqual([]);
});
