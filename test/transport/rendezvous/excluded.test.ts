/** Interfaces whose addresses are not to be named to peers. */
import { expect, test } from 'vitest';
import { HomesFixture } from '../../support/fixture/homes.ts';

test('the address of an excluded interface is not named as seen from outside either, and no NAT is presumed before it', async () => {
  const fixture = await HomesFixture.open({ device: 'open', client: 'blocked', rendezvous: { noCandidatesOn: ['sim0'] } });
  const connection = await fixture.relayed();
  await fixture.sim.run(5_000);
  const { pairs, remoteNat, whyNotDirect } = connection.paths();
  expect(pairs.map(({ address }) => address)).not.toContain(fixture.deviceHome.outside);
  expect(remoteNat).toEqual({ mapping: 'none' });
  expect(whyNotDirect?.code).toBe('NO_CANDIDATES');
});

test('other addresses are named', async () => {
  const fixture = await HomesFixture.open({ lan: ['192.168.1.6/24', '192.168.1.5/24'], rendezvous: { noCandidatesOn: ['sim1'] } });
  const connection = await fixture.direct();
  // A check may leave by it, where the client has named an address there: that shows it.
  const named = connection.paths().pairs.filter(({ kind }) => kind !== 'peer-reflexive');
  const addresses = named.map(({ address }) => address);
  expect(addresses).toContain(fixture.deviceHome.outside);
  expect(addresses).not.toContain('192.168.1.5');
});
