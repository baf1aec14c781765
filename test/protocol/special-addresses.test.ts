/**
 * The table of special-purpose addresses: the most specific prefix decides, and both policies based on it cover every
 * kind.
 */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { mayBeResolved } from '../../device/tunnels/pinned-address.ts';
import { formatAddress, parseAddress, parsePrefix } from '../../protocol/address.ts';
import { type AddressKind, addressKind, embeddedAddress, SPECIAL_ADDRESSES } from '../../protocol/special-addresses.ts';
import { addressClass } from '../../server/outbound/addresses.ts';

const kindOf = (text: string): AddressKind => addressKind(parseAddress(text)!);

/** The first and the last address of a prefix, and those right before and after it. */
function edges(prefix: string): { first: bigint; last: bigint; bits: number } {
  const { bytes, length } = parsePrefix(prefix)!;
  const bits = bytes.length * 8;
  const first = bytes.reduce((number, byte) => number * 256n + BigInt(byte), 0n);
  return { first, last: first + (1n << BigInt(bits - length)) - 1n, bits };
}

function bytesOf(number: bigint, bits: number): Uint8Array {
  return Uint8Array.from({ length: bits / 8 }, (_, index) => Number((number >> BigInt(bits - 8 * (index + 1))) & 0xffn));
}

/** The obviously correct one: of all ranges that contain the number, the smallest. */
function modelKind(number: bigint, bits: number): AddressKind {
  const holding = SPECIAL_ADDRESSES.map(([prefix, kind]) => ({ ...edges(prefix), kind })).filter(
    (range) => range.bits === bits && range.first <= number && number <= range.last,
  );
  return holding.reduce((a, b) => (a.last - a.first <= b.last - b.first ? a : b)).kind;
}

describe('the table', () => {
  test('names each prefix once, in its canonical form, with a source', () => {
    const prefixes = SPECIAL_ADDRESSES.map(([prefix]) => prefix);
    expect(new Set(prefixes).size).toBe(prefixes.length);
    for (const [prefix, , source] of SPECIAL_ADDRESSES) {
      const { bytes, length } = parsePrefix(prefix)!;
      expect(`${formatAddress(bytes)}/${length}`).toBe(prefix);
      const { first, bits } = edges(prefix);
      expect(first & ((1n << BigInt(bits - length)) - 1n), `${prefix} has bits behind its length`).toBe(0n);
      expect(source).not.toBe('');
    }
  });

  test.each(SPECIAL_ADDRESSES.map(([prefix]) => prefix))('%s: both its edges and their neighbours agree with the ranges', (prefix) => {
    const { first, last, bits } = edges(prefix);
    for (const number of [first - 1n, first, first + 1n, last - 1n, last, last + 1n]) {
      if (number >= 0n && number < 1n << BigInt(bits)) expect(addressKind(bytesOf(number, bits))).toBe(modelKind(number, bits));
    }
  });

  test('any address is of the kind of the smallest range it is in', () => {
    const v4 = fc.bigInt({ min: 0n, max: (1n << 32n) - 1n }).map((number) => ({ number, bits: 32 }));
    const v6 = fc.bigInt({ min: 0n, max: (1n << 128n) - 1n }).map((number) => ({ number, bits: 128 }));
    fc.assert(
      fc.property(fc.oneof(v4, v6), ({ number, bits }) => {
        const bytes = bytesOf(number, bits);
        // An IPv4-mapped address never arrives as 16 bytes.
        if (parseAddress(formatAddress(bytes))!.length === bytes.length) expect(addressKind(bytes)).toBe(modelKind(number, bits));
      }),
    );
  });

  test.each<[string, AddressKind]>([
    ['8.8.8.8', 'global'],
    ['100.100.100.199', 'shared'],
    ['100.100.100.200', 'cloud'],
    ['255.255.255.254', 'reserved'],
    ['255.255.255.255', 'broadcast'],
    ['::ffff:127.0.0.1', 'loopback'],
    ['::127.0.0.1', 'reserved'],
    ['fe80::1%eth0', 'link-local'],
    ['fec0::1', 'reserved'],
    ['fd00:ec2::254', 'cloud'],
    ['fd00:ec3::254', 'private'],
    ['2606:4700::1111', 'global'],
    ['64:ff9b::8.8.8.8', 'translated'],
    ['64:ff9b:1::1', 'reserved'],
    ['2606:4700::5efe:8.8.8.8', 'translated'],
    ['2606:4700::200:5efe:10.0.0.1', 'translated'],
    ['2606:4700::100:5efe:10.0.0.1', 'global'],
    ['fe80::5efe:10.0.0.1', 'link-local'],
  ])('%s is %s', (address, kind) => {
    expect(kindOf(address)).toBe(kind);
  });
});

describe('an address that embeds another one', () => {
  test.each([
    ['64:ff9b::10.1.2.3', '10.1.2.3'],
    ['2002:a01:203:ffff::1', '10.1.2.3'],
    ['2606:4700::5efe:10.1.2.3', '10.1.2.3'],
    ['2606:4700::200:5efe:10.1.2.3', '10.1.2.3'],
    ['fe80::5efe:10.1.2.3', null],
    ['2001:db8::10.1.2.3', null],
    ['10.1.2.3', null],
  ])('%s embeds %s', (address, inside) => {
    const embedded = embeddedAddress(parseAddress(address)!);
    expect(embedded === null ? null : formatAddress(embedded)).toBe(inside);
  });
});

/** Base station: where a service of the operator may be. Device: what the name of a tunnel service may resolve to. */
const policies: readonly (readonly [AddressKind, string, station: string, device: boolean])[] = [
  ['global', '8.8.8.8', 'public', true],
  ['private', '10.0.0.1', 'private', true],
  ['shared', '100.64.0.1', 'private', true],
  ['benchmarking', '198.18.0.1', 'private', true],
  ['loopback', '::1', 'private', true],
  ['link-local', '169.254.0.1', 'never', false],
  ['cloud', 'fd20:ce::254', 'never', false],
  ['this-network', '0.0.0.0', 'never', false],
  ['multicast', 'ff02::1', 'never', false],
  ['broadcast', '255.255.255.255', 'never', false],
  ['translated', '64:ff9b::10.0.0.1', 'private', true],
  ['translated', '2002:a9fe:a9fe::1', 'never', false],
  ['translated', '2606:4700::5efe:127.0.0.1', 'private', true],
  ['translated', '2606:4700::200:5efe:169.254.169.254', 'never', false],
  ['protocol', '192.0.0.1', 'never', true],
  ['documentation', '2001:db8::1', 'never', true],
  ['relay-anycast', '192.88.99.1', 'never', true],
  ['reserved', '240.0.0.1', 'never', true],
];

describe('the two policies over one table', () => {
  test.each(policies)('%s (%s): %s at a base station, by name at a device: %s', (kind, address, station, device) => {
    expect(kindOf(address)).toBe(kind);
    expect([addressClass(address), mayBeResolved(address)]).toEqual([station, device]);
  });

  test('every kind of the table has its row', () => {
    expect(new Set(policies.map(([kind]) => kind))).toEqual(new Set(SPECIAL_ADDRESSES.map(([, kind]) => kind)));
  });
});
