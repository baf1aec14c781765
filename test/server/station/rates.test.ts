/** Which connects to a device are admitted while others take all that they can. */
import { describe, expect, test } from 'vitest';
import { ConnectRates } from '../../../server/station/rates.ts';

const RATE = 5;
const rates = (): ConnectRates => new ConnectRates(RATE);
const by = (credential: string, address = 'here', device = 'pr-1.de-1') => ({ device, credential, address });

/** Returns how many of `tries` connects at one moment are admitted. */
function through(shares: ConnectRates, who: ReturnType<typeof by>, now: number, tries = 100): number {
  let count = 0;
  for (let index = 0; index < tries; index++) if (shares.take(who, now) === 0) count++;
  return count;
}

describe('one holder', () => {
  test('gets the rate', () => {
    const shares = rates();
    expect(through(shares, by('greedy'), 0)).toBe(RATE);
    expect(shares.take(by('greedy'), 0)).toBe(1);
    expect(through(shares, by('greedy'), 1_000)).toBe(RATE);
  });

  test('does not shut out another token, however long it tries', () => {
    const shares = rates();
    for (let second = 0; second < 60; second++) {
      const now = second * 1_000;
      through(shares, by('greedy'), now);
      expect(shares.take(by('honest'), now), `second ${second}`).toBe(0);
    }
  });

  test('does not shut out another address with the same token', () => {
    const shares = rates();
    for (let second = 0; second < 60; second++) {
      const now = second * 1_000;
      through(shares, by('shared', 'greedy'), now);
      expect(shares.take(by('shared', 'honest'), now), `second ${second}`).toBe(0);
    }
  });

  test('takes nothing from another device', () => {
    const shares = rates();
    through(shares, by('greedy'), 0);
    expect(shares.take(by('honest', 'here', 'pr-1.de-2'), 0)).toBe(0);
  });
});

describe('many', () => {
  test('addresses with one token do not shut out another token', () => {
    const shares = rates();
    for (let address = 0; address < 1_000; address++) shares.take(by('greedy', `address-${address}`), 0);
    expect(shares.take(by('honest'), 0)).toBe(0);
  });

  test('tokens and addresses together stay within 2.5 times the rate', () => {
    const shares = rates();
    let total = 0;
    for (let address = 0; address < 200; address++) total += through(shares, by('one', `address-${address}`), 0, 3);
    for (let token = 0; token < 200; token++) total += through(shares, by(`token-${token}`, `address-${token}`), 0, 3);
    expect(total).toBeLessThanOrEqual(2.5 * RATE);
    expect(total).toBeGreaterThanOrEqual(2 * RATE);
  });
});
