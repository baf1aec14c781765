/** What an end knows of the NAT64 of its network (RFC 7050), and when it asks. */
import { describe, expect, test } from 'vitest';
import { PlainHost } from '../../../bench/nat/plain-host.ts';
import type { StationView } from '../../../transport/rendezvous/index.ts';
import { Gatherer, StunDispatcher } from '../../../transport/rendezvous/index.ts';
import { Simulation } from '../../../transport/sim/index.ts';

type Kind = 'default' | 'other' | 'virtual';

const V6 = '2001:db8:64::5/64';
const V4 = '192.168.1.5/24';
const FAR = '203.0.113.9';
const TRANSLATED = '64:ff9b::cb00:7109';
const STATION: StationView = { at: { address: '2001:db8::1', port: 4433 }, observed: null, ask: async () => null, stun: [], name: null };

/** A host in networks of the test's choice, and what it has asked its resolver. */
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

/** @param cidrs each an interface, with its kind behind a blank where it is no default one */
function interfacesOf(cidrs: readonly string[]) {
  return cidrs.map((text, i) => {
    const [cidr, kind = 'default'] = text.split(' ') as [string, Kind?];
    return { name: `net${i}`, addresses: [cidr], kind };
  });
}

describe('a host', () => {
  test.each([[V6], [V6, '172.17.0.1/16 virtual'], [V6, '169.254.7.7/16'], [V6, '169.254.7.7/16 other', '10.8.0.2/24 virtual']])(
    'with %j asks what translates to IPv4',
    async (...cidrs) => {
      const { simulation, gatherer, end } = hostOf(...cidrs);
      expect(gatherer.reach(FAR)).toBe(FAR);
      await simulation.run(10);
      expect([gatherer.reach(FAR), gatherer.reach('2001:db8::9'), end.asked]).toEqual([TRANSLATED, '2001:db8::9', 1]);
    },
  );

  test.each([[V4], [V6, `${V4} other`]])('with %j reaches IPv4 itself, and asks nobody', async (...cidrs) => {
    const { simulation, gatherer, end } = hostOf(...cidrs);
    await simulation.run(10);
    expect([gatherer.reach(FAR), end.asked]).toEqual([FAR, 0]);
  });

  test('whose only IPv4 is a container bridge reaches the STUN ports of a station there by what translates', async () => {
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
