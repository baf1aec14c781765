/** Addresses in their canonical form, prefixes, nearness, and which count as one network. */
import { SocketAddress } from 'node:net';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  canonicalAddress,
  inPrefix,
  isLinkLocal,
  isLoopback,
  isNear,
  networkOf,
  parseAddress,
  parsePrefix,
} from '../../protocol/address.ts';

const bytes = (text: string) => parseAddress(text)!;

describe('canonicalAddress', () => {
  // RFC 5952 §1, §4 and §5
  it.each([
    ['2001:0db8:0000:0000:0001:0000:0000:0001', '2001:db8::1:0:0:1'],
    ['2001:db8:0:0:0:0:2:1', '2001:db8::2:1'],
    ['2001:db8:0:1:1:1:1:1', '2001:db8:0:1:1:1:1:1'],
    ['2001:0:0:1:0:0:0:1', '2001:0:0:1::1'],
    ['2001:DB8::AAAA', '2001:db8::aaaa'],
    ['0:0:0:0:0:0:0:0', '::'],
    ['::ffff:192.0.2.1', '192.0.2.1'],
    ['::ffff:c000:201', '192.0.2.1'],
    ['1:2:3:4:5:6:192.0.2.1', '1:2:3:4:5:6:c000:201'],
    ['fe80::1%eth0', 'fe80::1%eth0'],
    ['127.0.0.1', '127.0.0.1'],
  ])('%s is %s', (text, canonical) => expect(canonicalAddress(text)).toBe(canonical));

  it.each([
    '',
    'localhost',
    '1.2.3',
    '1.2.3.4.5',
    '01.2.3.4',
    '256.1.1.1',
    '1.1.1.256',
    '1.1.1.1000',
    '00.1.2.3',
    '1.2.3.00',
    '1..2.3',
    '.1.2.3',
    '1.2.3.',
    '1.2.3.4 ',
    '+1.2.3.4',
    '1.2.3.a',
    '1.2.3.4%eth0',
    ':',
    ':::',
    '1::2::3',
    '1:2:3:4:5:6:7',
    '1:2:3:4:5:6:7:8:9',
    '1:2:3:4:5:6:7::8',
    '12345::',
    'g::',
    '1.2.3.4::',
    '::1.2.3.4.5',
    '[::1]',
    ' ::1',
  ])('refuses %j', (text) => expect(canonicalAddress(text)).toBeNull());

  it('parses every IPv4 address and formats it again', () => {
    const byte = fc.integer({ min: 0, max: 255 });
    fc.assert(
      fc.property(fc.tuple(byte, byte, byte, byte), (four) => {
        expect([...bytes(four.join('.'))]).toEqual(four);
        expect(canonicalAddress(four.join('.'))).toBe(four.join('.'));
      }),
    );
  });

  it('agrees with the system on any address', () => {
    const word = fc.oneof(fc.constant(0), fc.integer({ min: 0, max: 0xffff }));
    fc.assert(
      fc.property(fc.array(word, { minLength: 8, maxLength: 8 }), (words) => {
        const text = words.map((value) => value.toString(16)).join(':');
        const system = new SocketAddress({ address: text, family: 'ipv6' }).address;
        // the system writes ::ffff:0:0/96 and ::/96 with dots
        if (!system.includes('.')) expect(canonicalAddress(text)).toBe(system);
        expect(canonicalAddress(system)).toBe(canonicalAddress(text));
      }),
    );
  });
});

describe('prefixes', () => {
  it('compares the leading bits', () => {
    const prefix = parsePrefix('192.0.2.128/25')!;
    expect(inPrefix(bytes('192.0.2.200'), prefix)).toBe(true);
    expect(inPrefix(bytes('192.0.2.127'), prefix)).toBe(false);
    expect(inPrefix(bytes('2001:db8::1'), parsePrefix('2001:db8::/32')!)).toBe(true);
    expect(inPrefix(bytes('2001:db9::1'), parsePrefix('2001:db8::/32')!)).toBe(false);
    expect(inPrefix(bytes('::1'), prefix)).toBe(false);
    expect(inPrefix(bytes('8.8.8.8'), parsePrefix('0.0.0.0/0')!)).toBe(true);
    expect(inPrefix(bytes('10.0.0.1'), parsePrefix('10.0.0.1')!)).toBe(true);
    expect(inPrefix(bytes('10.0.0.2'), parsePrefix('10.0.0.1')!)).toBe(false);
  });

  it.each(['10.0.0.0/33', '::/129', '10.0.0.0/', '10.0.0.0/-1', '10.0.0.0/8/8', 'x/8', '10.0.0.0/8 '])('refuses %j', (text) =>
    expect(parsePrefix(text)).toBeNull(),
  );

  it('knows loopback and link-local', () => {
    expect([bytes('127.9.9.9'), bytes('::1')].every(isLoopback)).toBe(true);
    expect([bytes('128.0.0.1'), bytes('::'), bytes('1::1')].some(isLoopback)).toBe(false);
    expect([bytes('169.254.1.1'), bytes('fe80::1%eth0'), bytes('febf::1')].every(isLinkLocal)).toBe(true);
    expect([bytes('169.253.1.1'), bytes('fec0::1'), bytes('fd00::1')].some(isLinkLocal)).toBe(false);
  });

  it('calls near an address on this host or on a link of it', () => {
    const own = [parsePrefix('192.168.1.7/24')!, parsePrefix('fd00::2/64')!];
    expect(['127.0.0.1', '169.254.0.1', '192.168.1.200', 'fd00::99', 'fe80::1'].every((address) => isNear(address, own))).toBe(true);
    expect(['192.168.2.1', '8.8.8.8', 'fd00:1::1', 'not an address'].some((address) => isNear(address, own))).toBe(false);
  });
});

describe('networkOf', () => {
  it.each([
    ['10.0.0.1', '10.0.0.1'],
    ['::ffff:10.0.0.1', '10.0.0.1'],
    ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2'],
    ['2001:DB8:1:2::6', '2001:db8:1:2'],
    ['2001:0db8:0001::6', '2001:db8:1:0'],
    ['fe80::1%eth0', 'fe80:0:0:0'],
    ['::1', '0:0:0:0'],
    ['::', '0:0:0:0'],
  ])('of %s is %s', (address, expected) => {
    expect(networkOf(address)).toBe(expected);
  });
});
