/** Which STUN ports an end asks: those named by a station and those its name resolves to. */
import { expect, test } from 'vitest';
import { isPeerAddress } from '../../../runtime/rendezvous/index.ts';
import { stunServers } from '../../../runtime/rendezvous/stun-servers.ts';
import { Simulation } from '../../../testing/index.ts';

const at = { address: '198.51.100.1', port: 4433 };
const all = (): boolean => true;

function asked(view: Partial<Parameters<typeof stunServers>[0]>, isReachable = all, resolve?: () => Promise<string[]>) {
  const simulation = new Simulation();
  const { clock, network } = simulation.host('end');
  const environment = { clock, network: resolve === undefined ? network : { ...network, resolve } };
  return simulation.settle(
    stunServers({ at, observed: null, stun: [{ port: 4434 }], name: null, ask: async () => null, ...view }, environment, isReachable),
  );
}

test('the address of the channel, where the station names none', async () => {
  expect(await asked({})).toEqual([{ address: at.address, port: 4434 }]);
});

test('an address that cannot be another host is skipped, unless the station is there', async () => {
  const stun = [
    { port: 1 },
    { address: '127.0.0.1', port: 2 },
    { address: '169.254.169.254', port: 3 },
    { address: '203.0.113.9', port: 4 },
  ];
  expect((await asked({ stun })).map(({ port }) => port)).toEqual([1, 4]);
  expect((await asked({ stun, at: { address: '127.0.0.1', port: 4433 } })).map(({ port }) => port)).toEqual([1, 2, 3, 4]);
});

test('one of the other family that the name has, where this host reaches that family', async () => {
  const resolve = async () => ['198.51.100.1', '2001:db8::1'];
  expect(await asked({ name: 'station' }, all, resolve)).toEqual([
    { address: at.address, port: 4434 },
    { address: '2001:db8::1', port: 4434 },
  ]);
  expect(await asked({ name: 'station' }, () => false, resolve)).toHaveLength(1);
});

test('one that the name has is skipped where it cannot be another host, unless the station is there', async () => {
  for (const lie of ['::1', 'fe80::1%eth0', 'ff02::fb', '64:ff9b::127.0.0.1'])
    expect(await asked({ name: 'station' }, all, async () => [at.address, lie])).toEqual([{ address: at.address, port: 4434 }]);
  const resolve = async () => ['::1', '2001:db8::1'];
  const portsAt = (address: string) => asked({ name: 'station', at: { address, port: 4433 } }, all, resolve);
  expect((await portsAt(at.address)).map(({ address }) => address)).toEqual([at.address, '2001:db8::1']);
  expect((await portsAt('127.0.0.1')).map(({ address }) => address)).toEqual(['127.0.0.1', '::1']);
});

test('a resolver that fails, or never answers, delays nothing', async () => {
  expect(await asked({ name: 'station' }, all, () => Promise.reject(new Error('no name')))).toHaveLength(1);
  expect(await asked({ name: 'station' }, all, () => new Promise(() => {}))).toHaveLength(1);
});

test.each([
  ['203.0.113.7', true],
  ['192.168.1.5', true],
  ['fd00::7', true],
  ['64:ff9b::203.0.113.7', true],
  ['64:ff9b::127.0.0.1', false],
  ['2002:7f00:1::1', false],
  ['127.0.0.1', false],
  ['fe80::1%eth0', false],
  ['255.255.255.255', false],
  ['station.example', false],
])('%s may be the address of a peer: %s', (address, expected) => {
  expect(isPeerAddress(address)).toBe(expected);
});
