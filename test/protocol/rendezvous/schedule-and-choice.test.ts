/** When a connection looks for a direct path, and which of its paths it uses. */
import { describe, expect, test } from 'vitest';
import { comparePaths, migrateAt, type PathClass, VOLUNTARY_PAUSE } from '../../../protocol/rendezvous/path-choice.ts';
import { RetrySchedule } from '../../../protocol/rendezvous/retry-schedule.ts';

const never = Number.POSITIVE_INFINITY;

/** Returns the pauses after `count` attempts that fail at once. */
function pauses(schedule: RetrySchedule, count: number, predicts = false, fraction = 0): number[] {
  return Array.from({ length: count }, () => {
    const now = schedule.nextAt;
    schedule.begin();
    expect(schedule.nextAt).toBe(never);
    schedule.failed(now, predicts, fraction);
    return schedule.nextAt - now;
  });
}

describe('attempts', () => {
  test('begin at once, and repeat after 5 s, doubling up to ten minutes', () => {
    const schedule = new RetrySchedule(1_000);
    expect(schedule.nextAt).toBe(1_000);
    expect(pauses(schedule, 9)).toEqual([5, 10, 20, 40, 80, 160, 320, 600, 600].map((seconds) => 1_000 * seconds));
  });

  test('are delayed by up to a quarter of the pause, the same fraction each time', () => {
    expect(pauses(new RetrySchedule(0), 3, false, 0.5)).toEqual([5_625, 11_250, 22_500]);
    expect(pauses(new RetrySchedule(0), 9, false, 1).at(-1)).toBe(750_000);
    expect(pauses(new RetrySchedule(0), 2, true, 0.5)).toEqual([300, 300]);
  });

  test('may be brought forward, and never put off that way', () => {
    const schedule = new RetrySchedule(0);
    pauses(schedule, 8);
    const { nextAt } = schedule;
    schedule.notAfter(nextAt + 1);
    expect(schedule.nextAt).toBe(nextAt);
    schedule.notAfter(nextAt - 1);
    expect([schedule.nextAt, pauses(schedule, 1)]).toEqual([nextAt - 1, [600_000]]);
  });

  test('that found no slot are repeated a second or two later, without longer pauses', () => {
    const schedule = new RetrySchedule(0);
    const nexts = [0, 0.5].map((fraction) => {
      schedule.crowded(10_000, fraction);
      return schedule.nextAt;
    });
    expect([nexts, pauses(schedule, 1)]).toEqual([[11_000, 11_500], [5_000]]);
  });

  test('with predicted ports are six in a row, 0.3 s apart, each time', () => {
    expect(pauses(new RetrySchedule(0), 13, true)).toEqual([300, 300, 300, 300, 300, 5_000, 300, 300, 300, 300, 300, 10_000, 300]);
  });

  test('restart with short pauses after a change, and continue with longer ones after a direct path, which may not last', () => {
    const schedule = new RetrySchedule(0);
    pauses(schedule, 4);
    schedule.restart(123);
    expect(schedule.nextAt).toBe(123);
    expect(pauses(schedule, 2)).toEqual([5_000, 10_000]);
    schedule.succeeded(1_000_000, false);
    expect(schedule.nextAt).toBe(1_600_000);
    expect(pauses(schedule, 1)).toEqual([20_000]);
    schedule.postpone(5_000_000);
    expect(schedule.nextAt).toBe(5_000_000);
  });

  test('with predicted ports restart their series after a change', () => {
    const schedule = new RetrySchedule(0);
    pauses(schedule, 4, true);
    schedule.restart(9_000);
    expect(pauses(schedule, 6, true)).toEqual([300, 300, 300, 300, 300, 5_000]);
  });

  test('end when the path is the best one, or there is nothing to try', () => {
    const schedule = new RetrySchedule(0);
    schedule.succeeded(0, true);
    expect(schedule.nextAt).toBe(never);
    schedule.restart(0);
    schedule.stop();
    expect(schedule.nextAt).toBe(never);
  });
});

describe('the choice of paths', () => {
  const order: PathClass[] = ['lan', 'ipv6', 'ipv4', 'relay'];

  test('prefers the local network to IPv6, IPv4 and the relay', () => {
    expect(order.toReversed().toSorted(comparePaths)).toEqual(order);
  });

  test('migrates to a better one 10 s after the last migration, and never to the same kind or a worse one', () => {
    for (const [i, active] of order.entries())
      for (const [j, other] of order.entries()) expect(migrateAt(active, other, 5_000)).toBe(j < i ? 5_000 + VOLUNTARY_PAUSE : never);
    expect(VOLUNTARY_PAUSE).toBe(10_000);
    expect(migrateAt('relay', 'ipv4', Number.NEGATIVE_INFINITY)).toBe(Number.NEGATIVE_INFINITY);
  });
});
