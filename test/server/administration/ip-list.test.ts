/** IP allow lists: addresses, prefixes and IPv4 in IPv6. */
import { describe, expect, test } from 'vitest';
import { ipAllowed, isIpEntry } from '../../../server/administration/ip-list.ts';

describe('ipAllowed', () => {
  test.each<[string, string, boolean]>([
    ['192.0.2.1', '192.0.2.1', true],
    ['192.0.2.1', '192.0.2.2', false],
    ['192.0.2.1', '::ffff:192.0.2.1', true],
    ['192.0.2.1', '::ffff:c000:201', true],
    ['::ffff:192.0.2.1', '192.0.2.1', true],
    ['::FFFF:C000:0201', '192.0.2.1', true],
    ['::ffff:192.0.2.0/120', '192.0.2.77', true],
    ['::ffff:192.0.2.0/120', '192.0.3.77', false],
    ['192.0.2.0/24', '192.0.2.255', true],
    ['192.0.2.0/24', '192.0.3.0', false],
    ['192.0.2.77/24', '192.0.2.1', true],
    ['192.0.2.1/32', '192.0.2.1', true],
    ['192.0.2.1/31', '192.0.2.0', true],
    ['0.0.0.0/0', '203.0.113.9', true],
    ['0.0.0.0/0', '2001:db8::1', false],
    ['::/0', '2001:db8::1', true],
    ['::/0', '203.0.113.9', false],
    ['2001:db8::/32', '2001:db8:ffff::1', true],
    ['2001:db8::/32', '2001:db9::1', false],
    ['2001:DB8::1', '2001:db8:0:0:0:0:0:1', true],
    ['fe80::1', 'fe80::1%eth0', true],
    ['::1', '::1', true],
    ['::1', '127.0.0.1', false],
    ['127.0.0.1', '::1', false],
  ])('%s and peer %s: %s', (entry, peer, allowed) => {
    expect(ipAllowed([entry], peer)).toBe(allowed);
    expect(ipAllowed(['198.51.100.1', entry, '2001:db8:5::/48'], peer)).toBe(allowed);
  });

  test('admits no address by an empty list, a malformed entry or a malformed peer address', () => {
    expect(ipAllowed([], '127.0.0.1')).toBe(false);
    expect(ipAllowed(['127.0.0.1/33', 'localhost', ''], '127.0.0.1')).toBe(false);
    for (const peer of ['', 'localhost', '127.0.0.1:80', '127.1', '%eth0']) expect(ipAllowed(['0.0.0.0/0', '::/0'], peer)).toBe(false);
  });
});

test.each(['1.2.3.4', '1.2.3.4/0', '1.2.3.4/32', '::', '::1/128', '2001:db8::/32', '::ffff:1.2.3.4/96'])('%s is a valid entry', (text) => {
  expect(isIpEntry(text)).toBe(true);
});

test.each([
  '',
  ' ',
  '1.2.3',
  '1.2.3.4/33',
  '1.2.3.4/',
  '1.2.3.4/-1',
  '1.2.3.4/08',
  '1.2.3.4/8/8',
  '::/129',
  'fe80::1%eth0',
  'host',
  '01.2.3.4',
  '*',
])('%j is not a valid entry', (text) => {
  expect(isIpEntry(text)).toBe(false);
});
