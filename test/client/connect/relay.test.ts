/** Client to device through a base station, in virtual time. */
import { beforeEach, describe, expect, test } from 'vitest';
import { LocalError, type Log, NoChannelsError, SvcClient } from '../../../client/node.ts';
import { silentLog, withLog } from '../../../platform/environment.ts';
import { thrownCode } from '../../support/code-of.ts';
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

describe('connect', () => {
  test('with a server connect token is relayed, and both ends know each other', { tags: ['slow'] }, async () => {
    const { device } = await fixture.attached();
    const seen: string[] = [];
    device.onConnectionEvent((connection, event) => seen.push(`${connection.ref} ${event} ${connection.clientFingerprint}`));
    const connection = await fixture.connected({ DeviceFingerprint: device.deviceFingerprint });
    expect(connection.getType()).toBe('RELAY');
    expect(connection.getDeviceFingerprint()).toBe(device.deviceFingerprint);
    expect(connection.verified).toBe('pinned');
    expect(connection.deviceInfo).toMatchObject({ ProductId: ids.productId, DeviceId: ids.deviceId });
    await fixture.sim.run(() => seen.length > 0);
    expect(seen).toEqual([`1 OPENED ${connection.getClientFingerprint()}`]);
    expect(device.connection(1).isLocal).toBe(false);
    expect(device.connection(1).type).toBe('RELAY');
  });

  test('works with a server key, and without a pin', async () => {
    await fixture.attached();
    const client = fixture.client();
    const connection = client.createConnection();
    connection.updateOptions({
      PrivateKey: client.createPrivateKey(),
      ProductId: ids.productId,
      DeviceId: ids.deviceId,
      ServerKey: 'sk-a',
    });
    connection.updateOptions({ ServerUrl: 'https://station:4433', ServerFingerprint: station.fingerprint });
    await fixture.settle(connection.connect());
    expect(connection.verified).toBe('none');
  });

  test('shares the channel to the base station among connections of one client', async () => {
    await fixture.attached();
    const client = fixture.client();
    const connections = [1, 2, 3].map(() => fixture.connection({}, client));
    await fixture.settle(Promise.all(connections.map((connection) => connection.connect())));
    for (const connection of connections) expect(connection.getType()).toBe('RELAY');
    // The device's channel and the client's.
    expect(station.basestation.stats().connections).toBe(2);
  });

  test('succeeds once the client can start', async () => {
    await fixture.attached();
    const environment = withLog(fixture.sim.host('phone'), silentLog);
    let fails = true;
    const createCore: typeof environment.createCore = (options) =>
      fails ? Promise.reject(new LocalError('NOT_IMPLEMENTED', 'no wasm here')) : environment.createCore(options);
    const client = SvcClient.create({ environment: { ...environment, createCore } });
    await expect(fixture.settle(fixture.connection({}, client).connect())).rejects.toMatchObject({
      remoteChannelErrorCode: 'NOT_IMPLEMENTED',
    });
    fails = false;
    expect(await fixture.code(fixture.connection({}, client).connect())).toBe('OK');
    await fixture.settle(client.stop());
  });

  test.each<[string, Record<string, unknown>, string]>([
    ['an unknown product', { ProductId: 'pr-x' }, 'UNKNOWN_PRODUCT_ID'],
    ['an unknown device', { DeviceId: 'de-x' }, 'UNKNOWN_DEVICE_ID'],
    ['a wrong token', { ServerConnectToken: 'wrong' }, 'TOKEN_REJECTED'],
    ['an unknown server key', { ServerConnectToken: undefined, ServerKey: 'sk-x' }, 'UNKNOWN_SERVER_KEY'],
    ['a host that does not resolve', { ServerUrl: 'https://nowhere.invalid' }, 'DNS'],
    ['a base station that is not there', { ServerUrl: 'https://station:1' }, 'CONNECTION_REFUSED'],
    ['a base station with another key', { ServerFingerprint: 'ab'.repeat(32) }, 'FINGERPRINT_MISMATCH'],
  ])('fails with %s: NO_CHANNELS with NONE, its code, NONE', async (_, options, remote) => {
    await fixture.attached();
    const began = fixture.sim.now;
    const given = Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined));
    const connection = 'ServerKey' in options ? keyed(given) : fixture.connection({ Local: false, ...given });
    const error = await fixture.settle(connection.connect().catch((reason: unknown) => reason));
    expect(error).toBeInstanceOf(NoChannelsError);
    expect(error).toMatchObject({
      localChannelErrorCode: 'NONE',
      remoteChannelErrorCode: remote,
      directCandidatesChannelErrorCode: 'NONE',
    });
    // Only the base station that does not answer is waited for.
    expect(fixture.sim.now - began).toBeLessThanOrEqual(remote === 'CONNECTION_REFUSED' ? 10_000 : 200);
  });

  const keyed = (options: object) => {
    const client = fixture.client();
    const connection = client.createConnection();
    connection.updateOptions({ PrivateKey: client.createPrivateKey(), ProductId: ids.productId, DeviceId: ids.deviceId });
    connection.updateOptions({ ServerUrl: 'https://station:4433', ServerFingerprint: station.fingerprint, Local: false, ...options });
    return connection;
  };

  test('without key, token and JWT fails with INVALID_STATE of the remote channel', async () => {
    await expect(fixture.settle(keyed({}).connect())).rejects.toMatchObject({
      code: 'NO_CHANNELS',
      remoteChannelErrorCode: 'INVALID_STATE',
    });
  });

  test('reports within 5 s that a device is not attached', { tags: ['slow'] }, async () => {
    const { device } = await fixture.attached();
    await fixture.settle(device.close());
    const began = fixture.sim.now;
    await expect(fixture.settle(fixture.connection().connect())).rejects.toMatchObject({ remoteChannelErrorCode: 'NOT_ATTACHED' });
    expect(fixture.sim.now - began).toBeLessThan(5_000);
  });

  test('reports a full base station as CONNECTION_REFUSED, and does not blame the device', async () => {
    fixture = new ProductFixture();
    station = await fixture.station({ connections: 1 });
    await fixture.attached();
    const error = await fixture.settle(
      fixture
        .connection()
        .connect()
        .catch((reason: unknown) => reason),
    );
    expect(error).toMatchObject({ code: 'NO_CHANNELS', remoteChannelErrorCode: 'CONNECTION_REFUSED' });
  });

  test('fails at another key than the pinned one, and the device never sees the client', { tags: ['slow'] }, async () => {
    const { device } = await fixture.attached();
    const seen: string[] = [];
    device.onConnectionEvent((_, event) => seen.push(event));
    expect(await fixture.code(fixture.connection({ DeviceFingerprint: 'ab'.repeat(32) }).connect())).toBe('FINGERPRINT_MISMATCH');
    await fixture.sim.run(20_000);
    expect(seen).toEqual([]);
  });

  test('stops when the connection is closed', async () => {
    await fixture.attached();
    const connection = fixture.connection();
    const connecting = connection.connect();
    const closing = connection.close();
    expect(await fixture.code(connecting)).toBe('STOPPED');
    await fixture.settle(closing);
  });

  test('stops at once when it is closed and no answer comes', async () => {
    const client = SvcClient.create({ environment: fixture.sim.host('phone') });
    fixture.sim.link('phone', 'station', { delay: 10, loss: 1 });
    const connection = fixture.connection({}, client);
    const connecting = connection.connect();
    await fixture.sim.run(500);
    const began = fixture.sim.now;
    const ended = connecting.catch((error: { code: string }) => error.code);
    await fixture.settle(connection.close());
    expect(await fixture.settle(ended)).toBe('STOPPED');
    expect(fixture.sim.now - began).toBeLessThan(100);
    await fixture.settle(client.stop());
  });

  test('stops by a signal', async () => {
    await fixture.attached();
    const stop = new AbortController();
    const connecting = fixture.connection().connect({ signal: stop.signal });
    stop.abort();
    expect(await fixture.code(connecting)).toBe('STOPPED');
  });

  test('is refused by a device at its limit of connections, without an event, and accepted below it', async () => {
    const { device } = await fixture.attached();
    device.limitConnections(0);
    const refused = fixture.connection();
    const events: string[] = [];
    recordEvents(refused, events);
    expect(await fixture.code(refused.connect())).toBe('DEVICE_INTERNAL_ERROR');
    await fixture.sim.run(1_000);
    expect(events).toEqual([]);
    device.limitConnections(1);
    expect(await fixture.code(fixture.connection().connect())).toBe('OK');
    expect(await fixture.code(fixture.connection().connect())).toBe('DEVICE_INTERNAL_ERROR');
  });
});

describe('the end of a connection', () => {
  test('closed here: CLOSED once, all operations STOPPED, a second close is harmless', async () => {
    const { device } = await fixture.attached();
    const atDevice: string[] = [];
    device.onConnectionEvent((_, event) => atDevice.push(event));
    const connection = fixture.connection();
    const events: string[] = [];
    recordEvents(connection, events);
    await fixture.settle(connection.connect());
    await fixture.settle(connection.close());
    await fixture.settle(connection.close());
    await fixture.sim.run(5_000);
    expect(events).toEqual(['open', 'close']);
    expect(atDevice).toEqual(['OPENED', 'CLOSED']);
    expect(() => connection.getType()).toThrow(expect.objectContaining({ code: 'STOPPED' }));
    expect(thrownCode(() => connection.openStream(1))).toBe('STOPPED');
    expect(connection.closeReason).toBeNull();
    expect(() => device.connection(1)).toThrow(expect.objectContaining({ code: 'INVALID_CONNECTION' }));
  });

  test('closed by the device: CLOSED with a reason', { tags: ['slow'] }, async () => {
    const { device } = await fixture.attached();
    const connection = await fixture.connected();
    const events: string[] = [];
    recordEvents(connection, events);
    await fixture.sim.run(100);
    await fixture.settle(device.connection(1).close());
    await fixture.sim.run(5_000);
    expect(events).toEqual(['close']);
    expect(connection.closeReason?.code).toBe('CLOSED');
    expect(await fixture.code(connection.get('/'))).toBe('NOT_CONNECTED');
  });

  test('the base station closes: relayed connections end with a clear reason, and a new one works after its return', {
    tags: ['slow'],
  }, async () => {
    const under = await fixture.attached();
    const connection = await fixture.connected();
    await fixture.settle(station.basestation.close());
    await fixture.sim.run(() => connection.closeReason !== null);
    expect(connection.closeReason?.code).toBe('CLOSED');
    expect(connection.closeReason?.message).toBe(
      'the channel to the base station ended (the peer is shutting down), and with it the route; there was no other path within 60 s',
    );
    station.kill();
    await station.start();
    await fixture.until(under, 'ATTACHED', 2);
    expect((await fixture.connected()).getType()).toBe('RELAY');
  });

  test('a listener may remove itself, and may fail', async () => {
    await fixture.attached();
    const connection = fixture.connection();
    const events: string[] = [];
    const once = (): void => {
      events.push('once open');
      connection.off('open', once);
      throw new Error('of the application');
    };
    const removed = (): number => events.push('removed');
    connection.on('open', once);
    connection.on('close', removed);
    connection.off('close', removed);
    recordEvents(connection, events);
    await fixture.settle(connection.connect());
    await fixture.settle(connection.close());
    expect(events).toEqual(['once open', 'open', 'close']);
  });

  test('its events are iterated, with their values, to the end', async () => {
    await fixture.attached();
    const connection = fixture.connection();
    const events: unknown[] = [];
    const reading = (async () => {
      for await (const event of connection.events()) events.push(event);
    })();
    await fixture.settle(connection.connect());
    await fixture.settle(connection.close());
    await fixture.settle(reading);
    expect(events).toEqual([{ type: 'open' }, { type: 'close' }]);
  });
});

test('the log of its environment gets the client’s messages', { tags: ['slow'] }, async () => {
  await fixture.attached();
  const heard: string[] = [];
  const log: Log = { ...silentLog, error: (message, fields) => heard.push(`${message} ${JSON.stringify(fields)}`) };
  const client = SvcClient.create({ environment: withLog(fixture.sim.host('phone'), log) });
  client.setLogLevel('error');
  const connection = fixture.connection({}, client);
  connection.on('open', () => {
    throw new Error('of the application');
  });
  await fixture.settle(connection.connect());
  expect(heard).toEqual([expect.stringMatching(/^listener of open threw .*Error: of the application/)]);
  await fixture.settle(client.stop());
});

describe('options', () => {
  test.each([[4_000], [40_000]])(
    'KeepAliveInterval: without an answer for %d ms and the retries the connection is lost',
    async (interval) => {
      const { host } = await fixture.attached();
      const connection = await fixture.connected({ KeepAliveInterval: interval, KeepAliveRetryInterval: 1_000, KeepAliveMaxRetries: 3 });
      const events: string[] = [];
      recordEvents(connection, events);
      await fixture.sim.run(1_000);
      fixture.sim.link(host, 'station', { delay: 10, loss: 1 });
      const began = fixture.sim.now;
      await fixture.sim.run(() => events.length > 0, 100_000);
      expect(connection.closeReason?.code).toBe('TIMEOUT');
      // One interval since the last answer, which is up to an interval old, then the retries.
      expect(fixture.sim.now - began).toBeGreaterThan(interval);
      expect(fixture.sim.now - began).toBeLessThan(2 * interval + 4_000);
    },
  );

  test.each<[string, number, string]>([
    ['base station', 1_500, 'CONNECTION_REFUSED'],
    ['base station', 15_000, 'CONNECTION_REFUSED'],
    ['device', 1_500, 'TIMEOUT'],
  ])('DtlsHelloTimeout: a silent %s ends the connect after %d ms', async (silent, timeout, code) => {
    const { host } = await fixture.attached();
    const client = SvcClient.create({ environment: fixture.sim.host('phone') });
    fixture.sim.link(silent === 'device' ? host : 'phone', 'station', { delay: 10, loss: 1 });
    const began = fixture.sim.now;
    const connecting = fixture.connection({ Local: false, DtlsHelloTimeout: timeout }, client).connect();
    await expect(fixture.settle(connecting)).rejects.toMatchObject({ remoteChannelErrorCode: code });
    expect(fixture.sim.now - began).toBeGreaterThanOrEqual(timeout);
    expect(fixture.sim.now - began).toBeLessThan(timeout + 200);
    await fixture.settle(client.stop());
  });
});

test('a token is a coarse filter: without it the base station admits no client', { tags: ['slow'] }, async () => {
  const { device } = await fixture.attached();
  device.addServerConnectToken('second');
  await fixture.sim.run(() => device.areServerConnectTokensSynchronized());
  for (const token of [SCT, 'second']) expect((await fixture.connected({ ServerConnectToken: token })).getType()).toBe('RELAY');
});
