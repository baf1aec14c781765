/**
 * Which WebSocket the base station closes, and that its slot is freed at once, whether or not the peer closes its end.
 */
import { expect, it, vi } from 'vitest';
import type { Clock } from '../../../platform/environment.ts';
import { RemoteError } from '../../../protocol/errors/index.ts';
import { WebSockets } from '../../../server/station/web-sockets.ts';
import { FakePipe } from '../../runtime/websocket/fake-pipe.ts';
import { heapUsed } from '../../support/garbage.ts';

/** Only `sessions` use WebSockets, and show no credential. */
function withPlaces(places: number, perAddress = Number.POSITIVE_INFINITY) {
  let now = 0;
  let index = 0;
  let sweep = (): void => {};
  const sessions: unknown[] = [];
  const clock: Clock = {
    now: () => now,
    wallTime: () => now,
    soon: (run) => run(),
    defer: (run) => run(),
    schedule: (_, run) => {
      sweep = run;
      return () => {};
    },
  };
  const webSockets = new WebSockets({
    clock,
    tally: { count: () => {} } as never,
    host: { sockets: { adopt: () => {}, drop: () => {} }, datagrams: { receive: () => {} }, sessions } as never,
    settings: { webSockets: places, webSocketsPerAddress: perAddress, webSocketTimeout: 10_000 },
    isProved: () => false,
  });
  const open = (address = '192.0.2.1'): { pipe: FakePipe; cut: () => boolean; close: () => void } | null => {
    const release = webSockets.reserve(address);
    if (release === null) return null;
    const pipe = new FakePipe(++index, address);
    let isCut = false;
    const end = (): void => {
      isCut = true;
      release();
    };
    const { closed } = webSockets.accept(pipe, end);
    const close = (): void => {
      closed(new RemoteError('CLOSED', ''));
      release();
    };
    return { pipe, cut: () => isCut, close };
  };
  const pass = (seconds: number): void => {
    for (let second = 0; second < seconds; second++) {
      now += 1_000;
      sweep();
    }
  };
  return { webSockets, sessions, open, pass };
}

it('when all slots are taken, the oldest WebSocket is closed once older than a second, for an address that may have more', () => {
  const { webSockets, open, pass } = withPlaces(3, 2);
  const [first, second, third] = [open()!, open()!, open('192.0.2.2')!];
  expect(open('192.0.2.2')).toBeNull();
  pass(1);
  expect(open('192.0.2.2')).toBeNull();
  pass(1);
  expect(open('192.0.2.2')).not.toBeNull();
  expect([first, second, third].map(({ pipe, cut }) => [...pipe.closes, cut()])).toEqual([[1008, true], [false], [false]]);
  expect(open('192.0.2.3')).not.toBeNull();
  expect([second, third].map(({ cut }) => cut())).toEqual([true, false]);
  expect(webSockets.stats()).toMatchObject({ webSockets: 3, webSocketsRefused: 2, webSocketsUnused: 2 });
});

it('when all slots of an address are taken, its own oldest WebSocket is closed, whatever others exist', () => {
  const { open, pass } = withPlaces(10, 2);
  const [elsewhere, first, second] = [open('192.0.2.9')!, open()!, open()!];
  expect(open()).toBeNull();
  pass(2);
  const third = open()!;
  expect([elsewhere, first, second, third].map(({ cut }) => cut())).toEqual([false, true, false, false]);
  expect(open()).not.toBeNull();
  expect(second.cut()).toBe(true);
  expect(open()).toBeNull();
});

it('a WebSocket whose session has just shown a valid credential is not closed', () => {
  const { webSockets, open, pass } = withPlaces(2);
  const [first, second] = [open()!, open()!];
  pass(2);
  webSockets.proved({ paths: { all: [{ kind: 'websocket', socket: first.pipe.index }] } } as never);
  expect(open()).not.toBeNull();
  expect([first, second].map(({ cut }) => cut())).toEqual([false, true]);
  expect(open()).toBeNull();
});

it('a WebSocket whose session has shown no credential makes way', () => {
  const { sessions, open, pass } = withPlaces(1);
  const first = open()!;
  // Its part `paths` is not made for that.
  sessions.push({ connection: { allPaths: [{ kind: 'websocket', socket: first.pipe.index }] } });
  pass(2);
  expect([open()?.cut(), first.cut()]).toEqual([false, true]);
});

it('a WebSocket without a session frees its slot at once after its time', () => {
  const { webSockets, open, pass } = withPlaces(2);
  const silent = open()!;
  pass(9);
  const other = open()!;
  expect(silent.pipe.closes).toEqual([]);
  pass(1);
  expect([silent.pipe.closes, silent.cut()]).toEqual([[1008], true]);
  expect(open()).not.toBeNull();
  expect(other.cut()).toBe(false);
  expect(webSockets.stats()).toMatchObject({ webSockets: 2, webSocketsUnused: 1 });
});

it('no map has the address of a closed WebSocket', () => {
  const { open, pass } = withPlaces(2);
  const set = vi.spyOn(Map.prototype, 'set');
  const opened = open('192.0.2.7')!;
  pass(2);
  const maps = (set.mock.contexts as Map<unknown, unknown>[]).filter((_, call) => set.mock.calls[call]![0] === '192.0.2.7');
  set.mockRestore();
  expect(maps.map((map) => map.has('192.0.2.7'))).toEqual([true, true]);
  opened.close();
  expect(maps.map((map) => map.has('192.0.2.7'))).toEqual([false, false]);
});

it('closed WebSockets leave nothing of their addresses', { tags: ['slow'] }, () => {
  const { open, pass } = withPlaces(1_000);
  const round = (net: number): void => {
    const all = Array.from({ length: 1_000 }, (_, i) => open(`10.${net}.${i >> 8}.${i & 255}`)!);
    pass(2);
    for (const { close } of all) close();
  };
  round(0);
  const before = heapUsed();
  for (let net = 1; net <= 5; net++) round(net);
  expect(heapUsed() - before).toBeLessThan(500_000);
});
