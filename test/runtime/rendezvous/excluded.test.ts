/** Interfaces whose addresses must not be offered to peers. */
import { expect, test } from 'vitest';
import { HomesFixture } from '../../support/fixture/homes.ts';

test('the address of an excluded interface is not offered as seen from outside either, and no NAT is assumed before it', async () => {
  const fixture = await HomesFixture.open({ device: 'open', client: 'blocked', rendezvous: { noCandidatesOn: ['sim0'] } });
  const connection = await fixture.relayed();
  await fixture.sim.run(5_000);
  const { pairs, remoteNat, whyNotDirect } = connection.paths();
  expect(pairs.map(({ address }) => address)).not.toContain(fixture.deviceHome.outside);
  expect(remoteNat).toEqual({ mapping: 'none' });
  expect(whyNotDirect?.code).toBe('NO_CANDIDATES');
});

test('other addresses are offered', { tags: ['slow'] }, async () => {
  const fixture = await HomesFixture.open({ lan: ['192.168.1.6/24', '192.168.1.5/24'], rendezvous: { noCandidatesOn: ['sim1'] } });
  const connection = await fixture.direct();
  // A check may use it where the client has offered an address there, which reveals it.
  const named = connection.paths().pairs.filter(({ kind }) => kind !== 'peer-reflexive');
  const addresses = named.map(({ address }) => address);
  expect(addresses).toContain(fixture.deviceHome.outside);
  expect(addresses).not.toContain('192.168.1.5');
});
