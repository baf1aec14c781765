/** The kinds of the matrix behave as their names say: as two servers see them, and as a hop limit meets them. */
import { describe, expect, it } from 'vitest';
import { Simulation } from '../../testing/index.ts';
import { homeOf, type NatKind, natKinds } from '../support/nat-kinds.ts';
import { party, sourceOf } from './nat-support.ts';

async function probe(kind: NatKind) {
  const simulation = new Simulation();
  const station = simulation.host('station', { addresses: ['203.0.113.1/24', '2001:db8:ffff::1/64'] });
  const [first, second] = [party(station, 1), party(station, 2)];
  const other = party(simulation.host('other', { addresses: ['203.0.114.1/24'] }), 1);
  const home = homeOf(simulation, kind, 'home', 300);
  const inside = party(home.host, 4000);
  inside.send(1, '203.0.113.1', 1);
  await simulation.run();
  const { address, port } = sourceOf(first.got[0]);
  for (const [i, each] of [first, second, other].entries()) each.send(i, address, port);
  await simulation.run();
  const passes = inside.got.map((got) => Number(got[0]));
  inside.send(2, '203.0.113.1', 2);
  inside.send(3, '203.0.114.1', 1);
  inside.send(4, '2001:db8:ffff::1', 1);
  await simulation.run();
  const steps = [second, other].map(({ got }) => (got.length === 0 ? null : sourceOf(got[0]).port - port));
  return { simulation, home, inside, first, address, passes, steps, v6: first.got.length > 1 };
}

describe('kinds of NAT', () => {
  it.each([
    // passed from the same, another port, another address; difference of the port towards another port and another
    // address; IPv6
    ['open', [0, 1, 2], [0, 0], false],
    ['full-cone', [0, 1, 2], [0, 0], false],
    ['address', [0, 1], [0, 0], false],
    ['port', [0], [0, 0], false],
    ['sequential', [0], [1, 2], false],
    ['double', [0], [0, 0], false],
    ['v6-firewall', [0], [0, 0], true],
    ['blocked', [0], [0, null], false],
  ] as const)('%s', async (kind, passes, steps, v6) => {
    const seen = await probe(kind);
    expect([seen.passes, seen.steps, seen.v6, seen.address]).toEqual([passes, steps, v6, '198.51.101.44']);
  });

  it('random', async () => {
    const { passes, steps } = await probe('random');
    expect([passes, new Set([0, ...steps]).size]).toEqual([[0], 3]);
    expect(steps.some((step) => Math.abs(step ?? 0) > 10)).toBe(true);
  });

  it.each(natKinds)('%s: openers with a hop limit of 4 and 7 open every box and reach no other home', async (kind) => {
    const simulation = new Simulation();
    simulation.host('station', { addresses: ['203.0.113.1/24'] });
    const home = homeOf(simulation, kind, 'home', 1, { allow: ['198.51.100.2'] });
    const other = homeOf(simulation, 'full-cone', 'other', 2, { inbound: 'claim' });
    const [inside, far] = [party(home.host, 4000), party(other.host, 4000)];
    for (const limit of [4, 7]) inside.send(limit, other.outside, 4000, limit);
    await simulation.run();
    expect(other.boxes[0]!.stats).toMatchObject({ claimed: 0, in: 0 });
    far.send(1, home.outside, 4000);
    await simulation.run();
    if (kind !== 'sequential' && kind !== 'random') expect(inside.got).toEqual(['1 from 198.51.100.2:4000']);
    for (const box of home.boxes) expect(box.stats).toMatchObject({ mappings: 1, out: 2 });
  });
});
