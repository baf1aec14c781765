/** The registry of connects: the table of their states, how they are found and removed, the limits of waiting ones. */
import { beforeEach, describe, expect, test, vi } from 'vitest';
import type { Session } from '../../../runtime/session/index.ts';
import { type Connect, type ConnectState, Connects } from '../../../server/station/connects.ts';
import { ids as device } from '../../support/fixture/identifiers.ts';

const other = { ...device, deviceId: 'de-2' };
let connects: Connects;
let count: number;

const limited = (waiters: number, waitersPerDevice: number, waitersPerSession: number): Connects =>
  new Connects({ waiters, waitersPerDevice, waitersPerSession });
/** By default at another address each time. */
const session = (address?: string) =>
  ({
    paths: {
      get active() {
        return { address: address ?? `198.51.100.${count++}` };
      },
    },
  }) as unknown as Session;
const begin = (where = device, from = session()): Connect =>
  connects.begin({ session: from, exchange: count++, request: where, mayWait: true });
const wait = (where = device, from = session()): boolean => connects.wait(begin(where, from));
const serve = (where = device): void => {
  for (const connect of connects.ofDevice(where)!.waiting) connects.move(connect, 'checking');
};

beforeEach(() => {
  count = 0;
  connects = limited(3, 2, 2);
});

describe('a connect', () => {
  const WAYS: Record<ConnectState, readonly ConnectState[]> = {
    checking: [],
    locating: ['locating'],
    waiting: ['locating', 'waiting'],
    reaching: ['locating', 'reaching'],
    done: ['done'],
  };
  const states = Object.keys(WAYS) as ConnectState[];
  const LEGAL = [
    ...['checking → locating', 'checking → waiting', 'checking → done'],
    ...['locating → waiting', 'locating → reaching', 'locating → done'],
    ...['waiting → checking', 'waiting → done'],
    'reaching → done',
  ];

  test.each(states.flatMap((from) => states.map((to) => [from, to] as const)))('that is %s can become %s only by the table', (from, to) => {
    const connect = begin();
    for (const state of WAYS[from]) connects.move(connect, state);
    const move = () => connects.move(connect, to);
    const isLegal = LEGAL.includes(`${from} → ${to}`);
    if (isLegal) move();
    else expect(move).toThrow(`a connect that is ${from} cannot become ${to}`);
    const state = isLegal ? to : from;
    expect([connect.state, connects.waiting]).toEqual([state, Number(state === 'waiting')]);
    expect([connects.ofDevice(device)?.connects, connects.ofDevice(device)?.waiting.size]).toEqual(
      state === 'done' ? [undefined, undefined] : [1, connects.waiting],
    );
  });

  test('ends with its request or its session, which aborts its lookup; another of them stays', () => {
    const from = session();
    const all = [begin(device, from), begin(other, from), begin()];
    for (const each of all) each.abort = vi.fn();
    const aborts = () => all.map(({ state, abort }) => [state, vi.mocked(abort!).mock.calls.length]);
    connects.cancelled(from, all[0]!.exchange);
    connects.cancelled(from, all[0]!.exchange);
    expect(aborts()).toEqual([
      ['done', 1],
      ['checking', 0],
      ['checking', 0],
    ]);
    connects.ended(from);
    connects.end(all[1]!);
    expect(aborts()[1]).toEqual(['done', 1]);
    expect([connects.ofDevice(other), connects.ofDevice(device)?.connects]).toEqual([undefined, 1]);
  });

  test('leaves the timer of its device running until the last one ends', () => {
    const [first, last] = [begin(), begin()];
    const cancel = vi.fn();
    first.device.cancelRetry = cancel;
    connects.end(first);
    expect(cancel).not.toHaveBeenCalled();
    connects.end(last);
    expect(cancel).toHaveBeenCalledOnce();
    expect(begin().device.cancelRetry).toBeNull();
  });
});

describe('waiting clients', () => {
  test('are found in order, and only for their device', () => {
    const [a, b, c] = [begin(), begin(), begin(other)];
    expect([b, a, c].map((each) => connects.wait(each))).toEqual([true, true, true]);
    expect([...connects.ofDevice(device)!.waiting]).toEqual([b, a]);
    serve();
    expect([connects.waiting, connects.ofDevice(device)!.waiting.size]).toEqual([1, 0]);
    connects.wait(a);
    expect([...connects.ofDevice(device)!.waiting]).toEqual([a]);
  });

  test('are bounded per device, per session and in all, and end with their session', () => {
    const one = session();
    expect([wait(device, one), wait(device, one), wait(other, one)]).toEqual([true, true, false]);
    expect(wait(device)).toBe(false);
    expect(wait(other)).toBe(true);
    expect(wait({ ...device, deviceId: 'de-3' })).toBe(false);
    connects.ended(one);
    expect(connects.waiting).toBe(1);
    expect(wait(device)).toBe(true);
  });

  test("of one address have a quarter of a device's slots, however others end", () => {
    connects = limited(100, 9, 9);
    const one = session('192.0.2.1');
    const full = (from = one) => [wait(device, from), wait(device, from), wait(device, from)];
    expect(full()).toEqual([true, true, false]);
    expect([wait(), wait(other, one)]).toEqual([true, true]);
    connects.ended(one);
    expect(full()).toEqual([true, true, false]);
    expect(full(session('192.0.2.1'))).toEqual([false, false, false]);
    serve();
    expect(full()).toEqual([true, true, false]);
    expect(connects.waiting).toBe(2);
  });

  test('of one address have one slot at least', () => {
    const one = session('192.0.2.1');
    expect([wait(device, one), wait(device, one)]).toEqual([true, false]);
  });
});
