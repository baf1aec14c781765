/** A log that waits until the first line is out, and durations as people write them. */
import { expect, test } from 'vitest';
import { duration, minuteOf } from '../../cli/frame/duration.ts';
import { heldLog } from '../../cli/frame/held-log.ts';
import { stderrLog } from '../../platform/node/index.ts';

test('nothing comes out before the release, then everything in order, then each line at once', () => {
  const lines: string[] = [];
  const log = heldLog(stderrLog({ level: 'info', write: (line) => lines.push(line.replace(/^\S+ /, '').trimEnd()) }));
  log.warn('first', { port: 1 });
  log.info('second');
  log.debug('not shown');
  expect(lines).toEqual([]);
  log.release();
  log.error('third');
  log.release();
  expect(lines).toEqual(['warn first port=1', 'info second', 'error third']);
});

test('a duration has minutes, hours and days', () => {
  const parse = duration(60_000, 30 * 86_400_000, 'a time from 1m to 30d');
  expect(['1m', '30m', '24h', '7d', '30d'].map(parse)).toEqual([60_000, 1_800_000, 86_400_000, 7 * 86_400_000, 30 * 86_400_000]);
  for (const text of ['', '0m', '31d', '721h', '5', '5s', '-1h', '1.5h', '1h30m', ' 1h', '01h', '9999999m'])
    expect(() => parse(text)).toThrow('Expected a time from 1m to 30d, such as 30m, 24h or 7d.');
  expect(minuteOf('2026-01-02T03:04:05.678Z')).toBe('2026-01-02 03:04 UTC');
});
