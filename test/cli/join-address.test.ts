/** The address of a base station in join strings. */
import { expect, test } from 'vitest';
import { joinAddress } from '../../cli/admin/join-address.ts';
import type { Network } from '../../platform/environment.ts';
import type { LastStart } from '../../server/administration/index.ts';

const fingerprint = 'ab'.repeat(32);
const start: LastStart = { fingerprint, port: 4433, host: null, url: null, tlsProves: false };
const lan: Pick<Network, 'interfaces' | 'sourceAddress'> = { sourceAddress: async () => '192.168.1.7' };

test.each<[string, Partial<LastStart>, string]>([
  ['the one that its operator gave', { url: 'https://station.example:7000' }, 'station.example:7000'],
  ['the usual port without one', { url: 'https://station.example' }, 'station.example:4433'],
  ['an IPv6 address in brackets', { url: 'https://[2001:db8::1]:7000' }, '[2001:db8::1]:7000'],
])('the join address is %s, without a note', async (_, more, server) => {
  expect(await joinAddress({ ...start, ...more }, lan)).toEqual({ server, serverFingerprint: fingerprint, note: undefined });
});

test('the join address has no fingerprint where TLS authenticates the station', async () => {
  const proven = { ...start, url: 'https://station.example:7000', tlsProves: true };
  expect((await joinAddress(proven, lan)).serverFingerprint).toBeUndefined();
});

test.each<[string, Partial<LastStart>, Pick<Network, 'interfaces' | 'sourceAddress'>, string, RegExp]>([
  ['that of the route to the internet', { port: 5000 }, lan, '192.168.1.7:5000', /that of this machine in its network/],
  ['by IPv6 alone', {}, { sourceAddress: async (to) => (to.includes(':') ? '2001:db8::7' : null) }, '[2001:db8::7]:4433', /its network/],
  ['the address it listens on', { host: '192.0.2.9' }, lan, '192.0.2.9:4433', /the one of --host/],
  ['not the wildcard', { host: '0.0.0.0' }, lan, '192.168.1.7:4433', /its network/],
  [
    'one of an interface that is not virtual, IPv4 first',
    {},
    {
      sourceAddress: async () => null,
      interfaces: () => [
        { name: 'docker0', kind: 'virtual', addresses: ['172.17.0.1/16'] },
        { name: 'eth0', kind: 'other', addresses: ['2001:db8::9/64', '10.0.0.9/8'] },
      ],
    },
    '10.0.0.9:4433',
    /its network/,
  ],
  ['this machine alone', {}, { sourceAddress: async () => null, interfaces: () => [] }, '127.0.0.1:4433', /on this machine only/],
])('the join address is %s, with a note', async (_, more, network, server, note) => {
  const address = await joinAddress({ ...start, ...more }, network);
  expect(address).toMatchObject({ server, serverFingerprint: fingerprint });
  expect(address.note).toMatch(note);
  expect(address.note).toContain('svc basestation --url https://host:port');
});

test('a join address with a zone is refused', async () => {
  await expect(joinAddress({ ...start, host: 'fe80::1%eth0' }, lan)).rejects.toThrow(/svc basestation --url/);
});
