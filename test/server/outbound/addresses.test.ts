/** Where a service may be: the table of addresses, and the addresses of names. */
import { describe, expect, test } from 'vitest';
import { type AddressClass, addressClass, allowedAddresses } from '../../../server/outbound/addresses.ts';

describe('addressClass', () => {
  test.each<[AddressClass, string[]]>([
    [
      'public',
      [
        '8.8.8.8',
        '1.1.1.1',
        '172.15.255.255',
        '172.32.0.1',
        '192.167.1.1',
        '100.63.255.255',
        '100.128.0.1',
        '198.17.0.1',
        '223.255.255.255',
      ],
    ],
    ['public', ['2606:4700::1111', '2a00:1450:4001::1', '::ffff:8.8.8.8', '64:ff9b::8.8.8.8', '2002:808:808::1']],
    ['private', ['127.0.0.1', '127.255.255.254', '10.0.0.1', '172.16.0.1', '172.31.255.255', '192.168.1.1', '100.64.0.1', '198.18.0.1']],
    [
      'private',
      [
        '::1',
        'fc00::1',
        'fdff::1',
        '::ffff:127.0.0.1',
        '::ffff:7f00:1',
        '::ffff:10.1.2.3',
        '64:ff9b::10.0.0.1',
        '2002:7f00:1::1',
        '2002:c0a8:101::',
      ],
    ],
    ['never', ['0.0.0.0', '0.1.2.3', '169.254.169.254', '169.254.0.1', '100.100.100.200', '168.63.129.16', '192.0.0.192', '192.0.2.1']],
    ['never', ['192.88.99.1', '198.51.100.1', '203.0.113.1', '224.0.0.1', '239.1.1.1', '240.0.0.1', '255.255.255.255']],
    [
      'never',
      ['::', 'fe80::1', 'fe80::1%eth0', 'fec0::1', 'ff02::1', '2001:db8::1', '2001::1', '3fff::1', '100::1', '4000::1', 'fd00:ec2::254'],
    ],
    ['never', ['fd00:ec2::23', 'fd00:c1::a9fe:a9fe', 'fd00:42::42', 'fd20:ce::254']],
    [
      'never',
      [
        '::ffff:169.254.169.254',
        '::ffff:a9fe:a9fe',
        '64:ff9b::169.254.169.254',
        '64:ff9b:1::1',
        '2002:a9fe:a9fe::1',
        '::127.0.0.1',
        '::ffff:0:127.0.0.1',
      ],
    ],
    ['never', ['', 'localhost', '127.1', '2130706433', '0x7f000001', '010.0.0.1', '1.2.3', '1.2.3.4.5']],
  ])('%s: %j', (kind, addresses) => {
    for (const address of addresses) expect([address, addressClass(address)]).toEqual([address, kind]);
  });
});

describe('allowedAddresses', () => {
  const url = new URL('https://service.example/hook');
  const to =
    (...addresses: string[]) =>
    async () =>
      addresses;

  test('returns all addresses when all are public', async () => {
    expect(await allowedAddresses(url, to('8.8.8.8', '2606:4700::1111'), () => false)).toEqual(['8.8.8.8', '2606:4700::1111']);
  });

  test.each([['8.8.8.8', '10.0.0.1'], ['10.0.0.1'], ['2606:4700::1111', '::ffff:127.0.0.1'], ['169.254.169.254'], []])(
    'refuses a name with one forbidden address: %s %s',
    async (...addresses) => {
      await expect(allowedAddresses(url, to(...addresses), () => false)).rejects.toMatchObject({ code: 'BAD_RESPONSE' });
    },
  );

  test('returns private addresses when the operator allows it, but never link-local ones', async () => {
    expect(await allowedAddresses(url, to('10.0.0.1', '::1'), () => true)).toEqual(['10.0.0.1', '::1']);
    await expect(allowedAddresses(url, to('169.254.169.254'), () => true)).rejects.toMatchObject({ code: 'BAD_RESPONSE' });
  });

  test('checks each private address with the operator', async () => {
    const allow = (address: string) => address === '10.0.0.1';
    expect(await allowedAddresses(url, to('10.0.0.1', '8.8.8.8'), allow)).toEqual(['10.0.0.1', '8.8.8.8']);
    await expect(allowedAddresses(url, to('10.0.0.1', '10.0.0.2'), allow)).rejects.toMatchObject({ code: 'BAD_RESPONSE' });
  });

  test('recognises other spellings of loopback in a URL', async () => {
    const self = async (host: string) => [host];
    for (const host of ['2130706433', '0x7f.1', '0177.0.0.1', '127.1', '[::1]', '[::ffff:7f00:1]']) {
      await expect(allowedAddresses(new URL(`https://${host}/`), self, () => false)).rejects.toMatchObject({ code: 'BAD_RESPONSE' });
    }
  });

  test('reports a failed resolver as a bad gateway', async () => {
    const failing = () => Promise.reject(new Error('no such name'));
    await expect(allowedAddresses(url, failing, () => false)).rejects.toMatchObject({ code: 'BAD_RESPONSE' });
  });
});
