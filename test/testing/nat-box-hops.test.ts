/** Hop limits: where a datagram ends, and which boxes it opened on its way. */
import { describe, expect, it } from 'vitest';
import { type NatBox, type NatOptions, Simulation } from '../../testing/index.ts';
import { fates, type Party, party } from './nat-support.ts';

type Member = Party & { readonly box: NatBox };

/** Two homes with the defaults, 8 routers in all: box, three and three, box. */
function homes(options: Partial<NatOptions> = {}) {
  const simulation = new Simulation();
  const [one, two] = [1, 2].map((i) => {
    const box = simulation.nat(`box ${i}`, { outside: [`198.51.100.${i}`], ...options });
    return { box, ...party(simulation.host(`host ${i}`, { addresses: ['192.168.1.5/24'], behind: box }), 4000) };
  }) as [Member, Member];
  return { simulation, one, two };
}

describe('a hop limit', () => {
  it.each([1, 2, 4, 7, 8, 9, 64])('of %i between two homes ends after that many routers', async (limit) => {
    const { simulation, one, two } = homes({ filter: 'none' });
    two.send(0, '198.51.100.1', 9);
    await simulation.run();
    const seen = fates(simulation);
    one.send(limit, '198.51.100.2', 4000, limit);
    await simulation.run();
    expect(two.got).toEqual(limit < 9 ? [] : [`${limit} from 198.51.100.1:4000`]);
    expect(seen).toEqual([limit < 9 ? 'expired' : 'delivered']);
    // One, and three behind it, are before the first home; three and the eighth, the other box, are before the second.
    const expired = limit < 5 ? [1, 0] : [0, limit < 9 ? 1 : 0];
    expect([one.box.stats.expired, two.box.stats.expired]).toEqual(expired);
  });

  it('lets a datagram open the boxes that it passed', async () => {
    for (const limit of [1, 2]) {
      const { simulation, one, two } = homes();
      one.send(1, '198.51.100.2', 4000, limit);
      two.send(2, '198.51.100.1', 4000);
      await simulation.run();
      expect(one.got).toEqual(limit === 1 ? [] : ['2 from 198.51.100.2:4000']);
      expect(one.box.stats.mappings).toBe(limit - 1);
    }
  });

  it('keeps an opener from reaching the other box: open, announce, probe passes', async () => {
    const { simulation, one, two } = homes({ inbound: 'claim' });
    for (const limit of [4, 7]) {
      one.send(limit, '198.51.100.2', 4000, limit);
      two.send(limit, '198.51.100.1', 4000, limit);
    }
    await simulation.run();
    expect([one.box.stats.claimed, two.box.stats.claimed, one.got, two.got]).toEqual([0, 0, [], []]);
    one.send(1, '198.51.100.2', 4000);
    await simulation.run();
    two.answer(2);
    await simulation.run();
    expect([one.got, two.got]).toEqual([['2 from 198.51.100.2:4000'], ['1 from 198.51.100.1:4000']]);
  });

  it('of 8 reaches the other box', async () => {
    const { simulation, one, two } = homes({ inbound: 'claim' });
    for (const limit of [7, 8]) one.send(limit, '198.51.100.2', 4000, limit);
    await simulation.run();
    expect(two.box.stats).toMatchObject({ claimed: 1, expired: 1 });
  });

  it('does not matter between neighbours and within a host', async () => {
    const { simulation, one } = homes();
    const neighbour = party(simulation.host('neighbour', { addresses: ['192.168.1.6/24'], behind: one.box }), 5000);
    one.send(1, '192.168.1.6', 5000, 1);
    one.send(2, '127.0.0.1', 4000, 1);
    await simulation.run();
    expect([neighbour.got, one.got]).toEqual([['1 from 192.168.1.5:4000'], ['2 from 127.0.0.1:4000']]);
  });

  it('counts the routers before a host without a box', async () => {
    const simulation = new Simulation();
    const far = party(simulation.host('far', { addresses: ['203.0.113.1/24'], hops: 3 }), 1);
    const near = party(simulation.host('near', { addresses: ['203.0.114.1/24'], hops: 2 }), 1);
    for (const limit of [2, 3, 5, 6]) near.send(limit, '203.0.113.1', 1, limit);
    await simulation.run();
    expect(far.got).toEqual(['6 from 203.0.114.1:1']);
  });

  it('counts each box of a provider and a home, and one for a hairpin', async () => {
    const simulation = new Simulation();
    const provider = simulation.nat('provider', { outside: ['198.51.100.1'], hops: 2, hairpin: true, filter: 'none' });
    const [one, two] = [1, 2].map((i) => {
      const box = simulation.nat(`box ${i}`, { outside: [`100.64.0.${i}`], behind: provider, hops: 1, filter: 'none' });
      return party(simulation.host(`host ${i}`, { addresses: ['192.168.1.5/24'], behind: box }), 4000 + i);
    }) as [Party, Party];
    const server = party(simulation.host('server', { addresses: ['203.0.113.1/24'] }), 1);
    // Box, 1, provider, 2: five routers.
    for (const limit of [1, 2, 3, 4, 5, 6]) two.send(limit, '203.0.113.1', 1, limit);
    await simulation.run();
    expect(server.got).toEqual(['6 from 198.51.100.1:4002']);
    for (const limit of [5, 6]) server.send(limit, '198.51.100.1', 4002, limit);
    await simulation.run();
    expect(two.got).toEqual(['6 from 203.0.113.1:1']);
    // Box, 1, provider, 1, box.
    for (const limit of [4, 5, 6]) one.send(limit, '198.51.100.1', 4002, limit);
    await simulation.run();
    expect(two.got.slice(1)).toEqual(['6 from 198.51.100.1:4001']);
  });

  it('shows in packets, and a closed socket sends none', async () => {
    const { simulation, one } = homes();
    const limits: number[] = [];
    simulation.onPacket = ({ hopLimit }) => {
      limits.push(hopLimit);
      return undefined;
    };
    one.send(1, '198.51.100.2', 4000);
    one.send(2, '198.51.100.2', 4000, 4);
    // Its own box drops this one: it never reaches the link.
    one.send(3, '198.51.100.2', 4000, 1);
    one.host.stop();
    one.send(4, '198.51.100.2', 4000, 4);
    await simulation.run();
    expect(limits).toEqual([64, 4]);
  });

  it('meets as many routers before a host that returned as before, or as many as it returned with', async () => {
    const { simulation, one, two } = homes({ filter: 'none' });
    const addresses = ['203.0.113.9/24'];
    party(simulation.host('server', { addresses, hops: 2 }), 4000).host.stop();
    for (const [more, least] of [
      [{}, 7],
      [{ hops: 4 }, 9],
      [{}, 9],
      [{ addresses }, 5],
    ] as const) {
      const server = party(simulation.host('server', more), 4000);
      for (const limit of [least - 1, least]) one.send(limit, '203.0.113.9', 4000, limit);
      await simulation.run();
      expect([server.got, two.got]).toEqual([[`${least} from 198.51.100.1:4000`], []]);
      server.host.stop();
    }
  });
});
