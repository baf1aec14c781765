/**
 * Which connections are accepted beside the existing ones: slots reserved for certain keys, and the share of one
 * network in the others.
 */
import { expect, test } from 'vitest';
import type { KeptConnections } from '../../../protocol/endpoint/index.ts';
import { LocalError } from '../../../protocol/errors/index.ts';
import { fingerprint } from '../../../protocol/identity/index.ts';
import { dial, EndpointFixture, type PolledEndpoint } from '../../support/fixture/endpoints.ts';
import { setup } from '../../support/fixture/relayed.ts';

const DEVICE = '2001:db8:9::1/64';
const NOBODY: KeptConnections = { connections: 2, perNetwork: 3, holderOf: () => null };

function keyOf({ config: { identity, crypto } }: PolledEndpoint): string {
  return fingerprint(identity.publicKey, crypto);
}

/** A device with 8 connections, 2 of them reserved. Other keys of one network may have 3. */
function device(network: EndpointFixture, kept = NOBODY, connections = 8): PolledEndpoint {
  return network.device({ limits: { halfOpen: 64, retryAbove: 64, connections, kept } }, DEVICE);
}

/** Connects a client from that address. */
function arrive(network: EndpointFixture, to: PolledEndpoint, address: string): PolledEndpoint {
  const client = network.client({}, address);
  dial(client, to);
  network.pass(500);
  return client;
}

test('all addresses of one /64 share half of the unreserved slots, and those of another /64 as many', () => {
  const network = new EndpointFixture(1);
  const to = device(network);
  const here = [1, 2, 3, 4, 5].map((number) => arrive(network, to, `2001:db8:1:1::${number}/64`));
  expect(here.map((client) => client.kinds().includes('closed'))).toEqual([false, false, false, true, true]);
  expect(here[3]!.find('closed')).toMatchObject({ code: 0x1001, error: { name: 'RemoteError', code: 'DEVICE_INTERNAL_ERROR' } });
  const elsewhere = [1, 2, 3, 4].map((number) => arrive(network, to, `2001:db8:1:2::${number}/64`));
  expect(elsewhere.map((client) => client.kinds().includes('closed'))).toEqual([false, false, false, true]);
  expect(arrive(network, to, '2001:db8:1:3::1/64').kinds()).toContain('closed');
  expect(to.endpoint.stats).toMatchObject({ refused: 4 });
});

test('a peer counts for the network of its current address', () => {
  const network = new EndpointFixture(2);
  const to = device(network);
  const [moving] = [1, 2, 3].map((number) => arrive(network, to, `2001:db8:1:1::${number}/64`));
  network.sim.rebind(moving!.host, 'address');
  moving!.events[0]![0].messages.send(Uint8Array.of(1));
  network.pass(2_000);
  expect(to.accepted[0]!.validatedPath.address).not.toMatch(/^2001:db8:1:1:/);
  expect(arrive(network, to, '2001:db8:1:1::4/64').kinds()).not.toContain('closed');
  expect(arrive(network, to, '2001:db8:1:1::5/64').kinds()).toContain('closed');
});

test('a relayed peer counts for no network: all have the address of the base station', () => {
  const { network, device, introduce } = setup({}, { halfOpen: 64, retryAbove: 64, connections: 8, kept: { ...NOBODY, perNetwork: 0 } });
  introduce();
  network.pass(100);
  expect([device.accepted.length, device.endpoint.stats.refused]).toEqual([1, 0]);
});

test('one key with reserved slots leaves slots for the others', () => {
  const network = new EndpointFixture(4);
  const users = new Map<string, string>();
  const to = device(network, { ...NOBODY, holderOf: (fingerprint) => users.get(fingerprint) ?? fingerprint });
  const greedy = network.client({}, '2001:db8:1:1::1/64');
  for (let count = 0; count < 12; count++) {
    dial(greedy, to);
    network.pass(500);
  }
  // 5 of 8: the fifth was accepted while 4 were free.
  const open = () => to.accepted.filter(({ state }) => state === 'open').length;
  expect(open()).toBe(5);
  // Another key of the same user counts as the same.
  const friend = network.client({}, '2001:db8:1:5::1/64');
  users.set(keyOf(friend), keyOf(greedy));
  dial(friend, to);
  network.pass(500);
  expect(open()).toBe(5);
  const second = network.client({}, '2001:db8:1:2::1/64');
  for (let count = 0; count < 4; count++) {
    dial(second, to);
    network.pass(500);
  }
  expect(open()).toBe(7);
  expect(arrive(network, to, '2001:db8:1:3::1/64').kinds()).not.toContain('closed');
  expect(arrive(network, to, '2001:db8:1:4::1/64').kinds()).toContain('closed');
});

test('keys with reserved slots neither count for their network nor have its limit', () => {
  const network = new EndpointFixture(3);
  const known = new Set<string>();
  const to = device(network, { ...NOBODY, holderOf: (fingerprint) => (known.has(fingerprint) ? fingerprint : null) });
  for (const number of [1, 2, 3]) arrive(network, to, `2001:db8:1:1::${number}/64`);
  for (const { peer } of to.accepted) known.add(peer.fingerprint);
  const here = [4, 5, 6, 7].map((number) => arrive(network, to, `2001:db8:1:1::${number}/64`));
  expect(here.map((client) => client.kinds().includes('closed'))).toEqual([false, false, false, true]);
});

test('a key with reserved slots, and no other, evicts a connection without a path, the one that rests longest first', () => {
  const network = new EndpointFixture(5);
  const known = new Set<string>();
  const holderOf = (fingerprint: string): string | null => (known.has(fingerprint) ? fingerprint : null);
  const to = device(network, { connections: 1, perNetwork: 8, holderOf }, 3);
  for (const number of [1, 2]) arrive(network, to, `2001:db8:1:${number}::1/64`);
  const users = [1, 2, 3].map((number) => network.client({}, `2001:db8:2:${number}::1/64`));
  for (const user of users) known.add(keyOf(user));
  const join = (user: PolledEndpoint): readonly string[] => {
    dial(user, to);
    network.pass(500);
    return user.kinds();
  };
  expect(join(users[0]!)).not.toContain('closed');
  const lost = new LocalError('CLOSED', 'its route ended');
  // The third is a user's, and rests longest.
  for (const index of [2, 1, 0]) {
    const connection = to.accepted[index]!;
    connection.allowRest();
    connection.pathLost(connection.path, network.now, lost);
    network.pass(10);
  }
  expect(arrive(network, to, '2001:db8:3:1::1/64').kinds()).toContain('closed');
  expect(join(users[1]!)).not.toContain('closed');
  const states = () => to.accepted.slice(0, 3).map(({ state }) => (state === 'open' ? 'open' : 'over'));
  expect(states()).toEqual(['open', 'over', 'open']);
  expect(to.events.find(([of, { kind }]) => of === to.accepted[1] && kind === 'closed')?.[1]).toMatchObject({
    error: { code: 'CLOSED', message: 'it had no path, and made way for another connection' },
  });
  expect(join(users[2]!)).not.toContain('closed');
  expect(states()).toEqual(['over', 'over', 'open']);
});
