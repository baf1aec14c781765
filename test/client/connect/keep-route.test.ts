/** How the search for a route handles each answer of the base station, and when it asks again. */

import { EventEmitter, getEventListeners } from 'node:events';
import { describe, expect, test } from 'vitest';
import { type RouteSearchOptions, searchRoute } from '../../../client/connect/keep-route.ts';
import { stationError } from '../../../protocol/control/index.ts';
import { RemoteError, type SvcError } from '../../../protocol/errors/index.ts';
import { pause } from '../../../runtime/pause.ts';
import { Simulation } from '../../../testing/index.ts';

/**
 * A session that wants a route, a base station that refuses with `answer`, and the times of the requests.
 * @param takes ms until the n-th answer
 */
function searching(
  refusal: () => SvcError,
  restReason: SvcError | null = new RemoteError('CLOSED', 'the route ended'),
  takes: (request: number) => number = () => 0,
) {
  const sim = new Simulation();
  const environment = sim.host('client');
  const events = new EventEmitter();
  const asked: number[] = [];
  const ended: SvcError[] = [];
  const session = {
    restReason,
    isOpen: true,
    paths: { all: [] },
    connection: { paths: { remoteId: () => new Uint8Array(8) } },
    on: (name: string, listener: () => void) => {
      events.on(name, listener);
      return () => events.off(name, listener);
    },
    end(error: SvcError) {
      ended.push(error);
      this.isOpen = false;
    },
  };
  const connector = {
    use: async () => {
      const time = takes(asked.push(sim.now));
      if (time > 0) await pause(environment.clock, time);
      return { refused: refusal() };
    },
  };
  const stop = new AbortController();
  const search = { session, host: { environment }, options: {}, connector, keepInterval: 20_000, signal: stop.signal };
  const over = searchRoute(search as unknown as RouteSearchOptions);
  return { sim, session, asked, ended, over, stop, emit: (name: string) => events.emit(name) };
}

const answer = (status: number) => stationError({ status, payload: new Uint8Array(0) });

describe('a connection at rest', () => {
  test('ends with CLOSED when the device has lost its state', async () => {
    const { ended, over } = searching(() => answer(404));
    await over;
    expect(ended).toMatchObject([{ code: 'CLOSED', message: 'the device has lost the state of the connection' }]);
  });

  test.each([405, 500, 502])('asks again when another server answers, such as a web server: %i', async (status) => {
    const { sim, asked, ended, stop, over } = searching(() => answer(status));
    await sim.run(20_000);
    expect(ended).toEqual([]);
    expect(asked.length).toBeGreaterThan(8);
    expect(getEventListeners(stop.signal, 'abort')).toEqual([]);
    stop.abort();
    await sim.run(1);
    await over;
  });
});

test('a direct connection in a retry pause asks at once when it comes to rest', async () => {
  const { sim, session, asked, emit, stop, over } = searching(() => new RemoteError('TIMEOUT', 'no answer'), null);
  await sim.run(600_000);
  const before = asked.length;
  expect(before).toBeGreaterThan(10);
  session.restReason = new RemoteError('CLOSED', 'the path ended');
  emit('resting');
  await sim.run(1);
  expect(asked.length).toBe(before + 1);
  stop.abort();
  await sim.run(1);
  await over;
});

test('a request that took 30 s is not the next of a row of failures: the search asks again at once', async () => {
  const { sim, asked, stop, over } = searching(
    () => new RemoteError('TIMEOUT', 'no answer'),
    null,
    (n) => (n === 12 ? 30_000 : 0),
  );
  await sim.run(() => asked.length === 13, 900_000);
  expect((asked[12] as number) - (asked[11] as number)).toBeLessThanOrEqual(30_250);
  stop.abort();
  await sim.run(1);
  await over;
});
