/** Idle sessions: the memory that they release, without any visible effect. */
import { describe, expect, it } from 'vitest';
import { Router } from '../../../protocol/coap/index.ts';
import { IdleSweeper, type Sweepable } from '../../../runtime/session/idle-sweeper.ts';
import type { Session } from '../../../runtime/session/index.ts';
import { openedStream } from '../../support/opened-stream.ts';
import { nativeSimulation } from '../../support/simulation.ts';
import { acceptedSession, pair, testRouter } from './support.ts';

describe('idle sweeper', () => {
  function looked(answers: readonly boolean[]): Sweepable & { looks: number } {
    const one = {
      looks: 0,
      sweep: () => answers[one.looks++] ?? true,
    };
    return one;
  }

  it('checks every 5 s those that hold something, until they have released it, and then has no timer', async () => {
    const simulation = nativeSimulation();
    const sweeper = new IdleSweeper(simulation.host('one').clock);
    const [at, busy] = [looked([true]), looked([false, false, true])];
    sweeper.watch(at);
    sweeper.watch(busy);
    await simulation.run(4_999);
    expect([at.looks, busy.looks]).toEqual([0, 0]);
    await simulation.run(60_000);
    expect([at.looks, busy.looks]).toEqual([1, 3]);
    sweeper.watch(at);
    await simulation.run(5_000);
    expect([at.looks, busy.looks]).toEqual([2, 3]);
  });

  it('no longer checks an ended one', async () => {
    const simulation = nativeSimulation();
    const sweeper = new IdleSweeper(simulation.host('one').clock);
    const over = looked([]);
    sweeper.watch(over);
    sweeper.forget(over);
    await simulation.run(20_000);
    expect(over.looks).toBe(0);
  });
});

describe('a session that was idle', () => {
  it('answers and sends requests as before', async () => {
    const both = await pair();
    const accepted = await acceptedSession(both);
    accepted.router = testRouter(both.deviceEnvironment);
    for (let i = 0; i < 3; i++) {
      const response = await both.simulation.settle(both.session.request({ method: 'GET', path: '/hello' }));
      expect(response.status).toBe(205);
      await both.simulation.run(20_000);
      expect([both.session.sweep(), accepted.sweep()]).toEqual([true, true]);
    }
    expect(both.errors).toEqual([]);
  });

  it('is not swept while a request, an observation or a stream is open', { tags: ['slow'] }, async () => {
    const both = await pair();
    const accepted = await acceptedSession(both);
    const router = testRouter(both.deviceEnvironment).on('GET', '/watched', () => ({ status: 205, observe: true }));
    accepted.router = router;
    const asking = both.session.request({ method: 'GET', path: '/slow' });
    await both.simulation.run(1_000);
    expect([both.session.sweep(), accepted.sweep()]).toEqual([false, false]);
    await both.simulation.settle(asking);
    both.session.observe({ method: 'GET', path: '/watched' }, () => {});
    await both.simulation.run(60_000);
    expect([both.session.sweep(), accepted.sweep()]).toEqual([false, false]);
    const other = await both.simulation.settle(both.client.dials.connect({ address: '10.0.0.1', port: 5592, name: 'device' }));
    await both.simulation.run(() => both.accepted.length > 1);
    both.accepted.at(-1)!.onStream = (incoming) => void incoming.accept();
    const stream = await both.simulation.settle(openedStream(other, 1));
    await both.simulation.run(60_000);
    expect(other.sweep()).toBe(false);
    await both.simulation.settle(stream.write(new Uint8Array(100)));
    expect(both.errors).toEqual([]);
  });

  it('does not take a later notification of an old request for the answer of a new one', async () => {
    const both = await pair();
    const accepted = await acceptedSession(both);
    const exchanges: number[] = [];
    const answers: (() => void)[] = [];
    accepted.router = new Router<Session>().on('GET', '/once', ({ exchange }) => {
      exchanges.push(exchange);
      return new Promise((resolve) => answers.push(() => resolve({ status: 205, payload: Uint8Array.of(exchange) })));
    });
    const ask = () => both.session.request({ method: 'GET', path: '/once' });
    const first = ask();
    await both.simulation.run(100);
    answers[0]!();
    await both.simulation.settle(first);
    await both.simulation.run(60_000);
    const second = ask();
    await both.simulation.run(100);
    expect(accepted.notify(exchanges[0]!, { status: 205, payload: Uint8Array.of(99) })).toBe(false);
    answers[1]!();
    expect((await both.simulation.settle(second)).payload).toEqual(Uint8Array.of(exchanges[1]!));
    expect(exchanges[1]).not.toBe(exchanges[0]);
  });
});
