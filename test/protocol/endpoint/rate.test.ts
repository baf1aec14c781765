/** Handshakes a second of each network: what an attacker with many networks uses up, and what the next one gets. */
import { describe, expect, it } from 'vitest';
import { NetworkLimiter } from '../../../protocol/endpoint/rate.ts';

const RATE = 5;
const address = (index: number): string => `10.${(index >> 16) & 255}.${(index >> 8) & 255}.${index & 255}`;

/** How many of so many tries at one moment are let through. */
function through(limiter: NetworkLimiter, from: string, now: number, tries = 20): number {
  return Array.from({ length: tries }, () => limiter.take(from, now)).filter(Boolean).length;
}

describe('a limiter of networks', () => {
  it('gives each address its rate, whatever another one uses up', () => {
    const limiter = new NetworkLimiter(RATE);
    expect(through(limiter, address(1), 0)).toBe(RATE);
    expect(through(limiter, address(2), 0)).toBe(RATE);
    expect(through(limiter, address(1), 1_000)).toBe(RATE);
  });

  it('takes all addresses of a /64 for one', () => {
    const limiter = new NetworkLimiter(RATE);
    expect(through(limiter, '2001:db8:1:2::1', 0)).toBe(RATE);
    expect(through(limiter, '2001:db8:1:2::2', 0)).toBe(0);
    expect(through(limiter, '2001:db8:1:3::1', 0)).toBe(RATE);
  });

  it('remembers 4,096 networks: the next one gets its full rate, and the one seen first is forgotten', () => {
    const limiter = new NetworkLimiter(RATE);
    for (let index = 0; index < 4_096; index++) through(limiter, address(index), 0, RATE);
    expect(through(limiter, address(0), 0)).toBe(0);
    expect(through(limiter, address(5_000), 0)).toBe(RATE);
    expect(through(limiter, address(1), 0)).toBe(0);
    expect(through(limiter, address(0), 0)).toBe(RATE);
  });
});
