/** Routes of a base station: forwarding, ends, resets and limits, and hostile bytes. */
import { createHash, createHmac } from 'node:crypto';
import fc from 'fast-check';
import { beforeEach, describe, expect, test } from 'vitest';
import { encodeReset, PacketType, RESET_LENGTH, ROUTE_HEADER } from '../../../protocol/packet/index.ts';
import type { Path } from '../../../protocol/path.ts';
import { RouteTable } from '../../../protocol/relay/index.ts';

const secret = new Uint8Array(32).fill(7);

/** The platform's HMAC, and a seeded stream of "random" bytes. */
function crypto(seed = 'seed') {
  let counter = 0;
  return {
    hmacSha256: (key: Uint8Array, ...parts: readonly Uint8Array[]) => {
      const hmac = createHmac('sha256', key);
      for (const part of parts) hmac.update(part);
      return new Uint8Array(hmac.digest());
    },
    randomBytes: (length: number) => new Uint8Array(createHash('sha256').update(`${seed}${counter++}`).digest()).subarray(0, length),
  };
}

function channel(name: string): { paths: { validated: Path } } {
  return { paths: { validated: { kind: 'udp', key: name, address: '192.0.2.1', port: 1, socket: 0, local: false } } };
}

function packet(id: Uint8Array, length = 100): Uint8Array {
  const bytes = new Uint8Array(length).fill(0xc0);
  bytes[0] = PacketType.ROUTE;
  bytes.set(id, 1);
  return bytes;
}

const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString('hex');

let table: RouteTable;
beforeEach(() => {
  table = new RouteTable(crypto(), secret, {}, 0);
});

describe('release', () => {
  const [a, b] = [channel('a'), channel('b')];

  test('by both ends ends the route at once', () => {
    const end = table.open(a, b, 0)!;
    expect(table.release(a, end.id, 10)).toBe(false);
    expect(table.size).toBe(1);
    expect(table.release(b, end.other.id, 20)).toBe(true);
    expect([table.size, table.nextEvent()?.kind, table.nextEvent()]).toEqual([0, 'released', null]);
  });

  test('by one end ends it 3 s later; until then it forwards', () => {
    const ends = [table.open(a, b, 0)!, table.open(a, b, 0)!, table.open(a, b, 0)!];
    table.release(a, ends[0]!.id, 0);
    table.release(b, ends[1]!.other.id, 1_000);
    expect(table.nextTimeout()).toBe(3_000);
    expect(table.forward(packet(ends[0]!.other.id), b.paths.validated, 2_999)).toBe(ends[0]);
    table.handleTimeout(2_999);
    expect(table.size).toBe(3);
    table.handleTimeout(3_000);
    expect([table.size, table.nextTimeout()]).toEqual([2, 4_000]);
    table.handleTimeout(4_000);
    expect([table.size, table.nextEvent()?.end, table.nextEvent()?.end]).toEqual([1, ends[0], ends[1]!.other]);
    expect(table.forward(packet(ends[2]!.id), a.paths.validated, 4_000)).toBe(ends[2]!.other);
  });

  test('of a route that ends meanwhile does not affect another one that gets its id by chance', () => {
    const end = table.open(a, b, 0)!;
    table.release(a, end.id, 0);
    table.close(end);
    table.open(a, b, 0);
    table.handleTimeout(3_000);
    expect([table.size, table.nextEvent()]).toEqual([1, null]);
  });

  test("counts only from the end's channel, and once", () => {
    const end = table.open(a, b, 0)!;
    expect([table.release(b, end.id, 0), table.release(channel('a'), end.id, 0), table.release(a, new Uint8Array(8), 0)]).toEqual([
      false,
      false,
      false,
    ]);
    expect(table.nextTimeout()).toBeGreaterThan(3_000);
    table.release(a, end.id, 0);
    expect(table.release(a, end.id, 1_000)).toBe(false);
    expect(table.nextTimeout()).toBe(3_000);
  });
});

describe('forward', () => {
  test('swaps the ids in place and changes nothing else, both ways', () => {
    const [a, b] = [channel('a'), channel('b')];
    const end = table.open(a, b, 0)!;
    expect([end.channel, end.other.channel]).toEqual([a, b]);
    expect(hex(end.id)).not.toBe(hex(end.other.id));
    const there = packet(end.id);
    const inner = hex(there.subarray(ROUTE_HEADER));
    expect(table.forward(there, a.paths.validated, 0)).toBe(end.other);
    expect(hex(there.subarray(1, ROUTE_HEADER))).toBe(hex(end.other.id));
    expect(hex(there.subarray(ROUTE_HEADER))).toBe(inner);
    expect(table.forward(packet(end.other.id), b.paths.validated, 0)).toBe(end);
    expect(end.packets + end.other.packets).toBe(2);
    expect(table.counters).toMatchObject({ forwarded: 2, forwardedBytes: 200, unknown: 0, wrongPath: 0 });
  });

  test('drops and counts a packet from another path, unchanged', () => {
    const [a, b] = [channel('a'), channel('b')];
    const end = table.open(a, b, 0)!;
    const stolen = packet(end.id);
    expect(table.forward(stolen, channel('thief').paths.validated, 0)).toBeNull();
    expect(table.forward(stolen, b.paths.validated, 0)).toBeNull();
    expect(hex(stolen.subarray(1, ROUTE_HEADER))).toBe(hex(end.id));
    expect(table.counters.wrongPath).toBe(2);
    expect(table.answer(stolen, 0)).toBeNull();
  });

  test("follows the migration of an end's channel, not the source of a packet", () => {
    const [a, b] = [channel('a'), channel('b')];
    const ends = [table.open(a, b, 0)!, table.open(a, b, 0)!];
    const [old, fresh] = [a.paths.validated, channel('rebound').paths.validated];
    for (const end of ends) {
      expect(table.forward(packet(end.id), fresh, 0)).toBeNull();
      expect(table.forward(packet(end.id), old, 0)).toBe(end.other);
    }
    a.paths.validated = fresh;
    for (const end of ends) {
      expect(table.forward(packet(end.id), old, 0)).toBeNull();
      expect(table.forward(packet(end.id), fresh, 0)).toBe(end.other);
      expect(table.forward(packet(end.other.id), b.paths.validated, 0)!.channel.paths.validated).toBe(fresh);
    }
    expect([table.size, table.counters.wrongPath]).toEqual([2, 4]);
  });

  test('drops a Route inside a Route, and packets that are too short', () => {
    const a = channel('a');
    const end = table.open(a, channel('b'), 0)!;
    const nested = packet(end.id);
    nested[ROUTE_HEADER] = PacketType.ROUTE;
    expect(table.forward(nested, a.paths.validated, 0)).toBeNull();
    for (let length = 0; length <= ROUTE_HEADER; length++) {
      expect(table.forward(packet(end.id).subarray(0, length), a.paths.validated, 0)).toBeNull();
    }
    expect(table.counters.malformed).toBe(ROUTE_HEADER + 2);
  });

  test('limits bytes and packets to their rate, separately per direction', () => {
    const table = new RouteTable(crypto(), secret, { packetsPerSecond: 100, bytesPerSecond: 1e6 }, 0);
    const [a, b] = [channel('a'), channel('b')];
    const end = table.open(a, b, 0)!;
    const passed = (from: { paths: { validated: Path } }, id: Uint8Array, now: number, count: number, length = 50) =>
      Array.from({ length: count }, () => table.forward(packet(id, length), from.paths.validated, now)).filter(Boolean).length;
    expect(passed(a, end.id, 0, 50)).toBe(10);
    expect(passed(b, end.other.id, 0, 50)).toBe(10);
    expect(passed(a, end.id, 100, 50)).toBe(10);
    expect(passed(a, end.id, 10_000, 10, 20_000)).toBe(5);
    expect(table.counters.overRate).toBe(40 + 40 + 40 + 5);
  });
});

describe('the end of a route', () => {
  test('follows that of either channel, and names the ends to notify', () => {
    const [device, one, two] = [channel('device'), channel('one'), channel('two')];
    const first = table.open(device, one, 0)!;
    const second = table.open(device, two, 0)!;
    const unrelated = table.open(one, two, 0)!;
    expect(table.size).toBe(3);
    expect(table.closeChannel(device)).toEqual([first.other, second.other]);
    expect(table.size).toBe(1);
    expect(table.forward(packet(first.other.id), one.paths.validated, 0)).toBeNull();
    expect(table.forward(packet(unrelated.id), one.paths.validated, 0)).toBe(unrelated.other);
    expect(table.closeChannel(device)).toEqual([]);
    table.close(unrelated);
    table.close(unrelated);
    expect(table.size).toBe(0);
  });

  test('does not affect routes of another channel on the same path', () => {
    const device = channel('device');
    const old = channel('client');
    const fresh = { paths: { validated: old.paths.validated } };
    table.open(old, device, 0);
    const kept = table.open(fresh, device, 0)!;
    table.closeChannel(old);
    expect(table.forward(packet(kept.id), fresh.paths.validated, 0)).toBe(kept.other);
  });

  test('is answered with a Reset that carries the token given to the end', () => {
    const a = channel('a');
    const end = table.open(a, channel('b'), 0)!;
    const late = packet(end.id);
    expect(table.answer(late, 0)).toBeNull();
    table.close(end);
    expect(table.forward(late, a.paths.validated, 0)).toBeNull();
    const answer = table.answer(late, 0)!;
    expect(hex(answer)).toBe(hex(encodeReset({ id: end.id, token: end.resetToken })));
    expect(answer[0]).toBe(PacketType.RESET);
    expect(answer).toHaveLength(RESET_LENGTH);
    expect(hex(answer.subarray(9))).toBe(createHmac('sha256', secret).update(end.id).digest('hex').slice(0, 32));
  });

  test('is recognised by a restarted station, and by no other', () => {
    const before = new RouteTable(crypto('before'), secret, {}, 0);
    const end = before.open(channel('a'), channel('b'), 0)!;
    const after = new RouteTable(crypto('after'), secret, {}, 0);
    expect(hex(after.answer(packet(end.id), 0)!)).toBe(hex(encodeReset({ id: end.id, token: end.resetToken })));
    const stranger = new RouteTable(crypto('after'), new Uint8Array(32).fill(8), {}, 0);
    expect(stranger.answer(packet(end.id), 0)).toBeNull();
  });

  test('is answered only when the packet is larger than the answer, and at a limited rate', () => {
    const before = new RouteTable(crypto('before'), secret, {}, 0);
    const { id } = before.open(channel('a'), channel('b'), 0)!;
    const table = new RouteTable(crypto(), secret, { resetsPerSecond: 3 }, 0);
    expect(table.answer(packet(id, RESET_LENGTH), 0)).toBeNull();
    expect(table.answer(packet(id, RESET_LENGTH + 1), 0)).not.toBeNull();
    const answers = Array.from({ length: 10 }, () => table.answer(packet(id), 0)).filter(Boolean);
    expect(answers).toHaveLength(2);
    expect(table.counters.resetsSent).toBe(3);
    for (let i = 0; i < 100; i++) table.answer(packet(new Uint8Array(8).fill(i)), 1000);
    expect(table.answer(packet(id), 1000)).not.toBeNull();
  });
});

test('routes without a packet from either end for the idle timeout are ended, and used ones stay', () => {
  const table = new RouteTable(crypto(), secret, { idleTimeout: 1000 }, 0);
  const [a, b, c] = [channel('a'), channel('b'), channel('c')];
  expect(table.nextTimeout()).toBe(Number.POSITIVE_INFINITY);
  const used = table.open(a, b, 0)!;
  const idle = table.open(a, c, 0)!;
  expect(table.nextTimeout()).toBe(1000);
  table.forward(packet(used.other.id), b.paths.validated, 700);
  table.handleTimeout(999);
  expect([table.size, table.nextEvent()]).toEqual([2, null]);
  table.handleTimeout(1000);
  const { end } = table.nextEvent()!;
  // The event has either end of the route.
  expect([end, end.other].map(({ id }) => hex(id)).sort()).toEqual([idle, idle.other].map(({ id }) => hex(id)).sort());
  expect([table.size, table.nextEvent(), table.nextTimeout()]).toEqual([1, null, 1700]);
  expect(table.forward(packet(idle.id), a.paths.validated, 1000)).toBeNull();
  table.handleTimeout(1700);
  expect([table.size, table.nextEvent()?.kind, table.nextTimeout()]).toEqual([0, 'idle', Number.POSITIVE_INFINITY]);
});

test('idle routes are searched twice per idle timeout at most, however many there are', () => {
  const table = new RouteTable(crypto(), secret, { idleTimeout: 1000 }, 0);
  const [a, b] = [channel('a'), channel('b')];
  for (let at = 0; at < 100; at++) table.open(a, b, at);
  const sweeps: [number, number][] = [];
  for (let at = table.nextTimeout(); at < Number.POSITIVE_INFINITY; at = table.nextTimeout()) {
    table.handleTimeout(at);
    sweeps.push([at, table.size]);
  }
  expect(sweeps).toEqual([
    [1000, 99],
    [1500, 0],
  ]);
});

test('invented ids use up the checks: a valid lost id is answered only after that second, and live routes forward meanwhile', () => {
  const table = new RouteTable(crypto(), secret, { checksPerSecond: 10 }, 0);
  const [a, b] = [channel('a'), channel('b')];
  const [live, ended] = [table.open(a, b, 0)!, table.open(a, b, 0)!];
  table.close(ended);
  for (let made = 0; made < 100; made++) expect(table.answer(packet(new Uint8Array(8).fill(made)), 0)).toBeNull();
  expect(table.answer(packet(ended.id), 0)).toBeNull();
  expect(table.forward(packet(live.id), a.paths.validated, 0)).toBe(live.other);
  expect(table.answer(packet(ended.id), 1_000)).not.toBeNull();
});

test('limits hold over all routes and per channel', () => {
  const table = new RouteTable(crypto(), secret, { routes: 3, routesPerChannel: 2 }, 0);
  const [a, b, c, d] = [channel('a'), channel('b'), channel('c'), channel('d')];
  expect(table.open(a, b, 0)).not.toBeNull();
  const second = table.open(a, c, 0)!;
  expect(table.open(a, d, 0)).toBeNull();
  expect(table.open(d, a, 0)).toBeNull();
  expect(table.open(b, c, 0)).not.toBeNull();
  expect(table.open(d, channel('e'), 0)).toBeNull();
  table.close(second);
  expect(table.open(a, d, 0)).not.toBeNull();
});

test('any bytes from any path throw nothing, are not forwarded without an id, and get no larger answers', { tags: ['slow'] }, () => {
  const table = new RouteTable(crypto(), secret, { resetsPerSecond: 1e9, checksPerSecond: 1e9 }, 0);
  const a = channel('a');
  const end = table.open(a, channel('b'), 0)!;
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 64 }), fc.boolean(), (bytes, marked) => {
      if (marked && bytes.length > 0) bytes[0] = PacketType.ROUTE;
      const holdsId = hex(bytes.subarray(1, 9)) === hex(end.id);
      const length = bytes.length;
      const forwarded = table.forward(bytes, a.paths.validated, 0);
      const answer = table.answer(bytes, 0);
      expect(forwarded === null || holdsId).toBe(true);
      expect(answer === null || answer.length < length).toBe(true);
    }),
    { numRuns: 4_000, seed: 1 },
  );
  expect(table.counters.forwarded).toBe(0);
});

test('mutated packets of a live route are forwarded only with an intact id', { tags: ['slow'] }, () => {
  const table = new RouteTable(crypto(), secret, { packetsPerSecond: 1e12, bytesPerSecond: 1e15 }, 0);
  const a = channel('a');
  const end = table.open(a, channel('b'), 0)!;
  fc.assert(
    fc.property(fc.integer({ min: 0, max: 63 }), fc.integer({ min: 0, max: 7 }), fc.integer({ min: 0, max: 64 }), (at, bit, cut) => {
      const bytes = packet(end.id, 64);
      bytes[at] = bytes[at]! ^ (1 << bit);
      const touched = at >= 1 && at < ROUTE_HEADER;
      const forwarded = table.forward(bytes.subarray(0, cut), a.paths.validated, 0);
      expect(forwarded !== null).toBe(!touched && cut > ROUTE_HEADER && bytes[ROUTE_HEADER] !== PacketType.ROUTE);
    }),
    { numRuns: 4_000, seed: 1 },
  );
});

test('the table agrees with a naive model over random operations', { tags: ['slow'] }, () => {
  fc.assert(
    fc.property(
      fc.array(fc.record({ kind: fc.constantFrom('open', 'close', 'channel', 'send'), x: fc.nat(4), y: fc.nat(4), n: fc.nat(50) }), {
        maxLength: 60,
      }),
      (steps) => {
        const table = new RouteTable(crypto(), secret, {}, 0);
        const channels = Array.from({ length: 5 }, (_, i) => channel(`c${i}`));
        let model: { from: number; to: number; end: NonNullable<ReturnType<RouteTable['open']>> }[] = [];
        for (const { kind, x, y, n } of steps) {
          const route = model[n % Math.max(model.length, 1)];
          if (kind === 'open' && x !== y) model.push({ from: x, to: y, end: table.open(channels[x]!, channels[y]!, 0)! });
          if (kind === 'close' && route) {
            table.close(route.end);
            model = model.filter((each) => each !== route);
          }
          if (kind === 'channel') {
            const notified = table.closeChannel(channels[x]!).map((end) => end.channel.paths.validated.key);
            const hit = model.filter(({ from, to }) => from === x || to === x);
            expect(notified.sort()).toEqual(hit.map(({ from, to }) => `c${from === x ? to : from}`).sort());
            model = model.filter((each) => !hit.includes(each));
          }
          if (kind === 'send' && route)
            expect(table.forward(packet(route.end.id), channels[y]!.paths.validated, 0) !== null).toBe(y === route.from);
          expect(table.size).toBe(model.length);
        }
      },
    ),
    { numRuns: 500, seed: 1 },
  );
});
