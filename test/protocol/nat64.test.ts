/** NAT64: synthesis against the vectors of RFC 6052 §2.4, and discovery of the prefix (RFC 7050). */
import { describe, expect, test } from 'vitest';
import { formatAddress, parseAddress } from '../../protocol/address.ts';
import { type Nat64Prefix, nat64Prefixes, synthesize } from '../../protocol/nat64.ts';
import { discoverNat64 } from '../../runtime/rendezvous/translation.ts';

const prefix = (text: string): Nat64Prefix => {
  const [address, bits] = text.split('/');
  return { bytes: parseAddress(address!)!, length: Number(bits) };
};
const texts = (prefixes: readonly Nat64Prefix[]): string[] => prefixes.map(({ bytes, length }) => `${formatAddress(bytes)}/${length}`);
const canonical = (address: string): string => formatAddress(parseAddress(address)!);

const VECTORS = [
  ['2001:db8::/32', '2001:db8:c000:221::'],
  ['2001:db8:100::/40', '2001:db8:1c0:2:21::'],
  ['2001:db8:122::/48', '2001:db8:122:c000:2:2100::'],
  ['2001:db8:122:300::/56', '2001:db8:122:3c0:0:221::'],
  ['2001:db8:122:344::/64', '2001:db8:122:344:c0:2:2100::'],
  ['2001:db8:122:344::/96', '2001:db8:122:344::192.0.2.33'],
  ['64:ff9b::/96', '64:ff9b::192.0.2.33'],
] as const;

describe('NAT64', () => {
  test.each(VECTORS)('maps 192.0.2.33 under %s to %s (RFC 6052 §2.4)', (text, address) => {
    expect(synthesize(prefix(text), '192.0.2.33')).toBe(canonical(address));
  });

  test.each(VECTORS)('finds the prefix %s', (text) => {
    const answers = ['192.0.0.170', '192.0.0.171'].map((address) => synthesize(prefix(text), address)!);
    expect(texts(nat64Prefixes(answers))).toEqual([text]);
    expect(texts(nat64Prefixes([...answers].reverse()))).toEqual([text]);
    expect(texts(nat64Prefixes(answers.slice(1)))).toEqual([text]);
  });

  test('is not misled by a prefix that contains the well-known address when both addresses are returned', () => {
    // 192.0.0.170 is in bytes 4 to 7 of the prefix: a prefix of 32 bits would match, too.
    const misleading = prefix('2001:db8:c000:aa::/96');
    const answers = ['192.0.0.170', '192.0.0.171'].map((address) => synthesize(misleading, address)!);
    expect(texts(nat64Prefixes(answers))).toEqual(['2001:db8:c000:aa::/96']);
  });

  test('finds several prefixes', () => {
    const all = ['64:ff9b::/96', '2001:db8:122:300::/56'];
    const answers = all.flatMap((text) => ['192.0.0.170', '192.0.0.171'].map((address) => synthesize(prefix(text), address)!));
    expect(texts(nat64Prefixes(answers))).toEqual(all);
  });

  test.each([
    [[]],
    [['192.0.0.170', '192.0.0.171']],
    [['2001:db8::1', 'ipv4only.arpa', '', '::ffff:192.0.0.170']],
    [['2001:db8:c000:2a::', '64:ff9b::192.0.0.169']],
    // Byte 8 is not 0.
    [['2001:db8:122:344:1c0:0:aa00:0']],
  ])('finds no prefix in %j', (addresses) => {
    expect(nat64Prefixes(addresses)).toEqual([]);
  });

  test.each(['router', '2001:db8::1', '192.0.2', ''])('maps "%s" to no address', (address) => {
    expect(synthesize(prefix('64:ff9b::/96'), address)).toBeNull();
  });

  test('is looked up only on hosts without IPv4; no answer of the resolver means no prefix', async () => {
    const asked: string[] = [];
    const network = (...addresses: string[]) => ({
      interfaces: () => [{ name: 'eth0', addresses, kind: 'default' as const }],
      resolve: async (host: string) => {
        asked.push(host);
        return ['192.0.0.170', '64:ff9b::192.0.0.170', '64:ff9b::192.0.0.171'];
      },
    });
    expect(texts(await discoverNat64(network('2001:db8::7/64')))).toEqual(['64:ff9b::/96']);
    expect(await discoverNat64(network('192.168.1.7/24', '2001:db8::7/64'))).toEqual([]);
    expect(asked).toEqual(['ipv4only.arpa']);
    expect(await discoverNat64({ resolve: () => Promise.reject(new Error('DNS')) })).toEqual([]);
  });
});
