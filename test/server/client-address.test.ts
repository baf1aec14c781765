/** The client address of a request: forged and malformed headers of proxies, and which proxies are trusted. */
import { describe, expect, it, vi } from 'vitest';
import { ClientAddresses, type ProxyHeader } from '../../server/client-address.ts';

const PROXY = '10.0.0.1';

function of(
  peer: string,
  headers: Record<string, string>,
  header: ProxyHeader = 'x-forwarded-for',
  trusted = ['10.0.0.0/24', '2001:db8:1::/48'],
) {
  const warn = vi.fn();
  const addresses = new ClientAddresses({ trusted, header, log: { warn } });
  return { address: addresses.of({ headers, socket: { remoteAddress: peer } }), warn, addresses };
}

describe('X-Forwarded-For', () => {
  it.each([
    ['one hop', '203.0.113.7', '203.0.113.7'],
    ['a forged address to the left', '127.0.0.1, 203.0.113.7', '203.0.113.7'],
    ['a chain of trusted proxies', '203.0.113.7, 10.0.0.2, 10.0.0.3', '203.0.113.7'],
    ['a chain with an untrusted proxy', '203.0.113.7, 198.51.100.1, 10.0.0.3', '198.51.100.1'],
    ['trusted ones only', '10.0.0.7, 10.0.0.2', '10.0.0.7'],
    ['with a port', '203.0.113.7:50000', '203.0.113.7'],
    ['IPv6', '2001:DB8::7', '2001:db8::7'],
    ['IPv6 with brackets and port', '[2001:db8::7]:443', '2001:db8::7'],
    ['IPv4-mapped IPv6', '::ffff:203.0.113.7', '203.0.113.7'],
    ['spaces', ' 203.0.113.7 , 10.0.0.2 ', '203.0.113.7'],
    ['no address', 'unknown', PROXY],
    ['an empty one', '', PROXY],
    ['an empty one at the end', '203.0.113.7,', PROXY],
    ['no address behind a trusted proxy', 'evil, 10.0.0.2', PROXY],
    ['a zone', 'fe80::1%eth0', PROXY],
    ['digits out of range', '203.0.113.300', PROXY],
    ['a name', 'localhost', PROXY],
    ['a quoted one', '"203.0.113.7"', PROXY],
    ['a line break', '203.0.113.7\r\nX: 1', PROXY],
  ])('%s', (_, value, address) => {
    expect(of(PROXY, { 'x-forwarded-for': value }).address).toBe(address);
  });

  it("is missing: the proxy's address counts", () => {
    expect(of(PROXY, {}).address).toBe(PROXY);
    expect(of('::ffff:10.0.0.1', { 'x-forwarded-for': '203.0.113.7' }).address).toBe('203.0.113.7');
  });

  it('counts alone: a forged Forwarded that a proxy passes on is ignored', () => {
    expect(of(PROXY, { forwarded: 'for=127.0.0.1', 'x-forwarded-for': '203.0.113.7' }).address).toBe('203.0.113.7');
    expect(of(PROXY, { forwarded: 'for=127.0.0.1' }).address).toBe(PROXY);
  });

  it('of an untrusted peer is ignored, and logged once', () => {
    const { addresses, address, warn } = of('198.51.100.9', { 'x-forwarded-for': '203.0.113.7' });
    addresses.of({ headers: { forwarded: 'for=203.0.113.7' }, socket: { remoteAddress: '198.51.100.9' } });
    expect([address, warn.mock.calls.length]).toEqual(['198.51.100.9', 1]);
    expect(warn.mock.calls[0]).toEqual([expect.stringContaining('--trusted-proxy'), { proxy: '198.51.100.9' }]);
    const none = of(PROXY, { 'x-forwarded-for': '203.0.113.7' }, 'x-forwarded-for', []);
    expect([none.address, none.warn.mock.calls.length]).toEqual([PROXY, 1]);
  });
});

describe('Forwarded', () => {
  it.each([
    ['one hop', 'for=203.0.113.7', '203.0.113.7'],
    ['other parameters', 'proto=https;FOR=203.0.113.7;by=10.0.0.1;host=a', '203.0.113.7'],
    ['IPv6, quoted with port', 'for="[2001:db8::7]:4711"', '2001:db8::7'],
    ['two elements', 'for=127.0.0.1, for=203.0.113.7', '203.0.113.7'],
    ['a comma in quotes', 'for=127.0.0.1, for=203.0.113.7;host="a,for=127.0.0.9"', '203.0.113.7'],
    ['a chain', 'for=203.0.113.7, for=10.0.0.2', '203.0.113.7'],
    ['escapes', 'for="203\\.0.113.7"', '203.0.113.7'],
    ['unknown', 'for=unknown', PROXY],
    ['hidden', 'for=_hidden', PROXY],
    ['twice in one element', 'for=203.0.113.7;for=127.0.0.1', PROXY],
    ['without for', 'proto=https', PROXY],
    ['a quote without end', 'for="203.0.113.7', PROXY],
    ['a quote that a client leaves open before a token', 'for=198.51.100.7;x=", for=203.0.113.9', PROXY],
    ['before a quoted string', 'for=198.51.100.7;x=", for="[2001:db8::1]:4711"', PROXY],
    ['before two', 'for=198.51.100.7;x=", for="[2001:db8::1]:4711";by="[2001:db8::2]"', PROXY],
    ['before an escaped quote', 'for=198.51.100.7;x=", for=203.0.113.9;host="a\\""', PROXY],
    ['before an escaped quote that looks like a value', 'for=198.51.100.7;x=", for=203.0.113.9;host=";y=\\""', PROXY],
    ['before an escape', 'for=198.51.100.7;x="\\, for=203.0.113.9', PROXY],
    ['an invalid character without quotes', '=;;\\, for=203.0.113.9', '203.0.113.9'],
    ['an element without end', `for=203.0.113.7;x=${'a'.repeat(65_536)}`, PROXY],
    ['as many spaces', `for=203.0.113.7${' '.repeat(65_536)}`, PROXY],
    ['256 characters', `for=203.0.113.7;x=${'a'.repeat(238)}`, '203.0.113.7'],
    ['257 characters', `for=203.0.113.7;x=${'a'.repeat(239)}`, PROXY],
    ['spaces around everything', ' for = 203.0.113.7 ; proto = https ', '203.0.113.7'],
    ['more behind the quoted string', 'for="203.0.113.7"8', PROXY],
    ['for within another name', 'xfor=203.0.113.7', PROXY],
  ])('%s', (_, value, address) => {
    expect(of(PROXY, { forwarded: value, 'x-forwarded-for': '198.51.100.1' }, 'forwarded').address).toBe(address);
  });
});
