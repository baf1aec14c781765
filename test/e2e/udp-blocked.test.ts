/**
 * Client and device where UDP is blocked, in virtual time: they reach their base station over a WebSocket and switch
 * between both, and connections through it lose nothing.
 */
import { beforeEach, describe, expect, test } from 'vitest';
import type { Connection } from '../../client/node.ts';
import type { SimulatedHost } from '../../testing/index.ts';
import { generator } from '../support/crypto.ts';
import { HomesFixture, Transfer } from '../support/fixture/homes.ts';
import { ProductFixture } from '../support/fixture/products.ts';
import { recordEvents } from '../support/recorded-events.ts';
import { seeds } from '../support/tiered.ts';

const PORT = 7;

let fixture: ProductFixture;
let phone: SimulatedHost;
let home: SimulatedHost;

async function begin(options: ConstructorParameters<typeof ProductFixture>[0] = {}): Promise<void> {
  fixture = new ProductFixture(options);
  await fixture.station();
  phone = fixture.host('phone', { machine: 'phone' });
  home = fixture.host('home', { machine: 'home' });
}
beforeEach(() => begin());

/** A device that echoes a stream. */
async function echoDevice(): Promise<void> {
  const { device } = await fixture.attached({ environment: home });
  device.addStreamListener(PORT, async (incoming) => {
    const stream = incoming.accept();
    for (let part = await read(stream); part !== null; part = await read(stream)) await stream.write(part);
    await stream.close();
  });
  device.addCoapResource('GET', '/hello', () => ({ status: 205, payload: 'hello' }));
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

const COUNTED = Uint8Array.from({ length: 256 }, (_, at) => at);

/** Each byte is the last eight bits of its offset. */
function counted(at: number, length: number): Uint8Array {
  const bytes = new Uint8Array(length);
  for (let filled = 0, from = at & 0xff; filled < length; from = 0) {
    const part = COUNTED.subarray(from, from + length - filled);
    bytes.set(part, filled);
    filled += part.length;
  }
  return bytes;
}

/**
 * Sends bytes to the device and back for `time` ms, `size` each 100 ms.
 * @returns the longest pause between two reads, ms
 */
async function echo(connection: Connection, time: number, size = 2_000): Promise<number> {
  const stream = connection.openStream(PORT);
  await stream.opened;
  const end = fixture.sim.now + time;
  let sent = 0;
  const writing = (async () => {
    while (fixture.sim.now < end) {
      await stream.write(counted(sent, size));
      sent += size;
      await new Promise<void>((resolve) => fixture.sim.at(fixture.sim.now + 100, 0, resolve));
    }
    await stream.close();
  })();
  let got = 0;
  let [last, longest] = [fixture.sim.now, 0];
  for (let part = await read(stream); part !== null; part = await read(stream)) {
    longest = Math.max(longest, fixture.sim.now - last);
    last = fixture.sim.now;
    if (Buffer.compare(part, counted(got, part.length)) !== 0) throw new Error(`bytes behind ${got} are others`);
    got += part.length;
  }
  await writing;
  expect(got).toBe(sent);
  return longest;
}

function connection(options: Parameters<ProductFixture['connection']>[0] = {}): Connection {
  return fixture.connection({ Local: false, ...options }, fixture.client(phone));
}

const over = (each: Connection): string | undefined => each.paths().station?.over;

describe('a client whose UDP is blocked', () => {
  test('has its first CoAP answer within 3 s, and the next within 1 s', { tags: ['slow'] }, async () => {
    await echoDevice();
    fixture.sim.block(phone, 'udp');
    const client = fixture.client(phone);
    for (const limit of [3_000, 1_000]) {
      const began = fixture.sim.now;
      const each = fixture.connection({ Local: false }, client);
      await fixture.settle(each.connect());
      expect((await fixture.coap(each, 'GET', '/hello')).text).toBe('hello');
      expect(fixture.sim.now - began).toBeLessThan(limit);
      expect(over(each)).toBe('websocket');
      await fixture.settle(each.close());
      // An unused channel is closed.
      await fixture.sim.run(60_000);
    }
  });

  test('returns to UDP within a minute after it is unblocked, under a transfer', { tags: ['slow'] }, async () => {
    await echoDevice();
    const unblock = fixture.sim.block(phone, 'udp');
    const each = connection();
    await fixture.settle(each.connect());
    fixture.sim.at(fixture.sim.now + 5_000, 0, unblock);
    expect(await fixture.settle(echo(each, 66_000))).toBeLessThan(1_000);
    expect(over(each)).toBe('udp');
  });

  test('loses nothing when UDP is blocked under a transfer, and emits an event', async () => {
    await echoDevice();
    const each = connection();
    const events: string[] = [];
    recordEvents(each, events);
    await fixture.settle(each.connect());
    fixture.sim.at(fixture.sim.now + 2_000, 0, () => fixture.sim.block(phone, 'udp'));
    expect(await fixture.settle(echo(each, 10_000))).toBeLessThan(4_000);
    expect([over(each), each.isConnected]).toEqual(['websocket', true]);
    expect(events).toEqual(['open', 'path']);
  });

  test.each(['balanced', 'live'] as const)(
    'leaves a direct path, too, under a download, with the keep-alive profile %s',
    { tags: ['slow'] },
    async (profile) => {
      const fixture = await HomesFixture.open({}, { seed: 1, link: { delay: 20 } });
      const each = await fixture.direct({ KeepAliveProfile: profile });
      await fixture.sim.run(3_000);
      const transfer = await Transfer.begin(fixture, each, { bytes: 2_000_000, pace: 50, up: false });
      await fixture.sim.run(1_500);
      const since = fixture.sim.now;
      fixture.sim.block(fixture.clientHome.host, 'udp');
      await fixture.sim.run(40_000);
      // The end that only receives detects it by its next keep-alive.
      expect(transfer.stall(since)).toBeLessThan(profile === 'live' ? 17_000 : 30_000);
      await transfer.end();
      expect([each.isConnected, each.paths().station?.over]).toEqual([true, 'websocket']);
    },
  );

  const name = 'loses nothing when its WebSocket fails under a transfer: %s, %d bytes each 100 ms';
  test.each([
    ['cut', 2_000],
    ['halfOpen', 2_000],
    ['stall', 2_000],
    // So large that it accepts no further probe.
    ['stall', 100_000],
  ] as const)(name, { tags: ['slow'] }, async (fault, size) => {
    await echoDevice();
    fixture.sim.block(phone, 'udp');
    const each = connection();
    await fixture.settle(each.connect());
    fixture.sim.at(fixture.sim.now + 2_000, 0, () => fixture.sim.pipes(phone)[0]![fault]());
    expect(await fixture.settle(echo(each, 10_000, size))).toBeLessThan(4_000);
    expect([over(each), each.isConnected]).toEqual(['websocket', true]);
  });
});

describe('a device whose UDP is blocked', () => {
  test('attaches over a WebSocket, and can be connected to', async () => {
    fixture.sim.block(home, 'udp');
    await echoDevice();
    const each = connection();
    await fixture.settle(each.connect());
    expect((await fixture.coap(each, 'GET', '/hello')).text).toBe('hello');
    expect(fixture.sim.pipes(home).length).toBe(1);
  });

  test('and a client with the same lose nothing while UDP and WebSocket open and close', { tags: ['slow'] }, async () => {
    const unblock = fixture.sim.block(home, 'udp');
    await echoDevice();
    fixture.sim.block(phone, 'udp');
    const each = connection();
    await fixture.settle(each.connect());
    fixture.sim.at(fixture.sim.now + 2_000, 0, unblock);
    fixture.sim.at(fixture.sim.now + 6_000, 0, () => fixture.sim.pipes(phone)[0]!.cut());
    expect(await fixture.settle(echo(each, 66_000))).toBeLessThan(5_000);
    await fixture.sim.run(15_000);
    expect(fixture.sim.pipes(home)).toEqual([]);
  });
});

test('a client detects at once the end of a route that replaced another', async () => {
  fixture.sim.block(home, 'udp');
  await echoDevice();
  const each = connection();
  await fixture.settle(each.connect());
  for (const after of [2_000, 6_000]) fixture.sim.at(fixture.sim.now + after, 0, () => fixture.sim.pipes(home)[0]!.cut());
  expect(await fixture.settle(echo(each, 12_000))).toBeLessThan(5_000);
  expect(each.stats()).toMatchObject({ rests: 2 });
});

describe('a base station that restarts', () => {
  const name = 'is reached again over a WebSocket, and the transfer continues within 5 s: %s, %d ms away';
  test.each([
    ['killed', 7_500],
    ['shutdown', 1_000],
    ['killed', 1_000],
    ['killed', 4_000],
  ] as const)(name, { tags: ['slow'] }, async (how, away) => {
    fixture.sim.block(home, 'udp');
    await echoDevice();
    fixture.sim.block(phone, 'udp');
    const each = connection();
    await fixture.settle(each.connect());
    const transfer = echo(each, 24_000);
    await fixture.sim.run(5_000);
    await fixture.stationUnderTest.restart(how, away);
    expect(await fixture.settle(transfer)).toBeLessThan(away + 5_000);
    expect(over(each)).toBe('websocket');
  });
});

/** UDP that passes or not, and WebSockets that fail, at either end. */
function weather(seed: number, until: number): void {
  const random = generator(seed);
  const blocked = new Map<SimulatedHost, () => void>();
  const change = (): void => {
    const host = random() < 0.5 ? phone : home;
    const [pipe] = fixture.sim.pipes(host).slice(-1);
    const dice = random();
    if (dice < 0.4 && !blocked.has(host)) blocked.set(host, fixture.sim.block(host, 'udp'));
    else if (dice < 0.6) {
      blocked.get(host)?.();
      blocked.delete(host);
    } else if (dice < 0.75) pipe?.cut();
    else if (dice < 0.9) pipe?.stall();
    else pipe?.halfOpen();
    next();
  };
  const next = (): void => {
    const at = fixture.sim.now + 1_000 + 8_000 * random();
    if (at < until) fixture.sim.at(at, 0, change);
    else fixture.sim.at(until, 0, () => [...blocked.values()].map((unblock) => unblock()));
  };
  next();
}

test.each(seeds(1, 30))('nothing is lost whatever opens and closes at either end: seed %i', { tags: ['slow'] }, async (seed) => {
  await begin({ seed, link: { delay: 20, jitter: 5, loss: 0.01 } });
  await echoDevice();
  const each = connection();
  await fixture.settle(each.connect());
  weather(seed, fixture.sim.now + 40_000);
  // Mostly 2 to 8 s. An end with nothing in flight detects it by its next keep-alive.
  expect(await fixture.settle(echo(each, 42_000))).toBeLessThan(30_000);
  expect(each.isConnected).toBe(true);
});
