/** NAT boxes with IPv4: which datagrams they pass, and with which source. */
import { describe, expect, it } from 'vitest';
import { type NatOptions, Simulation } from '../../testing/index.ts';
import { fates, party, sourceOf } from './nat-support.ts';

const BOX = '198.51.100.7';

/** A host behind a box, and a server with two addresses and two ports at each. */
function home(options: Partial<NatOptions> = {}, seed = 1) {
  const simulation = new Simulation({ seed, link: { delay: 10 } });
  const box = simulation.nat('box', { outside: [BOX], ...options });
  const inside = party(simulation.host('inside', { addresses: ['192.168.1.5/24'], behind: box }), 4000);
  const server = simulation.host('server', { addresses: ['203.0.113.1/24', '203.0.113.2/24'] });
  const first = party(server, 1);
  const sockets = { '203.0.113.1:1': first, '203.0.113.1:2': party(server, 2) };
  const other = party(simulation.host('other', { addresses: ['203.0.114.1/24'] }), 1);
  return { simulation, box, inside, server, other, first, all: { ...sockets, '203.0.114.1:1': other } };
}

describe('a NAT box', () => {
  it.each([
    // mapping, filter → same ports for another port and another address; passed from the same, another port, another
    // address
    ['independent', 'none', [true, true], [true, true, true]],
    ['independent', 'address', [true, true], [true, true, false]],
    ['independent', 'address-port', [true, true], [true, false, false]],
    ['address', 'none', [true, false], [true, true, true]],
    ['address', 'address', [true, false], [true, true, false]],
    ['address', 'address-port', [true, false], [true, false, false]],
    ['address-port', 'none', [false, false], [true, true, true]],
    ['address-port', 'address', [false, false], [true, true, false]],
    ['address-port', 'address-port', [false, false], [true, false, false]],
  ] as const)('maps %s and filters %s as RFC 4787 says', async (mapping, filter, alike, passes) => {
    const filtering = home({ mapping, filter });
    filtering.inside.send(1, '203.0.113.1', 1);
    await filtering.simulation.run();
    const { address, port } = sourceOf(filtering.first.got[0]);
    expect(address).toBe(BOX);
    for (const [i, each] of Object.values(filtering.all).entries()) each.send(i, address, port);
    await filtering.simulation.run();
    const expected = Object.keys(filtering.all).flatMap((from, i) => (passes[i] ? [`${i} from ${from}`] : []));
    expect(filtering.inside.got).toEqual(expected);

    const mapped = home({ mapping, filter });
    for (const [to, toPort] of [
      ['203.0.113.1', 1],
      ['203.0.113.1', 2],
      ['203.0.114.1', 1],
    ] as const)
      mapped.inside.send(1, to, toPort);
    await mapped.simulation.run();
    const ports = Object.values(mapped.all).map(({ got }) => sourceOf(got[0]).port);
    expect([ports[1] === ports[0], ports[2] === ports[0]]).toEqual(alike);
  });

  it.each(['preserve', 'sequential', 'random'] as const)('gives ports: %s', async (ports) => {
    const { simulation, box, first } = home({ mapping: 'address-port', ports, stride: -3 });
    const other = party(simulation.host('second', { addresses: ['192.168.1.6/24'], behind: box }), 4000);
    const others = Array.from({ length: 4 }, (_, i) => party(other.host, 4001 + i));
    for (const each of [other, ...others]) each.send(0, '203.0.113.1', 1);
    await simulation.run();
    const given = first.got.map((got) => sourceOf(got).port);
    if (ports === 'preserve') expect(given).toEqual([4000, 4001, 4002, 4003, 4004]);
    if (ports === 'sequential') expect(given.slice(1).map((port, i) => port - given[i]!)).toEqual([-3, -3, -3, -3]);
    if (ports === 'random') expect(new Set(given.slice(1).map((port, i) => port - given[i]!)).size).toBe(4);
  });

  it('assigns the next port where two hosts have the same', async () => {
    const { simulation, box, inside, first } = home();
    const second = party(simulation.host('second', { addresses: ['192.168.1.6/24'], behind: box }), 4000);
    for (const each of [inside, second]) each.send(0, '203.0.113.1', 1);
    await simulation.run();
    expect(first.got).toEqual([`0 from ${BOX}:4000`, `0 from ${BOX}:4001`]);
  });

  it('passes no incoming datagram before an outgoing one, and counts the reason', async () => {
    const { simulation, box, inside, first, other } = home();
    const seen = fates(simulation);
    first.send(1, BOX, 4000);
    await simulation.run();
    inside.send(2, '203.0.113.1', 1);
    await simulation.run();
    other.send(3, BOX, 4000);
    first.send(4, BOX, 4000);
    await simulation.run();
    expect(inside.got).toEqual(['4 from 203.0.113.1:1']);
    expect(seen).toEqual(['unmapped', 'delivered', 'filtered', 'delivered']);
    expect(box.stats).toMatchObject({ out: 1, in: 1, unmapped: 1, filtered: 1, mappings: 1, foreign: 0 });
  });

  it('decides on arrival: datagrams sent meanwhile count', async () => {
    const { simulation, inside, first } = home();
    first.send(1, BOX, 4000);
    await simulation.run(5);
    inside.send(2, '203.0.113.1', 1);
    await simulation.run();
    expect(inside.got).toEqual(['1 from 203.0.113.1:1']);
  });

  it("carries over the hosts' link, even without a mapping", async () => {
    const { simulation, inside, first, server } = home();
    simulation.link(server, inside.host, { delay: 70 });
    const packets: string[] = [];
    simulation.onPacket = ({ from, to, source, destination }) => {
      packets.push(`${from} ${source.address}:${source.port} > ${to} ${destination.address}:${destination.port}`);
      return undefined;
    };
    first.send(1, BOX, 4000);
    inside.send(2, '203.0.113.1', 1);
    await simulation.run();
    expect(simulation.now).toBe(70);
    expect(packets).toEqual([`server 203.0.113.1:1 > inside ${BOX}:4000`, `inside ${BOX}:4000 > server 203.0.113.1:1`]);
  });

  it('discards a flow after 30 s, and one with traffic both ways for more than 2 s after 120 s', async () => {
    const passes = async (exchanges: number, pause: number) => {
      const { simulation, inside, first } = home();
      for (let i = 0; i < exchanges; i++) {
        inside.send(i, '203.0.113.1', 1);
        await simulation.run(1000);
        first.answer(i);
        await simulation.run(1000);
      }
      inside.got.length = 0;
      await simulation.run(pause - 1000);
      first.answer(99);
      await simulation.run(50);
      return inside.got.length === 1;
    };
    expect([await passes(1, 29_900), await passes(1, 30_100), await passes(3, 119_900), await passes(3, 120_100)]).toEqual([
      true,
      false,
      true,
      false,
    ]);
  });

  it('discards everything at a reboot', async () => {
    const { simulation, box, inside, first } = home({ ports: 'sequential' });
    inside.send(1, '203.0.113.1', 1);
    await simulation.run();
    box.forget();
    first.answer(2);
    await simulation.run();
    expect(inside.got).toEqual([]);
    inside.send(3, '203.0.113.1', 1);
    await simulation.run();
    expect(sourceOf(first.got[1]).port).toBe(sourceOf(first.got[0]).port + 1);
  });

  it('hairpins only when configured, and then shows the address outside', async () => {
    for (const hairpin of [false, true]) {
      const { simulation, box, inside } = home({ hairpin, filter: 'none' });
      const second = party(simulation.host('second', { addresses: ['192.168.1.6/24'], behind: box }), 5000);
      second.send(1, '203.0.113.1', 1);
      await simulation.run();
      inside.send(2, BOX, 5000);
      await simulation.run();
      expect(second.got).toEqual(hairpin ? [`2 from ${BOX}:4000`] : []);
      expect(box.stats.hairpin).toBe(hairpin ? 0 : 1);
    }
  });

  it('filters hairpinned datagrams', async () => {
    const { simulation, box, inside } = home({ hairpin: true });
    const second = party(simulation.host('second', { addresses: ['192.168.1.6/24'], behind: box }), 5000);
    second.send(1, '203.0.113.1', 1);
    inside.send(2, BOX, 5000);
    await simulation.run();
    second.send(3, BOX, 4000);
    inside.send(4, BOX, 5000);
    await simulation.run();
    expect([second.got, inside.got]).toEqual([[`4 from ${BOX}:4000`], [`3 from ${BOX}:5000`]]);
  });

  it('claims unsolicited datagrams, and gives the flow there another port', async () => {
    const { simulation, box, inside, first, other } = home({ inbound: 'claim' });
    inside.send(1, '203.0.113.1', 1);
    other.send(2, BOX, 4000);
    await simulation.run();
    inside.send(3, '203.0.114.1', 1);
    inside.send(4, '203.0.113.1', 1);
    await simulation.run();
    expect(other.got).toEqual([`3 from ${BOX}:4001`]);
    expect(first.got).toEqual([`1 from ${BOX}:4000`, `4 from ${BOX}:4000`]);
    other.answer(5);
    await simulation.run();
    expect(inside.got).toEqual(['5 from 203.0.114.1:1']);
    expect(box.stats.claimed).toBe(1);
  });

  it('passes no UDP where it is blocked, except with allowed addresses', async () => {
    const { simulation, box, inside, first, other } = home({ blocked: true, allow: ['203.0.113.1'], filter: 'none' });
    inside.send(1, '203.0.113.1', 1);
    inside.send(2, '203.0.114.1', 1);
    await simulation.run();
    other.send(3, BOX, 4000);
    first.answer(4);
    await simulation.run();
    expect([first.got, other.got, inside.got]).toEqual([[`1 from ${BOX}:4000`], [], ['4 from 203.0.113.1:1']]);
    expect(box.stats.blocked).toBe(2);
  });

  it('forwards a configured port, answers from it, and removes it', async () => {
    for (const mapping of ['independent', 'address-port'] as const) {
      const { simulation, box, inside, other } = home({ mapping, ports: 'random' });
      const remove = box.forward(80, { address: '192.168.1.5', port: 4000 });
      box.forget();
      other.send(1, BOX, 80);
      await simulation.run(60_000);
      inside.answer(2);
      await simulation.run(60_000);
      expect([inside.got, other.got]).toEqual([['1 from 203.0.114.1:1'], [`2 from ${BOX}:80`]]);
      remove();
      other.answer(3);
      inside.answer(4);
      await simulation.run();
      expect(inside.got).toHaveLength(1);
      expect(sourceOf(other.got[1]).port).not.toBe(80);
    }
  });

  it('refuses invalid options', () => {
    const { simulation, box } = home();
    const invalid = expect.objectContaining({ code: 'INVALID_ARGUMENT' });
    expect(() => simulation.nat('box', { outside: ['198.51.100.8'] })).toThrow(invalid);
    expect(() => simulation.nat('inside', { outside: ['198.51.100.8'] })).toThrow(invalid);
    expect(() => simulation.host('box')).toThrow(expect.objectContaining({ message: 'the simulation already has a host or box box' }));
    expect(() => simulation.nat('same', { outside: [BOX] })).toThrow(invalid);
    expect(() => simulation.nat('none', { outside: ['nonsense'] })).toThrow(invalid);
    expect(() => simulation.nat('allow', { outside: ['198.51.100.8'], allow: ['nonsense'] })).toThrow(invalid);
    expect(() => simulation.nat('stride', { outside: ['198.51.100.8'], stride: 65_536 })).toThrow(invalid);
    expect(() => simulation.nat('nat64', { outside: ['198.51.100.8'], nat64: '64:ff9b::/64' })).toThrow(invalid);
    expect(() => box.forward(1, { address: '192.168.1.5', port: 1 }, '198.51.100.9')).toThrow(invalid);
  });
});

describe('foreign flows', () => {
  it('take ports: a Poisson process of the configured rate', async () => {
    const { simulation, box, inside, first } = home({ mapping: 'address-port', ports: 'sequential', timeout: 5000 });
    box.occupy(5);
    const steps: number[] = [];
    let last = 0;
    for (let i = 0; i < 400; i++) {
      inside.send(1, '203.0.113.1', 1);
      await simulation.run(5000);
      const { port } = sourceOf(first.got.at(-1));
      if (port > last) steps.push(port - last - 1);
      last = port;
    }
    const counted = steps.slice(1);
    const mean = counted.reduce((sum, step) => sum + step) / counted.length;
    const variance = counted.reduce((sum, step) => sum + (step - mean) ** 2, 0) / counted.length;
    // Twenty-five in 5 s on average; the variance of a Poisson distribution is the same.
    expect(Math.abs(mean - 25)).toBeLessThan(1);
    expect(variance).toBeGreaterThan(18);
    expect(variance).toBeLessThan(33);
    expect(Math.abs(box.stats.foreign / 2000 - 5)).toBeLessThan(0.3);
    box.occupy(0);
    const before = box.stats.foreign;
    await simulation.run(10_000);
    expect(box.stats.foreign).toBe(before);
  });

  it('can have the port of a socket, and pass no datagram to it', async () => {
    const { simulation, box, first } = home({ ports: 'preserve', timeout: 1e6 });
    box.occupy(1000);
    await simulation.run(10_000);
    for (let port = 32_768; port < 61_000; port += 100) first.send(1, BOX, port);
    await simulation.run();
    expect([box.stats.filtered > 60, box.stats.in]).toEqual([true, 0]);
  });
});

describe('boxes', () => {
  /** Two homes with the same addresses inside, behind one provider or not. */
  function homes(options: Partial<NatOptions> = {}, provider?: Partial<NatOptions>) {
    const simulation = new Simulation({ link: { delay: 10 } });
    const behind = provider === undefined ? {} : { behind: simulation.nat('provider', { outside: [BOX], ...provider }) };
    const parties = [1, 2].map((i) => {
      const outside = [provider === undefined ? `198.51.101.${i}` : `100.64.0.${i}`];
      const box = simulation.nat(`box ${i}`, { outside, ...behind, ...options });
      return { box, ...party(simulation.host(`host ${i}`, { addresses: ['192.168.1.5/24'], behind: box }), 4000) };
    });
    const server = party(simulation.host('server', { addresses: ['203.0.113.1/24'] }), 1);
    return { simulation, one: parties[0]!, two: parties[1]!, server, provider: behind.behind };
  }

  it('have separate realms: the same addresses twice, and neighbours behind one box', async () => {
    const { simulation, one, two } = homes();
    const neighbour = party(simulation.host('neighbour', { addresses: ['192.168.1.6/24'], behind: one.box }), 5000);
    for (const each of [one, two]) each.send(1, '192.168.1.6', 5000);
    one.send(2, '192.168.1.5', 4000);
    await simulation.run();
    expect(neighbour.got).toEqual(['1 from 192.168.1.5:4000']);
    expect([one.got, two.got]).toEqual([['2 from 192.168.1.5:4000'], []]);
    expect([one.box.stats.out, two.box.stats.out]).toEqual([0, 0]);
    // An address of another network does not stay on the link.
    two.send(3, '192.168.2.6', 5000);
    expect(two.box.stats.out).toBe(1);
  });

  it('are punched: each end sends first', async () => {
    const { simulation, one, two } = homes();
    one.send(1, '198.51.101.2', 4000);
    two.send(2, '198.51.101.1', 4000);
    await simulation.run();
    expect([one.got, two.got]).toEqual([['2 from 198.51.101.2:4000'], ['1 from 198.51.101.1:4000']]);
  });

  it('cannot be punched at once where both claim unsolicited datagrams', async () => {
    const { simulation, one, two } = homes({ inbound: 'claim' });
    for (const each of [one, two]) each.send(0, '203.0.113.1', 1);
    await simulation.run();
    one.send(1, '198.51.101.2', 4000);
    await simulation.run();
    two.send(2, '198.51.101.1', 4000);
    one.send(3, '198.51.101.2', 4000);
    await simulation.run();
    expect([one.got, two.got]).toEqual([[], []]);
    expect([one.box.stats.claimed, two.box.stats.claimed]).toEqual([1, 2]);
  });

  it('stand behind one another: both map, and both filter', async () => {
    const { simulation, one, two, server, provider } = homes({}, { ports: 'random' });
    one.send(1, '203.0.113.1', 1);
    two.send(1, '203.0.113.1', 1);
    await simulation.run();
    const [first, second] = server.got.map(sourceOf);
    expect([first!.address, second!.address, first!.port === second!.port]).toEqual([BOX, BOX, false]);
    server.send(2, BOX, second!.port);
    await simulation.run();
    expect([one.got, two.got]).toEqual([[], ['2 from 203.0.113.1:1']]);
    one.box.forget();
    server.send(3, BOX, first!.port);
    await simulation.run();
    expect([one.box.stats.unmapped, provider!.stats.in, one.got]).toEqual([1, 2, []]);
  });

  it('of one provider reach one another at its addresses behind, or by hairpin', async () => {
    const { simulation, one, two } = homes({ filter: 'none' }, { hairpin: true, filter: 'none' });
    two.send(0, '203.0.113.1', 1);
    await simulation.run();
    one.send(1, '100.64.0.2', 4000);
    one.send(2, BOX, 4000);
    await simulation.run();
    expect(two.got).toEqual(['1 from 100.64.0.1:4000', `2 from ${BOX}:4001`]);
  });

  it('keep multicast DNS and names within the realm', async () => {
    const { simulation, one, two, server } = homes();
    const neighbour = simulation.host('neighbour', { addresses: ['192.168.1.6/24'], behind: one.box });
    const heard: string[] = [];
    for (const host of [neighbour, two.host, server.host])
      host.mdns.open(host.mdns.links()[0]!, { received: () => heard.push(host.name), failed: () => {} });
    const socket = one.host.mdns.open(one.host.mdns.links()[0]!, { received: () => heard.push('itself'), failed: () => {} });
    socket.send({} as Parameters<typeof socket.send>[0], null);
    await simulation.run();
    expect(heard.sort()).toEqual(['itself', 'neighbour']);
    expect(await one.host.network.resolve('neighbour')).toEqual(['192.168.1.6']);
    expect(await one.host.network.resolve('server')).toEqual(['203.0.113.1']);
    await expect(two.host.network.resolve('neighbour')).rejects.toMatchObject({ code: 'DNS' });
    await expect(server.host.network.resolve('neighbour')).rejects.toMatchObject({ code: 'DNS' });
  });

  it('have hosts that are rebound, stop and return', async () => {
    const { simulation, one, server } = homes();
    one.send(1, '203.0.113.1', 1);
    simulation.rebind(one.host);
    one.send(2, '203.0.113.1', 1);
    await simulation.run();
    const [before, after] = server.got.map(sourceOf);
    expect([before!.address, after!.address, before!.port === after!.port]).toEqual(['198.51.101.1', '198.51.101.1', false]);
    server.send(3, after!.address, after!.port);
    server.send(4, before!.address, before!.port);
    await simulation.run();
    expect(one.got).toEqual(['3 from 203.0.113.1:1']);
    one.host.stop();
    const back = party(simulation.host('host 1'), 4000);
    back.send(5, '203.0.113.1', 1);
    await simulation.run();
    expect(back.host.addresses).toEqual(['192.168.1.5']);
    expect(sourceOf(server.got.at(-1)).address).toBe('198.51.101.1');
  });

  it('pass forged datagrams: from the core, and from a realm', async () => {
    const { simulation, one, two, server } = homes({ filter: 'none' });
    two.send(0, '203.0.113.1', 1);
    await simulation.run();
    simulation.inject({ address: '203.0.113.99', port: 9 }, { address: '198.51.101.2', port: 4000 }, Uint8Array.of(1));
    simulation.inject({ address: '192.168.1.9', port: 9 }, { address: '192.168.1.5', port: 4000 }, Uint8Array.of(2), one.box);
    simulation.inject({ address: '192.168.1.9', port: 9 }, { address: '203.0.113.1', port: 1 }, Uint8Array.of(3), one.box);
    await simulation.run();
    expect([one.got, two.got, server.got.at(-1)]).toEqual([['2 from 192.168.1.9:9'], ['1 from 203.0.113.99:9'], '3 from 198.51.101.1:9']);
  });
});

describe('interfaces and gateways', () => {
  it('are one for each network, those with a default route first, and the routers before the host', () => {
    const simulation = new Simulation();
    const box = simulation.nat('box', { outside: [BOX], inside: ['192.168.1.1', 'FE80::1'] });
    const addresses = ['172.17.0.1/16', '192.168.1.5/24', '10.9.0.1/24'];
    const { network } = simulation.host('inside', { addresses, behind: box, kinds: ['virtual', 'default', 'other'] });
    expect(network.interfaces?.()).toEqual([
      { name: 'sim1', addresses: ['192.168.1.5/24'], kind: 'default' },
      { name: 'sim2', addresses: ['10.9.0.1/24'], kind: 'other' },
      { name: 'sim0', addresses: ['172.17.0.1/16'], kind: 'virtual' },
    ]);
    expect(network.gateways?.()).toEqual(['192.168.1.1', 'fe80::1']);
    const open = simulation.host('open', { addresses: ['203.0.113.1/24'] }).network;
    expect([open.interfaces?.(), open.gateways?.()]).toEqual([[{ name: 'sim0', addresses: ['203.0.113.1/24'], kind: 'default' }], []]);
  });
});

describe('a run with boxes', () => {
  it('is the same for the same seed, and another for another', async () => {
    const run = async (seed: number) => {
      const { simulation, box, inside, first } = home({ mapping: 'address-port', ports: 'random' }, seed);
      box.occupy(5);
      for (let i = 0; i < 20; i++) {
        inside.send(i, '203.0.113.1', 1 + (i % 2));
        await simulation.run(31_000);
      }
      return [first.got, box.stats];
    };
    const first = await run(1);
    expect(await run(1)).toEqual(first);
    expect(await run(2)).not.toEqual(first);
  });
});
