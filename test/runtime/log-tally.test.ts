/**
 * Log lines that attackers can cause do not fill the log: they are counted, summed up once a minute, and logged one by
 * one only at debug.
 */
import { beforeEach, expect, test } from 'vitest';
import type { Log, LogLevel } from '../../platform/environment.ts';
import { LogTally } from '../../runtime/log-tally.ts';
import type { Simulation } from '../../testing/index.ts';
import { nativeSimulation } from '../support/simulation.ts';

let sim: Simulation;
let lines: [LogLevel, string, unknown][];
let tally: LogTally;
const at = (level: LogLevel) => lines.filter(([each]) => each === level).map(([, message, fields]) => [message, fields]);
const SUMMARY = 'in the last minute, not shown one by one';

beforeEach(() => {
  sim = nativeSimulation();
  lines = [];
  const write = (level: LogLevel) => (message: string, fields?: unknown) => void lines.push([level, message, fields]);
  const log = { error: write('error'), warn: write('warn'), info: write('info'), debug: write('debug'), trace: write('trace') } as Log;
  tally = new LogTally(sim.host('station').clock, log);
});

test('ten thousand of a kind are one line a minute at info, and one each at debug', async () => {
  for (let index = 0; index < 10_000; index++) tally.count('attach refused', { index });
  tally.count('connect refused');
  expect(at('info')).toEqual([]);
  await sim.run(60_000);
  expect(at('info')).toEqual([[SUMMARY, { 'attach refused': 10_000, 'connect refused': 1 }]]);
  expect(at('debug')).toHaveLength(10_001);
  await sim.run(600_000);
  expect(at('info')).toHaveLength(1);
});

test('a warning or an error is logged once a minute, and further ones are counted', async () => {
  for (let minute = 0; minute < 2; minute++) {
    for (let index = 0; index < 100; index++) tally.log.error('request failed', { index });
    tally.log.warn('a stream ended with an error', {});
    await sim.run(60_000);
  }
  expect(at('error')).toEqual([
    ['request failed', { index: 0 }],
    ['request failed', { index: 0 }],
  ]);
  expect(at('warn')).toHaveLength(2);
  expect(at('info')).toEqual([
    [SUMMARY, { 'request failed': 99 }],
    [SUMMARY, { 'request failed': 99 }],
  ]);
});

test('an event is logged once a minute for each owner, and the 101st owner of a minute is counted', async () => {
  for (let times = 0; times < 2; times++) for (let owner = 0; owner <= 100; owner++) tally.each('refused', String(owner), { owner });
  expect(at('info')).toEqual(Array.from({ length: 100 }, (_, owner) => ['refused', { owner }]));
  await sim.run(60_000);
  expect(at('info')[100]?.[1]).toMatchObject({ 'refused: 0': 1, 'refused: 99': 1, refused: 2 });
  tally.each('refused', '100', { owner: 100 });
  expect(at('info')[101]).toEqual(['refused', { owner: 100 }]);
});

test('other levels are logged unchanged', () => {
  tally.log.info('device attached');
  expect(at('info')).toEqual([['device attached', undefined]]);
});

test('flush sums up the counts, and leaves no timer', async () => {
  tally.count('attach refused');
  tally.flush();
  tally.flush();
  expect(at('info')).toEqual([[SUMMARY, { 'attach refused': 1 }]]);
  expect(await sim.run(() => false)).toBe(false);
});
