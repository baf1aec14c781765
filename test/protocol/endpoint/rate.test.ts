/** Rates of handshakes per network: what an attacker with many networks can use up, and what the next client gets. */
import { describe, expect, it } from 'vitest';
import { InitiateRates, NetworkLimiter } from '../../../protocol/endpoint/rate.ts';
import { Random } from '../../../testing/index.ts';

const RATE = 5;
const address = (index: number): string => `10.${(index >> 16) & 255}.${(index >> 8) & 255}.${index & 255}`;

/** Returns how many of `tries` at one moment are admitted. */
function through(limiter: NetworkLimiter, from: string, now: number, tries = 20): number {
  return Array.from({ length: tries }, () => limiter.take(from, now)).filter(Boolean).length;
}

describe('a limiter per network', () => {
  it('gives each address its own rate', () => {
    const limiter = new NetworkLimiter(RATE);
    expect(through(limiter, address(1), 0)).toBe(RATE);
    expect(through(limiter, address(2), 0)).toBe(RATE);
    expect(through(limiter, address(1), 1_000)).toBe(RATE);
  });

  it('treats all addresses of a /64 as one', () => {
    const limiter = new NetworkLimiter(RATE);
    expect(through(limiter, '2001:db8:1:2::1', 0)).toBe(RATE);
    expect(through(limiter, '2001:db8:1:2::2', 0)).toBe(0);
    expect(through(limiter, '2001:db8:1:3::1', 0)).toBe(RATE);
  });

  it('remembers 4,096 networks: the next one gets its full rate, and the oldest is forgotten', () => {
    const limiter = new NetworkLimiter(RATE);
    for (let index = 0; index < 4_096; index++) through(limiter, address(index), 0, RATE);
    expect(through(limiter, address(0), 0)).toBe(0);
    expect(through(limiter, address(5_000), 0)).toBe(RATE);
    expect(through(limiter, address(1), 0)).toBe(0);
    expect(through(limiter, address(0), 0)).toBe(RATE);
  });
});

describe('Initiates under load', () => {
  /**
   * Counts those that are processed in one second, of `perSecond` from `networks` addresses in turn; and whether one of
   * `honest` every 250 ms is.
   */
  function second(rates: InitiateRates, networks: number, perSecond: number, honest: string): [number, boolean[]] {
    const heard: boolean[] = [];
    let flood = 0;
    for (let sent = 0; sent < perSecond; sent++) {
      const now = (sent * 1_000) / perSecond;
      if (rates.take(address(sent % networks), now)) flood++;
      if (sent % (perSecond / 4) === perSecond / 8) heard.push(rates.take(honest, now));
    }
    return [flood, heard];
  }

  it('of a flood from 200 addresses are processed at their rates and 5,000 a second, and leave other addresses theirs', () => {
    const [flood, heard] = second(new InitiateRates(), 200, 60_000, '192.0.2.1');
    expect(heard).toEqual([true, true, true, true]);
    expect(flood).toBeGreaterThan(5_000 + 200 * 20);
    expect(flood).toBeLessThanOrEqual(5_500 + 200 * (20 + 20));
  });

  it('of a flood from invented addresses are processed 25,500 times in the first second and 15,000 times in each later one', () => {
    const rates = new InitiateRates();
    const looked = (from: number): number =>
      Array.from({ length: 60_000 }, (_, sent) => rates.take(address(sent), from + sent / 60)).filter(Boolean).length;
    expect(looked(0)).toBeLessThanOrEqual(25_500);
    const later = looked(1_000);
    expect(later).toBeGreaterThan(14_900);
    expect(later).toBeLessThanOrEqual(15_000);
  });

  it('of an address that others spoof are still processed now and then', () => {
    const rates = new InitiateRates();
    const random = new Random('feigned');
    let heard = 0;
    for (let sent = 0; sent < 60_000; sent++) {
      const taken = rates.take('192.0.2.1', sent / 60);
      if (taken && random.fraction() < 1 / 100) heard++;
    }
    expect(heard).toBeGreaterThan(30);
  });
});
