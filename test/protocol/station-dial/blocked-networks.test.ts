import { expect, test } from 'vitest';
import { BlockedNetworks, networkKey } from '../../../protocol/station-dial/index.ts';

const DAY = 24 * 3_600_000;

test('a network counts as blocked for a week, or until UDP gets through', () => {
  const networks = new BlockedNetworks();
  networks.note('office', true, 0);
  expect([networks.has('office', 7 * DAY - 1), networks.has('office', 7 * DAY), networks.has('home', 0)]).toEqual([true, false, false]);
  networks.note('office', false, 1);
  expect([networks.has('office', 1), networks.size]).toEqual([false, 0]);
});

test('the oldest of sixteen networks is dropped for another', () => {
  const networks = new BlockedNetworks();
  for (let i = 0; i < 16; i++) networks.note(`n${i}`, true, i);
  networks.note('n0', true, 16);
  networks.note('n16', true, 17);
  expect([networks.size, networks.has('n0', 17), networks.has('n1', 17), networks.has('n2', 17)]).toEqual([16, true, false, true]);
});

test('a network is recognised by prefixes and routers, not by the address in it', () => {
  const key = networkKey(['192.168.1.20/24'], ['192.168.1.1']);
  expect(networkKey(['192.168.1.77/24'], ['192.168.1.1'])).toBe(key);
  expect(networkKey(['192.168.2.20/24'], ['192.168.1.1'])).not.toBe(key);
  expect(networkKey(['192.168.1.20/24'], ['192.168.1.254'])).not.toBe(key);
  expect(networkKey(['2001:db8:1:2:3:4:5:6/64'], [])).toBe(networkKey(['2001:db8:1:2:9:9:9:9/64'], []));
  expect(networkKey([], [])).toBe('');
});
