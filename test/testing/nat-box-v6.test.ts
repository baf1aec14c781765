/** IPv6 behind boxes: forwarded, behind a firewall, not at all; and NAT64 with its resolver. */
import { describe, expect, it } from 'vitest';
import { type NatOptions, Simulation } from '../../testing/index.ts';
import { type Party, party } from './nat-support.ts';

const INSIDE = '2001:db8:7::5';
const SERVER = '2001:db8:99::1';

function home(options: Partial<NatOptions>) {
  const simulation = new Simulation();
  const box = simulation.nat('box', { outside: ['198.51.100.7', '2001:db8:7::/48'], ...options });
  const inside = party(simulation.host('inside', { addresses: ['192.168.1.5/24', `${INSIDE}/64`], behind: box }), 4000);
  const server = simulation.host('server', { addresses: ['203.0.113.1/24', `${SERVER}/64`] });
  return { simulation, box, inside, first: party(server, 1), second: party(server, 2) };
}

describe('IPv6 behind a box', () => {
  it('is forwarded both ways without translation', async () => {
    const { simulation, inside, first, second } = home({ v6: 'forward' });
    second.send(1, INSIDE, 4000);
    inside.send(2, SERVER, 1);
    inside.send(3, '203.0.113.1', 1);
    await simulation.run();
    expect(inside.got).toEqual([`1 from ${SERVER}:2`]);
    expect(first.got).toEqual([`2 from ${INSIDE}:4000`, '3 from 198.51.100.7:4000']);
  });

  it('passes a firewall only as an answer, by address and port, for as long as a flow is remembered', async () => {
    const { simulation, box, inside, first, second } = home({ v6: 'firewall', filter: 'none', mapping: 'address-port' });
    first.send(1, INSIDE, 4000);
    await simulation.run();
    inside.send(2, SERVER, 1);
    await simulation.run();
    first.send(3, INSIDE, 4000);
    second.send(4, INSIDE, 4000);
    await simulation.run(29_000);
    first.send(5, INSIDE, 4000);
    await simulation.run(60_000);
    expect([inside.got, first.got]).toEqual([[`3 from ${SERVER}:1`, `5 from ${SERVER}:1`], [`2 from ${INSIDE}:4000`]]);
    expect(box.stats.filtered).toBe(2);
    // It had traffic both ways for long.
    first.send(6, INSIDE, 4000);
    await simulation.run();
    box.forget();
    first.send(7, INSIDE, 4000);
    await simulation.run();
    expect(inside.got).toHaveLength(3);
  });

  it('does not leave the home where the box does not carry it, or lacks the prefix', async () => {
    const { simulation, box, inside, first } = home({});
    const neighbour = party(simulation.host('neighbour', { addresses: ['2001:db8:7::6/64'], behind: box }), 1);
    inside.send(1, SERVER, 1);
    first.send(2, INSIDE, 4000);
    inside.send(3, '2001:db8:7::6', 1);
    await simulation.run();
    expect([first.got, inside.got, neighbour.got]).toEqual([[], [], [`3 from ${INSIDE}:4000`]]);
    expect(box.stats.unrouted).toBe(2);

    const other = home({ outside: ['198.51.100.7', '2001:db8:8::/48'], v6: 'forward' });
    other.inside.send(1, SERVER, 1);
    await other.simulation.run();
    expect([other.first.got, other.box.stats.unrouted]).toEqual([[], 1]);
  });

  it('is punched through two firewalls, and forwarded by a provider', async () => {
    const simulation = new Simulation();
    const provider = simulation.nat('provider', { outside: ['198.51.100.7', '2001:db8::/40'], v6: 'forward' });
    const [one, two] = [1, 2].map((i) => {
      const outside = [`100.64.0.${i}`, `2001:db8:${i}::/48`];
      const box = simulation.nat(`box ${i}`, { outside, behind: provider, v6: 'firewall' });
      return party(simulation.host(`host ${i}`, { addresses: [`2001:db8:${i}::5/64`], behind: box }), 4000);
    }) as [Party, Party];
    const server = party(simulation.host('server', { addresses: [`2001:db9::1/64`] }), 1);
    one.send(1, '2001:db8:2::5', 4000);
    two.send(2, '2001:db8:1::5', 4000);
    two.send(3, '2001:db9::1', 1);
    await simulation.run();
    server.answer(4);
    await simulation.run();
    expect([one.got, two.got]).toEqual([['2 from 2001:db8:2::5:4000'], ['1 from 2001:db8:1::5:4000', '4 from 2001:db9::1:1']]);
  });
});

describe('NAT64', () => {
  function network(options: Partial<NatOptions> = {}) {
    const simulation = new Simulation();
    const box = simulation.nat('box', { outside: ['198.51.100.7', '2001:db8:7::/48'], v6: 'firewall', nat64: '64:ff9b::', ...options });
    const inside = party(simulation.host('inside', { addresses: [`${INSIDE}/64`], behind: box }), 4000);
    const server = party(simulation.host('server', { addresses: ['203.0.113.1/24'] }), 1);
    return { simulation, box, inside, server };
  }

  it('carries a host without IPv4 to IPv4 and back', async () => {
    const { simulation, inside, server } = network();
    server.send(1, '198.51.100.7', 4000);
    await simulation.run();
    inside.send(2, '64:ff9b::cb00:7101', 1);
    await simulation.run();
    expect(server.got).toEqual(['2 from 198.51.100.7:4000']);
    server.answer(3);
    await simulation.run();
    expect(inside.got).toEqual(['3 from 64:ff9b::cb00:7101:1']);
  });

  it('blocks by the IPv4 address, and gives no NAT64 to hosts without an address outside', async () => {
    const { simulation, box, inside, server } = network({ blocked: true, allow: ['203.0.113.1'] });
    inside.send(1, '64:ff9b::cb00:7101', 1);
    inside.send(2, '64:ff9b::cb00:7102', 1);
    await simulation.run();
    expect([server.got, box.stats.blocked]).toEqual([['1 from 198.51.100.7:4000'], 1]);
    const none = network({ outside: ['2001:db8:7::/48'] });
    none.inside.send(1, '64:ff9b::cb00:7101', 1);
    expect(none.box.stats.unrouted).toBe(1);
  });

  it('is announced by the resolver: names without IPv6 have addresses under the prefix', async () => {
    const { simulation, inside } = network({ nat64: '2001:db8:64::/96' });
    simulation.host('both', { addresses: ['203.0.113.9/24', '2001:db8:99::9/64'] });
    const resolve = (name: string) => inside.host.network.resolve(name);
    expect(await resolve('server')).toEqual(['2001:db8:64::cb00:7101', '203.0.113.1']);
    expect(await resolve('both')).toEqual(['203.0.113.9', '2001:db8:99::9']);
    expect((await resolve('ipv4only.arpa')).slice(0, 2)).toEqual(['2001:db8:64::c000:aa', '2001:db8:64::c000:ab']);
    await expect(resolve('nowhere')).rejects.toMatchObject({ code: 'DNS' });
    const outside = simulation.host('outside').network;
    expect(await outside.resolve('ipv4only.arpa')).toEqual(['192.0.0.170', '192.0.0.171']);
  });
});
