/** The mDNS scanner of one link among strangers, in virtual time: invalid messages, floods of records, full tables. */
import { describe, expect, test } from 'vitest';
import { type DnsRecord, dnsQuery, SERVICE_TYPE, serviceRecords } from '../../../protocol/discovery/index.ts';
import { Random } from '../../../testing/random.ts';
import { Bench, instance, ofTypes, PEER, records, shown, WHOLE, withTtl } from './scanner-bench.ts';

describe('hostile messages', () => {
  const hostile: [string, (bench: Bench) => void][] = [
    ['an answer from another port (§6)', (bench) => bench.hear(records(), { from: { ...PEER, port: 40_000 } })],
    ['answers in a query', (bench) => bench.receive(dnsQuery({ answers: records() }))],
    [
      'an instance of another type',
      (bench) => bench.hear(records().map((r) => (r.type === 'PTR' ? { ...r, data: 'x._http._tcp.local' } : r))),
    ],
    ['an instance with a dot', (bench) => bench.hear(records({ name: 'a.b' }))],
    ['an instance with a line end', (bench) => bench.hear(records({ name: 'a\nb' }))],
    ['an instance that is not UTF-8', (bench) => bench.hear(records({ name: 'a\ufffd' }))],
    ['an instance without a label', (bench) => bench.hear(records({ name: '' }))],
    ['a label of 64 bytes', (bench) => bench.hear(records({ name: 'ü'.repeat(32) }))],
    ['port 0', (bench) => bench.hear(records({ port: 0 }))],
    ['a TXT record over 1,300 bytes', (bench) => bench.hear(records({ text: 'x'.repeat(1300) }))],
    ['the address 0.0.0.0', (bench) => bench.hear(records({ addresses: ['0.0.0.0', '::'] }))],
    ['loopback of another host', (bench) => bench.hear(records({ addresses: ['127.0.0.1', '::1'] }))],
    ['multicast and broadcast', (bench) => bench.hear(records({ addresses: ['224.0.0.251', '255.255.255.255', 'ff02::1'] }))],
    [
      'a host outside of .local',
      (bench) =>
        bench.hear(
          records().map((r) =>
            r.type === 'SRV' ? { ...r, data: { ...r.data, target: 'bank.example' } } : r.type === 'A' ? { ...r, name: 'bank.example' } : r,
          ),
        ),
    ],
    ['addresses of a host that no SRV record names', (bench) => bench.hear(ofTypes(records(), 'PTR', 'TXT', 'A'))],
  ];
  test.each(hostile)('%s is ignored', (_, act) => {
    const bench = Bench.browsing();
    act(bench);
    bench.run(1_000);
    expect([...bench.services()].filter(([, { txt }]) => txt !== null)).toEqual([]);
  });

  test('1,300 bytes of TXT and loopback of this host are accepted', () => {
    const bench = Bench.browsing();
    bench.hear(records({ text: 'x'.repeat(1299), addresses: ['127.0.0.1', '::1'] }), { own: true });
    expect(bench.services().get(instance())?.endpoints).toHaveLength(2);
  });

  test('a host has 8 addresses of each family and an instance 2 SRV records: those heard last', () => {
    const bench = Bench.browsing();
    bench.hear(records({ addresses: [] }));
    const addresses = Array.from({ length: 100 }, (_, i) => [`192.0.2.${i + 1}`, `fd00::${i + 1}`]).flat();
    const heard = serviceRecords({ name: 'pr-1-de-1', port: 1, subtypes: [], txt: [], addresses }).filter(({ type }) => type !== 'TXT');
    bench.hear(heard);
    for (let port = 2; port < 100; port++) {
      bench.now++;
      bench.hear(ofTypes(records({ port }), 'SRV').map((record) => ({ ...record, flush: false })));
    }
    const { endpoints = [] } = bench.services().get(instance()) ?? {};
    expect(endpoints).toHaveLength(2 * 16);
    expect(new Set(endpoints.map(({ port }) => port))).toEqual(new Set([98, 99]));
    expect(endpoints.map(({ address }) => address)).toContain('192.0.2.100');
  });

  test('sixty devices that answer together are all reported, and queried once per TTL', () => {
    const random = new Random('sixty');
    const bench = Bench.browsing(() => random.fraction());
    bench.run(150);
    for (let i = 0; i < 60; i++) {
      bench.now += 0.1;
      bench.hear(records({ name: `pr-1-de-${i}` }));
    }
    expect(bench.services().size).toBe(60);
    bench.run(64_000);
    bench.questions();
    bench.run(98_700);
    const asked = bench.questions();
    expect(asked.flatMap(([, questions]) => questions).length).toBeLessThanOrEqual(3);
  });

  describe('a full table', () => {
    const LIMIT = 150;

    /** Fills the table with one instance after another. */
    function full(make: (name: string) => readonly DnsRecord[]): Bench {
      const bench = Bench.browsing(undefined, LIMIT);
      for (let i = 0; i < LIMIT; i++) {
        bench.now++;
        bench.hear(make(`forged-${i}`));
      }
      return bench;
    }
    const names = (name: string): DnsRecord[] => ofTypes(records({ name }), 'PTR');
    const whole = (name: string): DnsRecord[] => records({ name });

    test('of names without records drops the oldest for the next device', () => {
      const bench = full(names);
      bench.hear(whole('honest'));
      for (let i = 0; i < 200; i++) bench.hear(names(`more-${i}`));
      expect([...bench.services().keys()]).toEqual([instance('honest')]);
      bench.hear(whole('honest-2'));
      expect(bench.services().size).toBe(2);
    });

    test('of whole services drops the one heard longest ago, and reports its removal', () => {
      const bench = full(whole);
      expect(bench.services().size).toBe(LIMIT);
      bench.hear(whole('forged-0'));
      bench.hear(whole('honest'));
      const there = bench.services();
      expect(there.size).toBe(LIMIT);
      expect([there.has(instance('honest')), there.has(instance('forged-0')), there.has(instance('forged-1'))]).toEqual([
        true,
        true,
        false,
      ]);
    });

    test('has room for a device that is looked up by name, and never drops it', () => {
      const bench = full(whole);
      bench.scanner.find(instance(), bench.now);
      bench.hear(records());
      for (let i = 0; i < 200; i++) bench.hear(whole(`more-${i}`));
      expect(bench.services().size).toBe(LIMIT + 1);
      expect(shown(bench.services().get(instance()))).toEqual(WHOLE);
      bench.scanner.endFind(instance(), bench.now);
      bench.drain();
      expect(bench.services().size).toBe(LIMIT);
    });

    test('causes queries for missing records at a limited rate, and not for ever', () => {
      const bench = full(names);
      bench.sent.length = 0;
      const begin = bench.now;
      bench.run(begin + 60_000);
      const unique = bench.sent.filter(([, { questions }]) => questions.some(({ type }) => type !== 'PTR'));
      for (const [time] of unique) expect(unique.filter(([other]) => other >= time && other < time + 100).length).toBeLessThanOrEqual(4);
      const asked = unique.flatMap(([, { questions }]) => questions);
      expect(asked.length).toBeLessThanOrEqual(2 * 4 * LIMIT);
      expect(new Set(asked.map(({ name }) => name)).size).toBe(LIMIT);
      bench.sent.length = 0;
      bench.run(begin + 90_000);
      expect(bench.sent.filter(([, { questions }]) => questions.some(({ type }) => type !== 'PTR'))).toEqual([]);
    });

    test('is empty again when the TTLs have passed', () => {
      const bench = full(whole);
      // Expired records are removed ten times a second.
      bench.run(bench.now + 120_100);
      expect(bench.services().size).toBe(0);
      bench.scanner.endBrowse(SERVICE_TYPE);
      bench.run(bench.now + 10_000);
      expect(bench.scanner.nextTimeout()).toBe(Number.POSITIVE_INFINITY);
    });
  });

  test('records with a TTL of a second are queried once a second at most, and not for ever', () => {
    const bench = Bench.browsing();
    for (let i = 0; i < 200; i++) {
      bench.hear(withTtl(records(), 1));
      bench.run(bench.now + 100);
    }
    const perName = new Map<string, number>();
    for (const [, questions] of bench.questions()) for (const text of questions) perName.set(text, (perName.get(text) ?? 0) + 1);
    for (const count of perName.values()) expect(count).toBeLessThanOrEqual(21 + 6);
  });
});
