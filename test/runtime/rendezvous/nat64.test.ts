/** How an end learns the NAT64 prefix of its network (RFC 7050), and when it asks. */
import { describe, expect, test } from 'vitest';
import { PlainHost } from '../../../bench/nat/plain-host.ts';
import { Gatherer, LocalEnd, type StationView, StunDispatcher } from '../../../runtime/rendezvous/index.ts';
import { Simulation } from '../../../testing/index.ts';

type Kind = 'default' | 'other' | 'virtual';

const V6 = '2001:db8:64::5/64';
const V4 = '192.168.1.5/24';
const FAR = '203.0.113.9';
const TRANSLATED = '64:ff9b::cb00:7109';
const STATION: StationView = { at: { address: '2001:db8::1', port: 4433 }, observed: null, ask: async () => null, stun: [], name: null };

/** A host in networks of the test's choice, and its queries to the resolver. */
function hostOf(...cidrs: string[]) {
  const simulation = new Simulation();
  const plain = new PlainHost(simulation.host('end', { addresses: [V6, V4] }), 5_600);
  const end = {
    interfaces: interfacesOf(cidrs),
    asked: 0,
    answer: async (): Promise<string[]> => ['64:ff9b::c000:aa', '64:ff9b::c000:ab'],
  };
  const network = plain.environment.network as { interfaces: unknown; resolve: unknown };
  network.interfaces = () => end.interfaces;
  network.resolve = (name: string) => {
    if (name !== 'ipv4only.arpa') return Promise.resolve(['2001:db8::1', '198.51.100.1']);
    end.asked++;
    return end.answer();
  };
  const gatherer = new Gatherer({ host: plain, dispatcher: new StunDispatcher(plain) });
  return { simulation, plain, end, gatherer };
}

/** @param cidrs each an interface, with its kind after a space unless it is a default one */
function interfacesOf(cidrs: readonly string[]) {
  return cidrs.map((text, i) => {
    const [cidr, kind = 'default'] = text.split(' ') as [string, Kind?];
    return { name: `net${i}`, addresses: [cidr], kind };
  });
}

describe('a host', () => {
  test.each([[V6], [V6, '172.17.0.1/16 virtual'], [V6, '169.254.7.7/16'], [V6, '169.254.7.7/16 other', '10.8.0.2/24 virtual']])(
    'with %j asks for the prefix that translates to IPv4',
    async (...cidrs) => {
      const { simulation, gatherer, end } = hostOf(...cidrs);
      expect(gatherer.reach(FAR)).toBe(FAR);
      await simulation.run(10);
      expect([gatherer.reach(FAR), gatherer.reach('2001:db8::9'), end.asked]).toEqual([TRANSLATED, '2001:db8::9', 1]);
    },
  );

  test.each([[V4], [V6, `${V4} other`]])('with %j reaches IPv4 itself, and asks no resolver', async (...cidrs) => {
    const { simulation, gatherer, end } = hostOf(...cidrs);
    await simulation.run(10);
    expect([gatherer.reach(FAR), end.asked]).toEqual([FAR, 0]);
  });

  test('whose only IPv4 is a container bridge reaches the STUN ports of a station there by the prefix', async () => {
    const station = { ...STATION, stun: [{ port: 4434 }], name: 'station' };
    for (const [kind, asked] of [
      ['virtual', ['2001:db8::1', '64:ff9b::c633:6401']],
      ['other', ['2001:db8::1', '198.51.100.1']],
    ] as const) {
      const { simulation, gatherer } = hostOf(V6, `172.17.0.1/16 ${kind}`);
      const seen = new Set<string>();
      simulation.onPacket = ({ destination }) => {
        seen.add(destination.address);
        return 'drop';
      };
      await simulation.run(10);
      gatherer.gather(station, true, () => {});
      await simulation.run(1_000);
      expect([...seen]).toEqual(asked);
    }
  });
});

describe('a host that changes networks', () => {
  const later = <T>(simulation: Simulation, time: number, value: T): Promise<T> =>
    new Promise((resolve) => simulation.host(`timer ${time}`).clock.schedule(time, () => resolve(value)));

  test('from NAT64 to IPv4 and back without a watcher is found there by the next watcher', async () => {
    const { simulation, gatherer, end } = hostOf(V6);
    await simulation.run(10);
    end.interfaces = interfacesOf([V4]);
    await simulation.run(60_000);
    const stop = gatherer.watch(() => {});
    await simulation.run(60_000);
    expect(gatherer.reach(FAR)).toBe(FAR);
    stop();
    end.interfaces = interfacesOf([V6]);
    gatherer.watch(() => {});
    await simulation.run(10);
    expect(gatherer.reach(FAR)).toBe(TRANSLATED);
  });

  test('is found there by the next list of addresses, and with a watcher in 3 s', async () => {
    const { simulation, gatherer, end } = hostOf(V4);
    end.interfaces = interfacesOf([V6]);
    gatherer.gather(null, true, () => {});
    await simulation.run(10);
    expect(gatherer.reach(FAR)).toBe(TRANSLATED);
    gatherer.watch(() => {});
    end.interfaces = interfacesOf([V4]);
    await simulation.run(3_000);
    expect(gatherer.reach(FAR)).toBe(FAR);
  });

  test('is looked at for a watcher alone: who only wants to know of changes costs no look at rest', async () => {
    const { simulation, gatherer, end, plain } = hostOf(V4);
    let [looks, changes] = [0, 0];
    (plain.environment.network as { interfaces: unknown }).interfaces = () => {
      looks++;
      return end.interfaces;
    };
    const stop = gatherer.onChange(() => changes++);
    looks = 0;
    await simulation.run(60_000);
    expect(looks).toBe(0);
    const stopWatching = gatherer.watch(() => {});
    end.interfaces = interfacesOf([V6]);
    await simulation.run(3_000);
    expect([looks > 0, changes]).toEqual([true, 1]);
    stopWatching();
    looks = 0;
    await simulation.run(60_000);
    expect(looks).toBe(0);
    gatherer.changed();
    stop();
    gatherer.changed();
    expect(changes).toBe(2);
  });

  test('asks once in each network where the answer contains a prefix', async () => {
    const { simulation, gatherer, end } = hostOf(V6);
    gatherer.watch(() => {});
    for (let i = 0; i < 10; i++) {
      gatherer.gather(null, true, () => {});
      await simulation.run(30_000);
    }
    expect(end.asked).toBe(1);
  });

  test('ignores a slow answer from its previous network', async () => {
    const { simulation, gatherer, end } = hostOf(V4);
    end.interfaces = interfacesOf([V6]);
    end.answer = () => later(simulation, 5_000, ['2001:db8:64:ff::c000:aa']);
    gatherer.refresh();
    end.interfaces = interfacesOf(['2001:db8:65::5/64']);
    end.answer = () => later(simulation, 1_000, ['64:ff9b::c000:aa']);
    gatherer.refresh();
    await simulation.run(10_000);
    expect([gatherer.reach(FAR), end.asked]).toEqual([TRANSLATED, 2]);
  });
});

describe('a host that starts before its network', () => {
  test('finds the prefix once it has an address', async () => {
    const { simulation, gatherer, end } = hostOf();
    await simulation.run(60_000);
    end.interfaces = interfacesOf([V6]);
    gatherer.gather(null, true, () => {});
    await simulation.run(10);
    expect(gatherer.reach(FAR)).toBe(TRANSLATED);
  });

  test('asks a resolver that did not answer again, at most every 10 s', async () => {
    const { simulation, plain, gatherer, end } = hostOf(V4);
    const { answer } = end;
    end.interfaces = interfacesOf([V6]);
    end.answer = () => Promise.reject(new Error('DNS'));
    const local = new LocalEnd(plain, { mapsPort: false });
    for (let second = 0; second < 30; second++) {
      if (second === 25) end.answer = answer;
      local.mapPort(STATION);
      await simulation.run(1_000);
    }
    expect(end.asked).toBe(3);
    expect([local.gatherer.reach(FAR), gatherer.reach(FAR)]).toEqual([FAR, FAR]);
    local.mapPort(STATION);
    await simulation.run(10);
    expect([local.gatherer.reach(FAR), end.asked]).toEqual([TRANSLATED, 4]);
  });
});

test('still notices a network change as a device that attaches time and again', async () => {
  const { simulation, plain, end } = hostOf(V4);
  let checks = 0;
  const network = plain.environment.network as { gateways: () => readonly string[] };
  network.gateways = () => {
    checks++;
    return [];
  };
  const local = new LocalEnd(plain, { mapsPort: true });
  const attach = (): void => local.mapPort({ ...STATION, at: { address: '198.51.100.1', port: 4433 } });
  attach();
  await simulation.run(2_000);
  attach();
  end.interfaces = interfacesOf([V6]);
  attach();
  expect(checks).toBe(1);
  local.networkChanged();
  await simulation.run(1_000);
  expect([checks, local.gatherer.reach(FAR)]).toEqual([2, TRANSLATED]);
  void local.close();
  local.networkChanged();
  await simulation.run(60_000);
  expect(checks).toBe(2);
});
