/** Access tokens are cached until shortly before their expiry, and fetched once at a time. */
import { beforeEach, expect, test } from 'vitest';
import { type AccessToken, TokenCache } from '../../../server/push/token-cache.ts';

let now = 0;
let fetched = 0;
let cache: TokenCache;
const clock = () => now;
const fetch = async (): Promise<AccessToken> => ({ token: `t${++fetched}`, lifetime: 3_600_000 });

beforeEach(() => {
  now = 0;
  fetched = 0;
  cache = new TokenCache();
});

test('a token is used until two minutes before it expires', async () => {
  expect(await cache.get('a', clock, fetch)).toBe('t1');
  now = 3_600_000 - 120_001;
  expect(await cache.get('a', clock, fetch)).toBe('t1');
  now += 1;
  expect(await cache.get('a', clock, fetch)).toBe('t2');
});

test('parallel callers cause one fetch; another credential has its own', async () => {
  const all = await Promise.all([cache.get('a', clock, fetch), cache.get('a', clock, fetch), cache.get('b', clock, fetch)]);
  expect(all).toEqual(['t1', 't1', 't2']);
});

test('a failure reaches all waiting callers and is not cached', async () => {
  const failing = () => Promise.reject(new Error('refused'));
  const both = await Promise.allSettled([cache.get('a', clock, failing), cache.get('a', clock, failing)]);
  const refused = { status: 'rejected', reason: new Error('refused') };
  expect(both).toEqual([refused, refused]);
  expect(await cache.get('a', clock, fetch)).toBe('t1');
});

test('a refused token is dropped, and a newer one stays', async () => {
  const first = await cache.get('a', clock, fetch);
  cache.drop('a', first);
  expect(await cache.get('a', clock, fetch)).toBe('t2');
  cache.drop('a', first);
  expect(await cache.get('a', clock, fetch)).toBe('t2');
});

test('a short-lived token is used for half its lifetime', async () => {
  await cache.get('a', clock, async () => ({ token: 'short', lifetime: 60_000 }));
  now = 29_999;
  expect(await cache.get('a', clock, fetch)).toBe('short');
  now = 30_000;
  expect(await cache.get('a', clock, fetch)).toBe('t1');
});

test('tokens of a thousand credentials are cached, and the oldest is dropped', async () => {
  for (let i = 0; i < 1_001; i++) await cache.get(`credential ${i}`, clock, fetch);
  await cache.get('credential 1000', clock, fetch);
  expect(fetched).toBe(1_001);
  await cache.get('credential 0', clock, fetch);
  expect(fetched).toBe(1_002);
});
