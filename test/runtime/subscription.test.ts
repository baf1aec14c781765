/** Values that a reader takes one after the other: kept ones first, then those that arrive, then the end. */
import { getEventListeners } from 'node:events';
import { beforeEach, describe, expect, it } from 'vitest';
import { LocalError } from '../../protocol/errors/index.ts';
import { Subscription } from '../../runtime/subscription.ts';

let kept: number[];
let ends: number;
const subscribe = (signal?: AbortSignal): Subscription<number> =>
  new Subscription({ take: () => kept.shift(), ended: () => ends++ }, signal);

beforeEach(() => {
  kept = [];
  ends = 0;
});

const lost = new LocalError('STOPPED', 'lost');

async function all(values: AsyncIterable<number>): Promise<(number | string)[]> {
  const seen: (number | string)[] = [];
  try {
    for await (const value of values) seen.push(value);
  } catch (error) {
    seen.push((error as LocalError).code);
  }
  return seen;
}

describe('a subscription', () => {
  it('gives kept values, those that arrive, and the end', async () => {
    kept = [1, 2];
    const values = subscribe();
    const seen = all(values);
    for (const value of [3, 4]) {
      await new Promise((resolve) => setImmediate(resolve));
      kept.push(value);
      values.wake();
    }
    values.end('ended');
    expect(await seen).toEqual([1, 2, 3, 4]);
  });

  it.each([
    ['before an error', [1, 2]],
    ['and no value before an error', []],
  ])('gives kept values %s, which it throws once', async (_, values) => {
    kept = [...values];
    const subscription = subscribe();
    subscription.end(lost);
    expect(await all(subscription)).toEqual([...values, 'STOPPED']);
    expect(await subscription.next()).toEqual({ value: undefined, done: true });
  });

  it('throws an error where its reader waits', async () => {
    const values = subscribe();
    const seen = all(values);
    values.end(lost);
    expect(await seen).toEqual(['STOPPED']);
  });

  it('has one reader at a time', async () => {
    const values = subscribe();
    const first = values.next();
    await expect(values.next()).rejects.toMatchObject({ code: 'OPERATION_IN_PROGRESS' });
    kept.push(7);
    values.wake();
    expect(await first).toEqual({ value: 7, done: false });
  });

  it('is not woken by nothing', async () => {
    const values = subscribe();
    const first = values.next();
    values.wake();
    kept.push(7);
    values.wake();
    expect(await first).toEqual({ value: 7, done: false });
  });
});

describe('it ends once', () => {
  it.each<[string, (values: Subscription<number>) => Promise<unknown>]>([
    [
      'when the loop is left',
      async (values) => {
        for await (const _ of values) break;
      },
    ],
    [
      'with close, also again',
      async (values) => {
        await values.close();
        await values.close();
      },
    ],
    ['with await using', (values) => values[Symbol.asyncDispose]()],
  ])('%s, and drops what it kept', async (_, end) => {
    kept = [1, 2];
    const values = subscribe();
    await end(values);
    expect([ends, kept, await all(values)]).toEqual([1, [], []]);
  });

  it('with its signal, to which it listens no longer', async () => {
    const controller = new AbortController();
    const { signal } = controller;
    const values = subscribe(signal);
    const seen = all(values);
    controller.abort();
    expect(await seen).toEqual([]);
    expect([ends, getEventListeners(signal, 'abort').length]).toEqual([1, 0]);
    expect(await all(subscribe(signal))).toEqual([]);
    const other = new AbortController().signal;
    await subscribe(other).close();
    expect(getEventListeners(other, 'abort')).toHaveLength(0);
  });
});
