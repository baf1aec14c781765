/** What cuts of WebSockets show of the idle limit of proxies. */
import { expect, test } from 'vitest';
import { IdleLimit } from '../../../protocol/keep-alive/index.ts';

test.each<[string, readonly number[], number]>([
  ['nothing', [], 25_000],
  ['one cut', [10_000], 25_000],
  ['two after about the same silence: three quarters of the shorter one', [10_400, 10_000], 7_500],
  ['two after different silences', [10_000, 14_000], 25_000],
  ['two of which each is like none before, and a third one', [10_000, 14_000, 13_000], 9_750],
  ['two after more than a minute', [60_000, 60_000], 25_000],
  ['two after 5 s', [5_000, 5_000], 3_750],
  ['two after the least silence that counts', [4_000, 4_000], 3_000],
  ['two under traffic, and between two that count', [10_000, 0, 3_900, 10_000], 7_500],
  ['two, and one more', [10_000, 10_000, 7_500], 7_500],
  ['two, and two more', [10_000, 10_000, 7_500, 7_500], 5_625],
  ['two, and two after a longer silence', [10_000, 10_000, 20_000, 20_000], 7_500],
])('%s', (_, silences, interval) => {
  const limit = new IdleLimit();
  for (const silence of silences) limit.cut(silence);
  expect(limit.interval).toBe(interval);
});
