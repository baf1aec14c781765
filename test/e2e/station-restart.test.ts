/**
 * A base station that restarts, is killed or unreachable, in virtual time: connections rest and resume, and nothing is
 * lost (PROTOCOL.md §6). Other reasons end them: refusals, a device that lost its state, and a minute.
 */
import { beforeEach, describe, expect, test } from 'vitest';
import type { Connection } from '../../client/node.ts';
import { Device, type DeviceOptions } from '../../device/index.ts';
import { hashSecret } from '../../server/storage/secrets.ts';
import type { DeviceUnderTest } from '../support/fixture/devices-and-clients.ts';
import { ids, SCT } from '../support/fixture/identifiers.ts';
import { ProductFixture } from '../support/fixture/products.ts';
import type { StationUnderTest } from '../support/fixture/station.ts';
import { recordEvents } from '../support/recorded-events.ts';
import { seeds } from '../support/tiered.ts';

const PORT = 7;
const KEEP_ALIVE_TIME = 60_000;
const KEY = new Device().createPrivateKey();

let fixture: ProductFixture;
let station: StationUnderTest;
let deviceEvents: string[];
beforeEach(async () => {
  deviceEvents = [];
  fixture = new ProductFixture();
  station = await fixture.station();
});

/** Connected, and the device knows it. */
async function settled(): Promise<Connection> {
  const connection = await fixture.connected();
  await fixture.sim.run(() => deviceEvents.includes('OPENED 1'));
  return connection;
}

/** A device that echoes a stream. */
async function echoDevice(options: DeviceOptions = {}): Promise<DeviceUnderTest> {
  const under = await fixture.attached(options);
  under.device.addStreamListener(PORT, async (incoming) => {
    const stream = incoming.accept();
    for (let part = await read(stream); part !== null; part = await read(stream)) await stream.write(part);
    await stream.close();
  });
  under.device.addCoapResource('GET', '/hello', () => ({ status: 205, payload: 'hello' }));
  under.device.onConnectionEvent((connection, event) => deviceEvents.push(`${event} ${connection.ref}`));
  return under;
}

/** Null at the end. */
async function read(stream: { read(): Promise<Uint8Array> }): Promise<Uint8Array | null> {
  try {
    return await stream.read();
  } catch (error) {
    if ((error as { code: string }).code === 'END_OF_FILE') return null;
    throw error;
  }
}

function pattern(length: number): Uint8Array {
  return new Uint8Array(length).map((_, i) => (i * 31 + (i >> 8) * 7) & 0xff);
}

/** Sends bytes to the device and back. Resolves with the longest pause between two reads, ms. */
async function echo(connection: Connection, bytes: Uint8Array): Promise<number> {
  const stream = connection.openStream(PORT);
  await stream.opened;
  const writing = (async () => {
    for (let at = 0; at < bytes.length; at += 10_000) await stream.write(bytes.subarray(at, at + 10_000));
    await stream.close();
  })();
  let got = 0;
  let [last, longest] = [fixture.sim.now, 0];
  for (;;) {
    const part = await read(stream);
    if (part === null) break;
    longest = Math.max(longest, fixture.sim.now - last);
    last = fixture.sim.now;
    if (Buffer.compare(part, bytes.subarray(got, got + part.length)) !== 0) throw new Error(`bytes behind ${got} are others`);
    got += part.length;
  }
  await writing;
  expect(got).toBe(bytes.length);
  return longest;
}

const hello = (connection: Connection) => fixture.coap(connection, 'GET', '/hello');

describe('a base station restarts under a transfer', () => {
  async function arrives(how: 'shutdown' | 'killed' | 'unplugged'): Promise<void> {
    await echoDevice();
    const connection = await fixture.connected();
    const events: string[] = [];
    recordEvents(connection, events);
    const transfer = echo(connection, pattern(2_000_000));
    await fixture.sim.run(300);
    const down = 2_000;
    await station.restart(how, down);
    expect(await fixture.settle(transfer)).toBeLessThan(down + 5_000);
    expect(connection.isConnected).toBe(true);
    expect(events).toEqual(['rest', 'path', 'resume']);
    expect(connection.stats()).toMatchObject({ rests: 1 });
    expect(connection.stats().restTime).toBeGreaterThan(0);
  }
  const name = '%s: every byte arrives once, in order, at most 5 s after it listens again';
  test.each(['shutdown', 'unplugged', 'killed'] as const)(name, { tags: ['slow'] }, arrives);

  test('twice, the second time while the connection still rests', { tags: ['slow'] }, async () => {
    await echoDevice();
    const connection = await fixture.connected();
    const transfer = echo(connection, pattern(2_000_000));
    await fixture.sim.run(300);
    await station.restart('killed', 1_000);
    await fixture.sim.run(400);
    await station.restart('shutdown', 3_000);
    await fixture.settle(transfer);
  });

  test.each(seeds(1, 20))('at any moment, with losses (seed %i)', { tags: ['slow'] }, async (seed) => {
    fixture = new ProductFixture({ seed, link: { delay: 15, jitter: 5, loss: 0.02 } });
    station = await fixture.station();
    await echoDevice();
    const connection = await settled();
    const transfer = echo(connection, pattern(400_000));
    for (let n = 0; n < 3; n++) {
      await fixture.sim.run((seed * 7919 * (n + 1)) % 1_500);
      await station.restart((['shutdown', 'killed', 'unplugged'] as const)[(seed + n) % 3]!, (seed * 104_729 * (n + 1)) % 6_000);
    }
    await fixture.settle(transfer);
    expect(connection.isConnected).toBe(true);
  });
});

describe('a base station with many devices', () => {
  test.each(['shutdown', 'killed'] as const)('%s: the transfer of each of 30 continues within 5 s', { tags: ['slow'] }, async (how) => {
    fixture = new ProductFixture();
    station = await fixture.station({ connections: 400 });
    const transfers: Awaited<ReturnType<typeof beginTransfer>>[] = [];
    while (transfers.length < 30) transfers.push(await beginTransfer(`de-${transfers.length + 10}`));
    await fixture.sim.run(1_000);
    await station.restart(how, 2_000);
    const up = fixture.sim.now;
    await fixture.sim.run(5_000);
    const resumed = transfers.map(({ arrivals }) => arrivals.find((at) => at > up) ?? Number.POSITIVE_INFINITY);
    expect(Math.max(...resumed) - up).toBeLessThan(5_000);
    expect(transfers.filter(({ connection }) => !connection.isConnected)).toEqual([]);
  });

  /** A device that receives 1 kB each 50 ms. */
  async function beginTransfer(deviceId: string): Promise<{ connection: Connection; arrivals: number[] }> {
    const arrivals: number[] = [];
    const { device } = await fixture.attached({ deviceId });
    device.addStreamListener(PORT, async (incoming) => {
      const stream = incoming.accept();
      for (let part = await read(stream); part !== null; part = await read(stream)) arrivals.push(fixture.sim.now);
    });
    const connection = await fixture.connected({ DeviceId: deviceId });
    const stream = connection.openStream(PORT);
    await fixture.settle(stream.opened);
    const { clock } = fixture.sim.host(`clock of ${deviceId}`);
    const write = (): void => {
      stream.write(pattern(1_000)).then(
        () => clock.schedule(50, write),
        () => {},
      );
    };
    write();
    return { connection, arrivals };
  }
});

describe('an idle connection', () => {
  test.each(['shutdown', 'killed', 'unplugged'] as const)(
    'continues after its base station was restarted: %s',
    { tags: ['slow'] },
    async (how) => {
      await echoDevice();
      const connection = await settled();
      await fixture.sim.run(90_000);
      await station.restart(how, 10_000);
      await fixture.sim.run(KEEP_ALIVE_TIME);
      expect(await hello(connection)).toEqual({ status: 205, text: 'hello' });
      expect(deviceEvents).toEqual(['OPENED 1', 'CHANNEL_CHANGED 1']);
      expect(connection.paths()).toMatchObject({ rest: null });
    },
  );

  test('answers a request after the rest in which it was made', { tags: ['slow'] }, async () => {
    await echoDevice();
    const connection = await settled();
    await fixture.settle(station.basestation.close());
    station.kill();
    await fixture.sim.run(1_000);
    const answered = connection.get('/hello');
    await fixture.sim.run(10_000);
    await station.start();
    expect(await fixture.settle(answered)).toMatchObject({ status: 205 });
  });

  test('keeps a body in blocks under way, and a stream that is not accepted yet', { tags: ['slow'] }, async () => {
    const { device } = await echoDevice();
    const connection = await settled();
    const bodies: number[] = [];
    device.addCoapResource('PUT', '/body', ({ payload }) => {
      bodies.push(payload.length);
      return { status: 204 };
    });
    device.addStreamListener(PORT + 1, async (incoming) => {
      await new Promise<void>((resolve) => void fixture.sim.host('later').clock.schedule(45_000, resolve));
      await incoming.accept().close();
    });
    const opened = connection.openStream(PORT + 1).opened;
    await fixture.sim.run(200);
    const answered = connection.put('/body', pattern(900_000));
    await fixture.sim.run(100);
    await station.restart('shutdown', 40_000);
    const [, { status }] = await fixture.settle(Promise.all([opened, answered]));
    expect([status, bodies]).toEqual([204, [900_000]]);
  });

  test('with keep-alive options waits for the base station all the same', async () => {
    await echoDevice();
    const connection = await fixture.connected({ KeepAliveInterval: 2_000, KeepAliveRetryInterval: 500, KeepAliveMaxRetries: 4 });
    await fixture.sim.run(() => deviceEvents.includes('OPENED 1'));
    await station.restart('unplugged', 20_000);
    expect(await hello(connection)).toEqual({ status: 205, text: 'hello' });
  });

  test('asks again when the device is attached and does not answer', { tags: ['slow'] }, async () => {
    const { host } = await echoDevice();
    const client = fixture.host('phone', { machine: 'phone' });
    const connection = fixture.connection({}, fixture.client(client));
    await fixture.settle(connection.connect());
    await fixture.sim.run(() => deviceEvents.includes('OPENED 1'));
    fixture.sim.link('phone', 'station', { loss: 1 });
    await station.restart('killed', 1_000);
    await fixture.sim.run(() => station.basestation.attached === 1);
    await fixture.sim.run(1_000);
    fixture.sim.link(host, 'station', { loss: 1 });
    fixture.sim.link('phone', 'station', { delay: 10 });
    await fixture.sim.run(30_000);
    expect(connection.isConnected).toBe(true);
    fixture.sim.link(host, 'station', { delay: 10 });
    expect(await hello(connection)).toEqual({ status: 205, text: 'hello' });
  });

  test('ends with CLOSED at both ends when the base station does not return within a minute', { tags: ['slow'] }, async () => {
    const { device } = await echoDevice();
    const connection = await settled();
    await fixture.settle(station.basestation.close());
    station.kill();
    await fixture.sim.run(55_000);
    expect([connection.isConnected, deviceEvents]).toEqual([true, ['OPENED 1']]);
    const text = expect.stringContaining('the channel to the base station ended');
    expect(connection.paths()).toMatchObject({ rest: { code: 'CLOSED', text }, paths: [{ over: 'relay' }] });
    expect(device.connection(1).paths()).toMatchObject({ rest: { code: 'CLOSED', text } });
    await fixture.sim.run(10_000);
    expect([connection.isConnected, deviceEvents]).toEqual([false, ['OPENED 1', 'CLOSED 1']]);
    expect(connection.closeReason).toMatchObject({ code: 'CLOSED' });
  });

  test('sends no more requests when its application closes it while it rests', { tags: ['slow'] }, async () => {
    await echoDevice();
    const connection = await settled();
    await fixture.settle(station.basestation.close());
    station.kill();
    await fixture.sim.run(1_000);
    await fixture.settle(connection.close());
    await station.start();
    await fixture.sim.run(20_000);
    expect(station.basestation.stats()).toMatchObject({ routes: 0 });
  });
});

test.each([0, 3, 6])('a base station that stops %i ms after a client connected, and starts again, ends no connection', async (ms) => {
  await echoDevice();
  const connection = await fixture.connected({ Rendezvous: false });
  await fixture.sim.run(ms);
  await fixture.settle(station.basestation.close());
  station.kill();
  await station.start();
  expect((await fixture.coap(connection, 'GET', '/hello')).status).toBe(205);
  expect(connection.isConnected).toBe(true);
});

describe('a connection at rest is ended', () => {
  /** The device starts again, with its state lost, while the base station is away. */
  test('within a second by a device that lost its state', async () => {
    const { device } = await echoDevice({ privateKey: KEY });
    const connection = await settled();
    await fixture.settle(station.basestation.close());
    station.kill();
    await fixture.settle(device.close());
    const again = await fixture.device({ privateKey: KEY, registered: false });
    await fixture.start(again);
    await station.start();
    await fixture.until(again, 'ATTACHED');
    const attached = fixture.sim.now;
    await fixture.sim.run(() => !connection.isConnected);
    expect(fixture.sim.now - attached).toBeLessThan(1_000);
    expect(connection.closeReason).toMatchObject({ code: 'CLOSED', message: 'the device has lost the state of the connection' });
  });

  test('by a withdrawn token: TOKEN_REJECTED at once', async () => {
    const { device } = await echoDevice();
    const connection = await settled();
    await fixture.settle(station.basestation.close());
    station.kill();
    device.removeServerConnectToken(SCT);
    device.addServerConnectToken('another');
    const tokens = { hashes: [hashSecret('another')], digest: '0'.repeat(64) };
    await fixture.settle(station.store.replaceTokens(ids.productId, ids.deviceId, tokens));
    await station.start();
    const started = fixture.sim.now;
    await fixture.sim.run(() => !connection.isConnected);
    expect(connection.closeReason).toMatchObject({ code: 'TOKEN_REJECTED' });
    expect(fixture.sim.now - started).toBeLessThan(5_000);
  });

  test('by the removal of the device: UNKNOWN_DEVICE_ID at once', async () => {
    await echoDevice();
    const connection = await settled();
    await fixture.settle(station.basestation.close());
    station.kill();
    await fixture.settle(station.store.removeDevice(ids.productId, ids.deviceId));
    await station.start();
    await fixture.sim.run(() => !connection.isConnected);
    expect(connection.closeReason).toMatchObject({ code: 'UNKNOWN_DEVICE_ID' });
  });
});
