/** The keep-alive numbers of a connection. */
import { describe, expect, test } from 'vitest';
import { isKeepAliveProfile, type KeepAliveFacts, keepAliveOf, keepAliveProfiles, longestOf } from '../../../protocol/keep-alive/index.ts';

const facts: KeepAliveFacts = { profile: 'balanced', learned: null, idleTimeout: 180_000 };
const numbers = (change: Partial<KeepAliveFacts>): string => {
  const { interval, retryInterval, maxRetries } = keepAliveOf({ ...facts, ...change });
  return `${interval} ${retryInterval} ${maxRetries}`;
};

test.each<[string, Partial<KeepAliveFacts>, string]>([
  ['nothing is known', {}, '25000 2000 15'],
  ['nothing is known, and little is wanted', { profile: 'eco' }, '25000 2000 15'],
  ['live does not use a learned interval', { profile: 'live' }, '10000 1000 5'],
  ['a learned interval', { learned: 40_000 }, '40000 2000 15'],
  ['balanced has a maximum', { learned: 110_000 }, '55000 2000 15'],
  ['eco has a maximum', { learned: 200_000, profile: 'eco' }, '114000 2000 15'],
  ['live has a maximum', { learned: 200_000, profile: 'live' }, '10000 1000 5'],
  ['a set interval has precedence', { learned: 20_000, explicit: { interval: 70_000 } }, '70000 2000 15'],
  ['one number that was set', { explicit: { maxRetries: 3 } }, '25000 2000 3'],
  [
    'numbers of the base station are an upper bound',
    { learned: 50_000, bound: { interval: 30_000, retryInterval: 3_000, maxRetries: 4 } },
    '30000 2000 4',
  ],
  ['and raise nothing', { learned: 20_000, bound: { interval: 30_000, retryInterval: 3_000, maxRetries: 40 } }, '20000 2000 15'],
  ['over a WebSocket', { learned: 110_000, profile: 'eco', webSocketInterval: 25_000 }, '25000 2000 15'],
  ['over a WebSocket an interval learned for UDP does not count', { learned: 16_000, webSocketInterval: 25_000 }, '25000 2000 15'],
  ['over a WebSocket with a set number', { explicit: { interval: 60_000 }, webSocketInterval: 7_500 }, '7500 2000 15'],
  ['live over a WebSocket that is cut early', { profile: 'live', webSocketInterval: 7_500 }, '7500 1000 5'],
  ['a peer that forgets after 90 s', { learned: 110_000, profile: 'eco', idleTimeout: 90_000 }, '55000 2000 15'],
  ['a peer that never forgets', { learned: 110_000, profile: 'eco', idleTimeout: 0 }, '110000 2000 15'],
  ['a peer that forgets sooner than the retries last', { idleTimeout: 30_000 }, '10000 2000 15'],
])('%s', (_, change, expected) => {
  expect(numbers(change)).toBe(expected);
});

test('no profile outlasts the idle timeout of 180 s with all its retries', () => {
  for (const profile of keepAliveProfiles) {
    const { interval, retryInterval, maxRetries } = keepAliveOf({ ...facts, profile, learned: 1e6 });
    expect(interval).toBe(longestOf(profile));
    expect(interval + retryInterval * maxRetries).toBeLessThan(180_000);
  }
});

describe('profiles', () => {
  test('have names', () => {
    expect(keepAliveProfiles).toEqual(['live', 'balanced', 'eco']);
    expect(['live', 'eco', 'Eco', '', undefined, {}].map(isKeepAliveProfile)).toEqual([true, true, false, false, false, false]);
  });
});
