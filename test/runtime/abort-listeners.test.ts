/** A signal outlives what waits for it: each wait removes its listener, however it ends. */
import { getEventListeners } from 'node:events';
import { expect, test } from 'vitest';
import { pause } from '../../runtime/pause.ts';
import { unlessAborted } from '../../runtime/unless-aborted.ts';
import { Simulation } from '../../testing/index.ts';

const listeners = (signal: AbortSignal): number => getEventListeners(signal, 'abort').length;

test('a pause', async () => {
  const sim = new Simulation();
  const { clock } = sim.host('desk');
  const stop = new AbortController();
  const over = pause(clock, 1_000, stop.signal);
  expect(listeners(stop.signal)).toBe(1);
  await sim.settle(over);
  expect([sim.now, listeners(stop.signal)]).toEqual([1_000, 0]);
  const ended = pause(clock, 1_000, stop.signal);
  stop.abort();
  await ended;
  expect([sim.now, listeners(stop.signal)]).toEqual([1_000, 0]);
});

test.each([
  ['resolves', () => Promise.resolve('done')],
  ['rejects', () => Promise.reject(new Error('done'))],
])('a wait for a promise that %s', async (_, work) => {
  const { signal } = new AbortController();
  const waiting = unlessAborted(work(), signal);
  expect(listeners(signal)).toBe(1);
  await Promise.allSettled([waiting]);
  expect(listeners(signal)).toBe(0);
});
