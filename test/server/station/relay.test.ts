/** The relay's queues and resets on full sockets. */
import { createHash, createHmac } from 'node:crypto';
import { beforeEach, describe, expect, test } from 'vitest';
import { PacketType } from '../../../protocol/packet/index.ts';
import type { Path } from '../../../protocol/path.ts';
import { Relay } from '../../../server/station/relay.ts';
import type { Simulation } from '../../../testing/index.ts';
import { nativeSimulation } from '../../support/simulation.ts';

const channel = (name: string, socket = 0): { paths: { validated: Path } } => ({
  paths: { validated: { kind: 'udp', key: name, address: '192.0.2.1', port: 1, socket, local: false } },
});

let sim: Simulation;
let relay: Relay;
let full: boolean;
/** Sockets that take no packets. */
let stalled: Set<number>;
let sent: { bytes: Uint8Array; to: string }[];

beforeEach(() => {
  sim = nativeSimulation();
  full = false;
  stalled = new Set();
  sent = [];
  let counter = 0;
  const crypto = {
    hmacSha256: (key: Uint8Array, ...parts: readonly Uint8Array[]) =>
      new Uint8Array(parts.reduce((hmac, part) => hmac.update(part), createHmac('sha256', key)).digest()),
    randomBytes: (length: number) => new Uint8Array(createHash('sha256').update(String(counter++)).digest()).subarray(0, length),
  };
  relay = new Relay({
    clock: sim.host('station').clock,
    crypto: crypto as never,
    resetSecret: new Uint8Array(32),
    limits: {},
    routeIdleTimeout: 10_000,
    send: (bytes, path) => {
      const taken = !full && !stalled.has(path.socket);
      if (taken) sent.push({ bytes, to: path.key });
      return taken;
    },
  });
});

function packet(id: Uint8Array, number: number): Uint8Array {
  const bytes = new Uint8Array(60);
  bytes[0] = PacketType.ROUTE;
  bytes.set(id, 1);
  bytes[20] = number;
  return bytes;
}

describe('Relay', () => {
  test('takes only Route packets, and forwards copies, since packets are lent to it', () => {
    const [a, b] = [channel('a'), channel('b')];
    const end = relay.open(a, b)!;
    const bytes = packet(end.id, 1);
    expect(relay.intercept(bytes, a.paths.validated)).toBe(true);
    expect(sent).toHaveLength(1);
    expect(sent[0]!.to).toBe('b');
    bytes.fill(0);
    expect(sent[0]!.bytes).toEqual(packet(end.other.id, 1));
    for (const first of [0x00, 0x80, 0x84, 0x87, 0x89, 0xc0, 0xff])
      expect(relay.intercept(Uint8Array.of(first, 1, 2), a.paths.validated)).toBe(false);
    expect(relay.intercept(new Uint8Array(), a.paths.validated)).toBe(false);
  });

  test('keeps the newest 64 packets of an end, in order, while the sockets are full', async () => {
    const [a, b] = [channel('a'), channel('b')];
    const end = relay.open(a, b)!;
    full = true;
    for (let i = 0; i < 100; i++) relay.intercept(packet(end.id, i), a.paths.validated);
    await sim.run(5);
    expect(sent).toEqual([]);
    expect(relay.stats()).toMatchObject({ queued: 64, queueDropped: 36 });
    full = false;
    relay.intercept(packet(end.id, 100), a.paths.validated);
    await sim.run(5);
    expect(sent.map(({ bytes }) => bytes[20])).toEqual(Array.from({ length: 64 }, (_, i) => 37 + i));
    expect(relay.stats().queued).toBe(0);
  });

  test('keeps 4,096 waiting packets at most: those of another end are dropped until the sockets have room', {
    tags: ['slow'],
  }, async () => {
    const greedy = channel('greedy');
    const honest = relay.open(channel('honest'), channel('peer', 2))!;
    stalled = new Set([1]);
    for (let route = 0; route < 64; route++) {
      const end = relay.open(greedy, channel(`silent ${route}`, 1))!;
      for (let number = 0; number < 64; number++) relay.intercept(packet(end.id, number), greedy.paths.validated);
    }
    expect(relay.stats()).toMatchObject({ queued: 4_096, queueDropped: 0 });
    // A packet that leaves at once needs no slot.
    relay.intercept(packet(honest.id, 1), honest.channel.paths.validated);
    expect(sent.map(({ to }) => to)).toEqual(['peer']);
    full = true;
    relay.intercept(packet(honest.id, 2), honest.channel.paths.validated);
    expect(relay.stats()).toMatchObject({ queued: 4_096, queueDropped: 1 });
    full = false;
    stalled.clear();
    await sim.run(5);
    expect(relay.stats().queued).toBe(0);
    full = true;
    relay.intercept(packet(honest.id, 3), honest.channel.paths.validated);
    full = false;
    await sim.run(5);
    expect(sent.at(-1)).toMatchObject({ to: 'peer' });
    expect(sent.at(-1)!.bytes[20]).toBe(3);
  });

  test('does not delay one end for another', async () => {
    const [a, b, c] = [channel('a'), channel('b'), channel('c')];
    const [toB, toC] = [relay.open(a, b)!, relay.open(a, c)!];
    full = true;
    relay.intercept(packet(toB.id, 1), a.paths.validated);
    full = false;
    relay.intercept(packet(toC.id, 2), a.paths.validated);
    expect(sent.map(({ to }) => to)).toEqual(['c']);
    await sim.run(2);
    expect(sent.map(({ to }) => to)).toEqual(['c', 'b']);
  });

  test('does not delay packets for one socket when another one stalls', async () => {
    const [a, b, c] = [channel('a'), channel('b', 1), channel('c', 2)];
    const [toB, toC] = [relay.open(a, b)!, relay.open(a, c)!];
    stalled = new Set([1, 2]);
    for (const end of [toB, toC]) for (let i = 0; i < 3; i++) relay.intercept(packet(end.id, i), a.paths.validated);
    await sim.run(5);
    expect(relay.stats().queued).toBe(6);
    stalled.delete(2);
    await sim.run(5);
    expect(sent.map(({ bytes, to }) => [to, bytes[20]])).toEqual([
      ['c', 0],
      ['c', 1],
      ['c', 2],
    ]);
    stalled.clear();
    await sim.run(5);
    expect(sent.map(({ to }) => to)).toEqual(['c', 'c', 'c', 'b', 'b', 'b']);
  });

  test('notifies the other ends when a channel ends, and drops the packets that waited', async () => {
    const [a, b] = [channel('a'), channel('b')];
    const end = relay.open(a, b)!;
    full = true;
    relay.intercept(packet(end.id, 1), a.paths.validated);
    full = false;
    relay.closeChannel(a);
    expect(sent).toHaveLength(1);
    expect(sent[0]).toMatchObject({ to: 'b' });
    expect([...sent[0]!.bytes.subarray(0, 9)]).toEqual([0x84, ...end.other.id]);
    await sim.run(5);
    expect(sent).toHaveLength(1);
    expect(relay.stats()).toMatchObject({ queued: 0, routes: 0 });
  });

  test('drops an idle route with the packets that waited for it, and a later one has its own time', { tags: ['slow'] }, async () => {
    const [a, b] = [channel('a'), channel('b')];
    const end = relay.open(a, b)!;
    full = true;
    relay.intercept(packet(end.id, 1), a.paths.validated);
    await sim.run(9_999);
    expect(relay.stats()).toMatchObject({ routes: 1, queued: 1 });
    await sim.run(1);
    expect(relay.stats()).toMatchObject({ routes: 0, queued: 0 });
    relay.open(a, b);
    await sim.run(9_999);
    expect(relay.stats().routes).toBe(1);
    await sim.run(1);
    expect(relay.stats().routes).toBe(0);
  });

  test('answers a packet for an unknown id to its sender, once', () => {
    const [a, b] = [channel('a'), channel('b')];
    const end = relay.open(a, b)!;
    relay.close(end);
    relay.intercept(packet(end.id, 1), a.paths.validated);
    expect(sent).toMatchObject([{ to: 'a' }]);
  });

  test('forgets unused routes and keeps used ones', async () => {
    const [a, b, c] = [channel('a'), channel('b'), channel('c')];
    const used = relay.open(a, b)!;
    relay.open(a, c);
    for (let i = 0; i < 10; i++) {
      await sim.run(2_000);
      relay.intercept(packet(used.id, i), a.paths.validated);
    }
    expect(relay.stats().routes).toBe(1);
    await sim.run(20_000);
    expect(relay.stats().routes).toBe(0);
    relay.stop();
    expect(await sim.run(() => false)).toBe(false);
  });

  test('runs no timer after stop, whatever arrives', async () => {
    const [a, b] = [channel('a'), channel('b')];
    const end = relay.open(a, b)!;
    full = true;
    relay.intercept(packet(end.id, 1), a.paths.validated);
    relay.stop();
    relay.intercept(packet(end.id, 2), a.paths.validated);
    relay.open(a, channel('c'));
    expect(await sim.run(() => false)).toBe(false);
  });
});
