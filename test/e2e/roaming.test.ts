/**
 * A client or a device that changes its uplink or sleeps, in virtual time: pending operations continue (PROTOCOL.md
 * §6).
 *
 * @module-tag slow
 */
import { afterAll, describe, expect, test } from 'vitest';
import type { Connection } from '../../client/node.ts';
import { type Homes, HomesFixture, Transfer } from '../support/fixture/homes.ts';
import { Uplinks } from '../support/fixture/uplinks.ts';
import { seeds } from '../support/tiered.ts';

/** ms from a change to its detection at most: one check each second. */
const NOTICE = 1_000;
/** ms of stall after the detection (95th percentile). */
const STALL = 1_000;

const stalls = new Map<string, number[]>();

afterAll(() => {
  if (process.env.SVC_TEST_FIGURES === undefined) return;
  for (const [what, values] of stalls) {
    values.sort((a, b) => a - b);
    const at = (share: number): string => values[Math.min(values.length - 1, Math.floor(share * values.length))]!.toFixed(0);
    process.stdout.write(`${what}: n ${values.length}, p50 ${at(0.5)}, p95 ${at(0.95)}, most ${at(1)} ms\n`);
  }
});

function note(what: string, stall: number): number {
  stalls.set(what, [...(stalls.get(what) ?? []), stall]);
  return stall;
}

/** ms between two writes of a transfer, and bytes a second of writes that follow each other after 1 ms. */
const PACE = 50;
const BYTES_OF_WRITES = 2_000_000;

interface Scene {
  readonly fixture: HomesFixture;
  readonly connection: Connection;
  readonly uplinks: Uplinks;
  readonly transfer: Transfer;
}

interface SceneOptions {
  readonly side: 'client' | 'device';
  readonly isDirect: boolean;
  /** Bytes go to the device. */
  readonly up: boolean;
  readonly seconds: number;
  readonly delay?: number;
  readonly seed?: number;
  readonly homes?: Homes;
  readonly pace?: number;
}

async function scene({ side, isDirect, up, seconds, delay = 20, seed = 1, homes = {}, pace = PACE }: SceneOptions): Promise<Scene> {
  const fixture = await HomesFixture.open(homes, { seed, link: { delay } });
  const uplinks = new Uplinks(fixture, side);
  const connection = isDirect ? await fixture.direct() : await fixture.relayed({ Rendezvous: false });
  await fixture.sim.run(3_000);
  const transfer = await Transfer.begin(fixture, connection, { bytes: Math.round((seconds * BYTES_OF_WRITES) / pace), pace, up });
  await fixture.sim.run(1_500);
  return { fixture, connection, uplinks, transfer };
}

const sides = ['client', 'device'] as const;
const ways = [true, false].flatMap((isDirect) => [true, false].map((up) => ({ isDirect, up })));
const cells = sides.flatMap((side) =>
  ways.map((way) => ({ side, ...way, text: `${side} ${way.isDirect ? 'direct' : 'relayed'} ${way.up ? 'up' : 'down'}` })),
);

/** In the quick tier are the first and the last of a table. */
const ends = <T>(table: readonly T[]): readonly T[] => [table[0]!, table.at(-1)!];

describe('a change from Wi-Fi to phone, to cable and back', () => {
  async function stallsBriefly({ text, ...options }: (typeof cells)[number]): Promise<void> {
    const { fixture, uplinks, transfer } = await scene({ ...options, seconds: 24 });
    for (const uplink of ['phone', 'cable', 'wifi'] as const) {
      await fixture.sim.run(500 + 137 * uplink.length);
      const since = fixture.sim.now;
      uplinks.use(uplink);
      await fixture.sim.run(4_000);
      expect(note(text, transfer.stall(since)), uplink).toBeLessThan(NOTICE + STALL);
    }
    await transfer.end();
    expect(fixture.clientEvents).not.toContain('close');
  }
  const name = 'under a transfer stalls it for at most a second after its detection ($text)';
  test.each(ends(cells))(name, stallsBriefly);
  test.each(cells.slice(1, -1))(name, { tags: ['slow'] }, stallsBriefly);

  test.each(sides)('where UDP is blocked everywhere, stalls a %s as long: another WebSocket is opened at once', async (side) => {
    const fixture = await HomesFixture.open({}, { seed: 1, link: { delay: 20 } });
    const uplinks = new Uplinks(fixture, side);
    fixture.sim.block(fixture[`${side}Home`].host, 'udp');
    await fixture.sim.run(60_000);
    const connection = await fixture.relayed({ Rendezvous: false });
    const transfer = await Transfer.begin(fixture, connection, { bytes: 500_000, pace: PACE, up: true });
    await fixture.sim.run(1_500);
    for (const uplink of ['phone', 'cable'] as const) {
      const since = fixture.sim.now;
      uplinks.use(uplink);
      await fixture.sim.run(4_137);
      expect(note(`${side} over a WebSocket`, transfer.stall(since)), uplink).toBeLessThan(NOTICE + STALL);
    }
    await transfer.end();
    expect(fixture.clientEvents).toEqual(['open', ...(side === 'client' ? ['path', 'path'] : [])]);
  });

  const gaps = sides.flatMap((side) => [
    { side, text: `no link for 5 s: ${side}`, leaves: true, gap: 5_000, next: 'cable' as const },
    { side, text: `a dead phone for 1.5 s: ${side}`, leaves: false, gap: 1_500, next: 'cable' as const },
    { side, text: `a phone that is dead for 6 s, and then works: ${side}`, leaves: false, gap: 6_000, next: 'phone' as const },
  ]);

  async function survivesGap({ side, leaves, gap, next }: (typeof gaps)[number]): Promise<void> {
    const fixture = await HomesFixture.open({}, { seed: 1, link: { delay: 20 } });
    const uplinks = new Uplinks(fixture, side);
    const home = fixture[`${side}Home`].host;
    fixture.sim.block(home, 'udp');
    await fixture.sim.run(60_000);
    const connection = await fixture.relayed({ Rendezvous: false });
    const transfer = await Transfer.begin(fixture, connection, { bytes: 500_000, pace: PACE, up: true });
    await fixture.sim.run(1_500);
    const unblock = leaves ? () => {} : fixture.sim.block(home, 'tcp');
    if (leaves) uplinks.leave();
    else uplinks.use('phone');
    await fixture.sim.run(gap);
    const since = fixture.sim.now;
    unblock();
    uplinks.use(next);
    await fixture.sim.run(6_000);
    expect(note(`${side} over a WebSocket, after a gap`, transfer.stall(since))).toBeLessThan(4_000);
    await transfer.end();
    expect(fixture.clientEvents).not.toContain('close');
  }
  const ofGap =
    'where UDP is blocked everywhere, with a gap between the two networks, stalls no longer than the next check and one attempt ($text)';
  test.each(gaps.slice(-1))(ofGap, survivesGap);
  test.each(gaps.slice(0, -1))(ofGap, { tags: ['slow'] }, survivesGap);

  test('where UDP is blocked everywhere, through networks that carry nothing, replaces a channel that has no connection ids left', async () => {
    const fixture = await HomesFixture.open({}, { seed: 1, link: { delay: 20 } });
    const uplinks = new Uplinks(fixture, 'client');
    fixture.sim.block(fixture.clientHome.host, 'udp');
    await fixture.sim.run(60_000);
    const connection = await fixture.relayed({ Rendezvous: false });
    const transfer = await Transfer.begin(fixture, connection, { bytes: 500_000, pace: PACE, up: true });
    await fixture.sim.run(1_500);
    const unblock = fixture.sim.block(fixture.clientHome.host, 'tcp');
    for (const uplink of ['phone', 'cable', 'phone', 'cable', 'phone'] as const) {
      uplinks.use(uplink);
      await fixture.sim.run(1_500);
    }
    const since = fixture.sim.now;
    unblock();
    uplinks.use('wifi');
    await fixture.sim.run(10_000);
    expect(transfer.stall(since)).toBeLessThan(6_000);
    await transfer.end();
    expect(fixture.clientEvents).not.toContain('close');
  });

  test('from a network that has begun to block UDP to one that does not, sends from a port that was not seen before', async () => {
    const { fixture, connection, uplinks, transfer } = await scene({ side: 'client', isDirect: false, up: true, seconds: 24 });
    const ports = new Set<number>();
    fixture.sim.onPacket = ({ from, to, source }) => {
      if (from === 'client' && to !== 'client') ports.add(source.port);
      return undefined;
    };
    await fixture.sim.run(1_000);
    const unblock = fixture.sim.block(fixture.clientHome.host, 'udp');
    await fixture.sim.run(10_000);
    expect(connection.paths().station?.over).toBe('websocket');
    const before = [...ports];
    unblock();
    uplinks.use('cable');
    await fixture.sim.run(3_000);
    expect(connection.paths().station?.over).toBe('udp');
    ports.clear();
    await transfer.end();
    expect([before.length, before.filter((port) => ports.has(port))]).toEqual([1, []]);
  });

  test.each(sides)('is reported as CHANNEL_CHANGED by the %s that is relayed', async (side) => {
    const { fixture, uplinks, transfer } = await scene({ side, isDirect: false, up: true, seconds: 6 });
    const before = fixture.clientEvents.length;
    uplinks.use('cable');
    await transfer.end();
    expect(fixture.clientEvents.slice(before)).toEqual(side === 'client' ? ['path'] : []);
  });

  test('uses a port and connection ids that were not seen in the old network', async () => {
    const { fixture, uplinks, transfer } = await scene({ side: 'client', isDirect: true, up: true, seconds: 8 });
    const seen = { before: new Set<string>(), between: new Set<string>(), after: new Set<string>() };
    let now: keyof typeof seen = 'before';
    fixture.sim.onPacket = ({ from, to, data, source }) => {
      if (from === 'client' && to !== 'client') {
        seen[now].add(`port ${source.port}`);
        if (data[0]! >= 0xc0) seen[now].add(`id ${Buffer.from(data.subarray(1, 9)).toString('hex')}`);
      }
      return undefined;
    };
    await fixture.sim.run(1_000);
    now = 'between';
    uplinks.use('cable');
    await fixture.sim.run(3_000);
    now = 'after';
    await transfer.end();
    expect(fixture.atDevice.type).toBe('DIRECT');
    expect([...seen.after].filter((each) => seen.before.has(each))).toEqual([]);
    expect(seen.after.size).toBeGreaterThan(1);
  });

  test('closes the old socket once nothing uses it, however often', async () => {
    const { fixture, uplinks, transfer } = await scene({ side: 'client', isDirect: true, up: true, seconds: 32 });
    for (let n = 0; n < 4; n++) {
      await fixture.sim.run(6_000);
      uplinks.use(n % 2 === 0 ? 'cable' : 'phone');
    }
    await transfer.end();
    await fixture.sim.run(20_000);
    const ports = new Set<number>();
    const stop = fixture.sim.now;
    // STUN has more sockets of its own.
    fixture.sim.onTrace = ({ from, source, data }) => void (from === 'client' && data[0]! >= 0x80 && ports.add(source.port));
    await fixture.sim.run(60_000);
    fixture.sim.onTrace = undefined;
    expect(fixture.sim.now).toBeGreaterThan(stop);
    expect(ports.size).toBe(1);
  });
});

describe('a change that is reverted', () => {
  test('within the round trip costs nothing: the previous paths are in use', async () => {
    const { fixture, uplinks, transfer } = await scene({ side: 'client', isDirect: false, up: true, seconds: 8, delay: 400 });
    const before = fixture.clientEvents.length;
    // No packet passes in the other network.
    const reverted = fixture.sim.now;
    fixture.sim.link('client', 'station', { loss: 1 });
    uplinks.use('cable');
    await fixture.sim.run(1_900);
    fixture.sim.link('client', 'station', { delay: 400 });
    uplinks.use('wifi');
    await transfer.end();
    expect(transfer.stall(reverted)).toBeLessThan(1_900 + NOTICE + 2_000);
    expect(fixture.clientEvents.slice(before)).toEqual([]);
  });

  test.each(sides)('repeatedly harms nothing: an interface of the %s that flaps', async (side) => {
    const { fixture, uplinks, transfer } = await scene({ side, isDirect: true, up: true, seconds: 30 });
    for (let n = 0; n < 20; n++) {
      uplinks.use(n % 2 === 0 ? 'cable' : 'wifi');
      await fixture.sim.run(100 + 90 * n);
    }
    const since = fixture.sim.now;
    await transfer.end();
    expect(transfer.stall(since)).toBeLessThan(NOTICE + STALL);
    expect(fixture.clientEvents).not.toContain('close');
  });

  test('after a link was down for a while, and is up again unchanged, has its paths probed at once', async () => {
    const { fixture, uplinks, transfer } = await scene({ side: 'client', isDirect: false, up: false, seconds: 10 });
    uplinks.leave();
    await fixture.sim.run(20_000);
    uplinks.use('wifi');
    const since = fixture.sim.now;
    await transfer.end();
    expect(transfer.stall(since)).toBeLessThan(NOTICE + STALL);
  });
});

describe('a sleep', () => {
  const sleeps = cells.flatMap((cell) => [5_000, 60_000].map((time) => ({ ...cell, time })));
  async function isOverSoon({ side, time, text, ...way }: (typeof sleeps)[number]): Promise<void> {
    const homes = { clientBox: { timeout: 30_000, streamTimeout: 30_000 }, deviceBox: { timeout: 30_000, streamTimeout: 30_000 } };
    const { fixture, transfer } = await scene({ side, ...way, seconds: 6, homes });
    const { host } = fixture[`${side}Home`];
    host.sleep(time);
    await fixture.sim.run(time);
    const since = fixture.sim.now;
    await transfer.end();
    expect(note(`wake ${text}`, transfer.stall(since))).toBeLessThan(2_000);
    expect(fixture.clientEvents).not.toContain('close');
  }
  const name = 'of $time ms, after which a NAT has expired its mappings, is over within 2 s ($text)';
  test.each(ends(sleeps))(name, isOverSoon);
  test.each(sleeps.slice(1, -1))(name, { tags: ['slow'] }, isOverSoon);

  async function endsConnection(side: 'client' | 'device'): Promise<void> {
    const { fixture, connection } = await scene({ side, isDirect: false, up: true, seconds: 1 });
    const { host } = fixture[`${side}Home`];
    host.sleep(600_000);
    await fixture.sim.run(600_000);
    await fixture.runUntil(() => !connection.isConnected, 5_000);
    expect(connection.closeReason?.code).toBe(side === 'client' ? 'CLOSED' : 'TIMEOUT');
    await fixture.sim.run(3_000);
    const next = await fixture.relayed({ Rendezvous: false });
    expect((await fixture.coap(next, 'GET', '/hello')).status).toBe(205);
  }
  const ofTenMinutes = 'of ten minutes ends a connection of the %s with a reason, and the next one opens in seconds';
  test.each(['device'] as const)(ofTenMinutes, endsConnection);
  test.each(['client'] as const)(ofTenMinutes, { tags: ['slow'] }, endsConnection);
});

test.each([365 * 86_400_000, -365 * 86_400_000])('a wall clock that is set by %d ms costs one probe of each path', async (by) => {
  const { fixture, transfer } = await scene({ side: 'client', isDirect: true, up: true, seconds: 6 });
  const { host } = fixture.clientHome;
  const before = fixture.clientEvents.length;
  const since = fixture.sim.now;
  host.setWallTime(host.clock.wallTime() + by);
  await transfer.end();
  expect(transfer.stall(since)).toBeLessThan(200);
  expect(fixture.clientEvents.slice(before)).toEqual([]);
});

async function losesNothing(seed: number): Promise<void> {
  let state = seed;
  const below = (limit: number): number => {
    state = (state * 1_103_515_245 + 12_345) & 0x7fff_ffff;
    return (state >> 8) % limit;
  };
  const [isDirect, up] = [below(2) > 0, below(2) > 0];
  const { fixture, uplinks, transfer } = await scene({ side: 'client', isDirect, up, seconds: 40, delay: 5 + below(60), seed, pace: 200 });
  const others = new Uplinks(fixture, 'device', below(2) > 0 ? 'port' : 'random');
  for (let n = 0; n < 6; n++) {
    await fixture.sim.run(500 + below(6_000));
    const mover = below(2) > 0 ? uplinks : others;
    const what = below(5);
    if (what === 0) {
      mover.leave();
      await fixture.sim.run(below(20_000));
      mover.use(mover.now);
    } else if (what === 1) fixture[mover === uplinks ? 'clientHome' : 'deviceHome'].host.sleep(below(30_000));
    else mover.use((['wifi', 'phone', 'cable'] as const)[below(3)]!);
  }
  await transfer.end();
  expect(fixture.clientEvents).not.toContain('close');
}
test.each(seeds(1, 1))('changes and sleeps of both ends at random: every byte once, in order (seed %i)', losesNothing);
test.each(seeds(2, 30))('changes and sleeps of both ends at random: every byte once, in order (seed %i)', { tags: ['slow'] }, losesNothing);
