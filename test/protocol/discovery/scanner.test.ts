/** The mDNS scanner of one link in virtual time: RFC 6762 and RFC 6763, section by section. */
import { describe, expect, test } from 'vitest';
import {
  browsedName,
  type DnsMessage,
  type DnsRecord,
  dnsQuery,
  dnsResponse,
  instanceOf,
  MAX_INSTANCES,
  Responder,
  type ScannedService,
  Scanner,
  SERVICE_TYPE,
  type ServiceEvent,
  serviceRecords,
} from '../../../protocol/discovery/index.ts';
import { Random } from '../../../transport/sim/random.ts';

const PEER = { address: '192.0.2.1', port: 5353 };
const OTHER_SUBTYPE = browsedName('tcptunnel');

type Sent = readonly [time: number, message: DnsMessage];

interface Shape {
  name?: string;
  port?: number;
  text?: string;
  addresses?: readonly string[];
  subtypes?: readonly string[];
}

/** Records that a device announces, without NSEC. */
function records({
  name = 'pr-1-de-1',
  port = 5592,
  text = 'a=1',
  addresses = ['192.0.2.1', 'fe80::1'],
  subtypes = ['tcptunnel'],
}: Shape = {}) {
  return serviceRecords({ name, port, subtypes, addresses, txt: [new TextEncoder().encode(text)] }).filter(({ type }) => type !== 'NSEC');
}

const instance = (name = 'pr-1-de-1'): string => `${name}.${SERVICE_TYPE}`;
const ofTypes = (list: readonly DnsRecord[], ...types: string[]): DnsRecord[] => list.filter(({ type }) => types.includes(type));
const withTtl = (list: readonly DnsRecord[], ttl: number): DnsRecord[] => list.map((record) => ({ ...record, ttl }));

/** A scanner in virtual time, with what it sent and reported. */
class Bench {
  readonly scanner: Scanner;
  readonly sent: Sent[] = [];
  readonly events: [time: number, event: ServiceEvent][] = [];
  now = 0;

  constructor(random: () => number = () => 0) {
    this.scanner = new Scanner(random);
  }

  /** Makes a bench that browses the service type. */
  static browsing(random?: () => number): Bench {
    const bench = new Bench(random);
    bench.scanner.browse(SERVICE_TYPE, 0);
    return bench;
  }

  hear(answers: readonly DnsRecord[], { additionals = [] as readonly DnsRecord[], from = PEER, own = false } = {}): void {
    this.receive(dnsResponse({ answers, additionals }), from, own);
  }

  receive(message: DnsMessage, from = PEER, own = false): void {
    this.scanner.receive(message, from, this.now, own);
    this.drain();
  }

  run(until: number): void {
    for (let next = this.scanner.nextTimeout(); next <= until; next = this.scanner.nextTimeout()) {
      this.now = Math.max(this.now, next);
      this.scanner.handleTimeout(this.now);
      this.drain();
      expect(this.scanner.nextTimeout()).toBeGreaterThan(this.now);
    }
    this.now = until;
  }

  drain(): void {
    for (let out = this.scanner.transmit(); out !== null; out = this.scanner.transmit()) {
      expect(out.to).toBeNull();
      this.sent.push([this.now, out.message]);
    }
    for (let event = this.scanner.nextEvent(); event !== null; event = this.scanner.nextEvent()) this.events.push([this.now, event]);
  }

  /** Returns what was sent since the last call: time and questions of each message. */
  questions(): [number, string[]][] {
    return this.sent.splice(0).map(([time, { questions }]) => [time, questions.map(({ type, name }) => `${type} ${name}`)]);
  }

  /** Returns the services that exist according to the events. */
  services(): Map<string, ScannedService> {
    const there = new Map<string, ScannedService>();
    for (const [, { name, service }] of this.events) {
      if (service === null) there.delete(name);
      else there.set(name, service);
    }
    return there;
  }
}

/** Returns port, addresses and TXT items as text. */
function shown(service: ScannedService | null | undefined) {
  if (service === null || service === undefined) return null;
  const text = service.txt?.items.map((item) => new TextDecoder().decode(item)) ?? null;
  return [service.endpoints.map(({ address, port }) => `${address} ${port}`), text];
}

const WHOLE = [['192.0.2.1 5592', 'fe80::1 5592'], ['a=1']];

describe('questions (RFC 6762 §5.2)', () => {
  test('are sent after 20 to 120 ms, then after 1 s, then after twice the last pause, up to an hour', () => {
    for (const [random, first] of [
      [0, 20],
      [0.999, 119.9],
    ] as const) {
      const bench = Bench.browsing(() => random);
      bench.run(20_000_000);
      const times = bench.questions().map(([time]) => time);
      expect(times[0]).toBeCloseTo(first);
      const pauses = times.slice(1).map((time, index) => Math.round(time - times[index]!));
      expect(pauses.slice(0, 12)).toEqual([1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048].map((seconds) => seconds * 1000));
      expect(new Set(pauses.slice(12))).toEqual(new Set([3_600_000]));
    }
  });

  test('are sent for type and subtype independently, until their browse ends', () => {
    const bench = Bench.browsing();
    bench.scanner.browse(OTHER_SUBTYPE, 0);
    bench.run(500);
    expect(bench.questions()).toEqual([
      [20, [`PTR ${SERVICE_TYPE}`]],
      [20, [`PTR ${OTHER_SUBTYPE}`]],
    ]);
    bench.scanner.endBrowse(SERVICE_TYPE);
    bench.run(1_500);
    expect(bench.questions()).toEqual([[1020, [`PTR ${OTHER_SUBTYPE}`]]]);
    bench.scanner.endBrowse(OTHER_SUBTYPE);
    bench.run(100_000);
    expect(bench.questions()).toEqual([]);
  });
});

describe('known answers (§7.1, §7.2)', () => {
  test('are in a question while more than half of their TTL is left', () => {
    const bench = Bench.browsing();
    bench.run(500);
    bench.hear(records());
    bench.questions();
    bench.run(64_000);
    const known = bench.sent.map(([time, { answers }]) => [time, answers.map(({ name, ttl, flush }) => [name, ttl, flush])]);
    expect(known).toEqual([
      [1_020, [[SERVICE_TYPE, 120, false]]],
      [3_020, [[SERVICE_TYPE, 118, false]]],
      [7_020, [[SERVICE_TYPE, 114, false]]],
      [15_020, [[SERVICE_TYPE, 106, false]]],
      [31_020, [[SERVICE_TYPE, 90, false]]],
      [63_020, []],
    ]);
  });

  test('of a thousand devices are split into messages that each fit a frame', () => {
    const bench = Bench.browsing();
    bench.run(500);
    for (let i = 0; i < 1000; i++) bench.hear(records({ name: `pr-1-de-${i}` }));
    bench.sent.length = 0;
    bench.run(1_020);
    const messages = bench.sent.map(([, message]) => message);
    expect(messages.flatMap(({ questions }) => questions)).toHaveLength(1);
    expect(messages[0]?.questions).toHaveLength(1);
    expect(new Set(messages.flatMap(({ answers }) => answers.map(({ data }) => data))).size).toBe(1000);
    expect(messages.map(({ truncated }) => truncated)).toEqual([...Array(messages.length - 1).fill(true), false]);
    for (const { answers } of messages) {
      const bytes = answers.reduce((sum, { name, data }) => sum + name.length + String(data).length + 14, 12);
      expect(bytes).toBeLessThanOrEqual(1400);
    }
  });

  test('of a table full of long names take 64 messages at most', () => {
    const bench = Bench.browsing();
    bench.run(500);
    for (let i = 0; i < 1_100; i++) bench.hear(records({ name: `${i}`.padStart(63, 'x'), subtypes: [] }));
    bench.sent.length = 0;
    bench.run(1_020);
    const messages = bench.sent.map(([, message]) => message).filter(({ answers }) => answers.length > 0);
    expect(messages.length).toBeLessThanOrEqual(64);
    expect(messages.at(-1)?.truncated).toBe(false);
  });
});

describe("a neighbour's question (§7.3)", () => {
  const question = { name: SERVICE_TYPE.toUpperCase(), type: 'PTR', unicast: false };

  test('replaces our own, but not twice in a row', () => {
    const bench = Bench.browsing();
    bench.receive(dnsQuery({ questions: [question] }));
    bench.run(900);
    expect(bench.questions()).toEqual([]);
    bench.receive(dnsQuery({ questions: [question] }));
    bench.run(10_000);
    expect(bench.questions().map(([time]) => time)).toEqual([1_000, 3_000, 7_000]);
    bench.run(14_500);
    bench.receive(dnsQuery({ questions: [question] }));
    bench.run(30_000);
    expect(bench.questions().map(([time]) => time)).toEqual([]);
  });

  test.each([
    ['it is due much later', dnsQuery({ questions: [question] }), false, 1_500],
    ['it is our own', dnsQuery({ questions: [question] }), true, 2_500],
    ['more of what it knows follows', dnsQuery({ questions: [question], truncated: true }), false, 2_500],
    ['the answer is for the neighbour alone', dnsQuery({ questions: [{ ...question, unicast: true }] }), false, 2_500],
    ['it knows what we do not', dnsQuery({ questions: [question], answers: records({ name: 'other' }) }), false, 2_500],
    ['it asks for something else', dnsQuery({ questions: [{ ...question, name: OTHER_SUBTYPE }] }), false, 2_500],
    ['it asks for another type', dnsQuery({ questions: [{ ...question, type: 'TXT' }] }), false, 2_500],
  ])('does not replace it when %s', (_, message, own, at) => {
    const bench = Bench.browsing();
    bench.run(at);
    bench.questions();
    bench.receive(message, PEER, own);
    bench.run(3_500);
    expect(bench.questions().map(([time]) => time)).toEqual([3_020]);
  });

  test('replaces it when it knows no more than we do', () => {
    const bench = Bench.browsing();
    bench.run(500);
    bench.hear(records());
    bench.run(2_500);
    bench.questions();
    bench.receive(dnsQuery({ questions: [question], answers: records().slice(0, 1) }));
    bench.run(6_000);
    expect(bench.questions()).toEqual([]);
  });
});

describe('found services', () => {
  test('a device with all records in one message is reported at once, and once', () => {
    const bench = Bench.browsing();
    const [pointer, ...rest] = records();
    bench.hear([pointer!], { additionals: rest });
    expect(bench.events).toMatchObject([[0, { name: instance(), service: { listed: [SERVICE_TYPE] } }]]);
    expect(shown(bench.events[0]?.[1].service)).toEqual(WHOLE);
    bench.hear([pointer!], { additionals: rest });
    bench.run(50_000);
    expect(bench.events).toHaveLength(1);
  });

  test('records may be in any order, in any case, and arrive one by one', () => {
    const backwards = Bench.browsing();
    backwards.hear(records().reverse());
    expect(shown(backwards.services().get(instance()))).toEqual(WHOLE);
    const single = Bench.browsing();
    for (const record of records()) single.hear([{ ...record, name: record.name.toUpperCase() }]);
    expect(shown(single.services().get(instance()))).toEqual(WHOLE);
  });

  test('a subtype lists its own instances', () => {
    const bench = new Bench();
    bench.scanner.browse(OTHER_SUBTYPE, 0);
    bench.hear(records({ name: 'with' }));
    bench.hear(records({ name: 'without', subtypes: [] }));
    expect([...bench.services()].map(([name, { listed }]) => [name, listed])).toEqual([[instance('with'), [OTHER_SUBTYPE]]]);
    bench.scanner.endBrowse(OTHER_SUBTYPE);
    bench.drain();
    expect(bench.services().size).toBe(0);
  });

  test('missing records are queried, SRV and TXT and then addresses, four times at most', () => {
    const bench = Bench.browsing();
    bench.run(900);
    bench.questions();
    bench.hear(ofTypes(records(), 'PTR'));
    bench.run(970);
    const both = [`SRV ${instance()}`, `TXT ${instance()}`];
    expect(bench.questions()).toEqual([[920, both]]);
    bench.hear(ofTypes(records(), 'TXT'));
    bench.run(2_000);
    expect(bench.questions().slice(-1)).toEqual([[1_920, both.slice(0, 1)]]);
    bench.hear(ofTypes(records(), 'SRV'));
    expect(bench.services().size).toBe(0);
    bench.run(90_000);
    const addresses = ['A pr-1-de-1.local', 'AAAA pr-1-de-1.local'];
    expect(bench.questions().filter(([, questions]) => !questions[0]?.startsWith('PTR'))).toEqual(
      [2_020, 3_020, 5_020, 9_020].map((time) => [time, addresses]),
    );
    bench.hear(ofTypes(records(), 'A'));
    expect(shown(bench.services().get(instance()))).toEqual([['192.0.2.1 5592'], ['a=1']]);
  });

  test('the other family of a host with addresses of one family is not queried', () => {
    const bench = Bench.browsing();
    bench.hear(records({ addresses: ['192.0.2.1'] }));
    bench.run(50_000);
    expect(bench.questions().flatMap(([, questions]) => questions.filter((text) => !text.startsWith('PTR')))).toEqual([]);
  });

  test('changes of TXT, port and addresses are reported', () => {
    const bench = Bench.browsing();
    bench.hear(records());
    const changes: Shape[] = [{ text: 'a=2' }, { text: 'a=2', port: 5593 }, { text: 'a=2', port: 5593, addresses: ['192.0.2.9'] }];
    for (const shape of changes) {
      bench.run(bench.now + 5_000);
      bench.hear(records(shape));
      bench.run(bench.now + 2_000);
    }
    expect(bench.events.map(([time, { service }]) => [time, shown(service)])).toEqual([
      [0, WHOLE],
      [5_000, [WHOLE[0], ['a=2']]],
      // The old records stay beside the new ones for a second (§10.2).
      [12_000, [['192.0.2.1 5592', 'fe80::1 5592', '192.0.2.1 5593', 'fe80::1 5593'], ['a=2']]],
      [13_000, [['192.0.2.1 5593', 'fe80::1 5593'], ['a=2']]],
      [19_000, [['192.0.2.1 5593', '192.0.2.9 5593', 'fe80::1 5593'], ['a=2']]],
      // The A record flushes A records only: no AAAA record was heard.
      [20_000, [['192.0.2.9 5593', 'fe80::1 5593'], ['a=2']]],
    ]);
  });

  test('two devices of one name, neither with the cache-flush bit, are both reported (PROTOCOL.md §11)', () => {
    const bench = Bench.browsing();
    const unshared = (shape: Shape): DnsRecord[] => records(shape).map((record) => ({ ...record, flush: false }));
    bench.hear(unshared({ addresses: ['192.0.2.1'] }));
    bench.run(5_000);
    bench.hear(unshared({ addresses: ['192.0.2.2'], text: 'a=2' }));
    bench.run(10_000);
    expect(shown(bench.services().get(instance()))).toEqual([['192.0.2.1 5592', '192.0.2.2 5592'], ['a=2']]);
    bench.hear(unshared({ addresses: ['192.0.2.1'] }));
    expect(bench.events).toHaveLength(2);
  });
});

describe('time to live', () => {
  /** A bench where only PTR questions matter. */
  const pointers = (bench: Bench): number[] =>
    bench.questions().flatMap(([time, [text]]) => (text?.startsWith('PTR') === true ? [time] : []));

  test.each([
    [0, [96_000, 102_000, 108_000, 114_000]],
    [0.999, [98_397.6, 104_397.6, 110_397.6, 116_397.6]],
  ])(
    'a record that is not repeated is queried at 80, 85, 90 and 95 % of its TTL, up to 2 % later (random %f), and then expires',
    (random, times) => {
      const bench = Bench.browsing(() => random);
      bench.run(70_000);
      bench.hear(records());
      bench.questions();
      const begin = bench.now;
      bench.run(begin + 119_999);
      const asked = pointers(bench).filter((time) => times.includes(Math.round(10 * (time - begin)) / 10));
      expect(asked.map((time) => Math.round(10 * (time - begin)) / 10)).toEqual(times);
      expect(bench.services().size).toBe(1);
      bench.run(begin + 120_000);
      expect(bench.events.at(-1)).toEqual([begin + 120_000, { kind: 'service', name: instance(), service: null }]);
      bench.run(begin + 1_000_000);
      expect(bench.events).toHaveLength(2);
    },
  );

  test('SRV, TXT and addresses are queried later, since the answer to the PTR question brings them', () => {
    const bench = Bench.browsing();
    bench.run(130_000);
    bench.hear(records());
    bench.questions();
    bench.run(bench.now + 97_000);
    expect(bench.questions().flatMap(([, questions]) => questions)).toEqual([`PTR ${SERVICE_TYPE}`]);
    bench.hear(ofTypes(records(), 'PTR'));
    bench.run(bench.now + 6_000);
    expect(bench.questions()).toEqual([[232_000, [`SRV ${instance()}`, `TXT ${instance()}`, 'A pr-1-de-1.local', 'AAAA pr-1-de-1.local']]]);
    bench.hear(records());
    bench.run(bench.now + 90_000);
    expect(bench.events).toHaveLength(1);
  });

  test('a record with a goodbye is gone a second later (§10.1), unless it comes back within it', () => {
    const bench = Bench.browsing();
    bench.hear(records());
    bench.run(5_000);
    bench.hear(withTtl(records(), 0));
    bench.run(5_500);
    bench.hear(records());
    bench.run(20_000);
    expect(bench.events).toHaveLength(1);
    bench.hear(withTtl(records(), 0));
    bench.run(20_999);
    expect(bench.services().size).toBe(1);
    bench.run(60_000);
    expect(bench.events.slice(1)).toEqual([[21_000, { kind: 'service', name: instance(), service: null }]]);
    expect(bench.questions().filter(([time, [text]]) => time > 21_000 && !text?.startsWith('PTR'))).toEqual([]);
  });

  test('a record with a goodbye is not queried again', () => {
    const bench = Bench.browsing();
    bench.run(130_000);
    bench.hear(records());
    bench.run(225_500);
    bench.questions();
    bench.hear(withTtl(records(), 0));
    bench.run(230_000);
    expect([bench.questions(), bench.services().size]).toEqual([[], 0]);
  });

  test('a goodbye of an unknown record adds nothing', () => {
    const bench = Bench.browsing();
    bench.hear(withTtl(records(), 0));
    expect(bench.events).toEqual([]);
    expect(bench.scanner.nextTimeout()).toBe(20);
  });

  test('records of one message do not flush one another, nor those of the last second (§10.2)', () => {
    const bench = Bench.browsing();
    bench.hear(records());
    bench.run(1_000);
    bench.hear(ofTypes(records({ addresses: ['192.0.2.7'] }), 'A'));
    bench.run(10_000);
    expect(shown(bench.services().get(instance()))?.[0]).toEqual(['192.0.2.1 5592', '192.0.2.7 5592', 'fe80::1 5592']);
    bench.hear(ofTypes(records({ addresses: ['192.0.2.7'] }), 'A'));
    bench.run(11_000);
    expect(shown(bench.services().get(instance()))?.[0]).toEqual(['192.0.2.7 5592', 'fe80::1 5592']);
  });

  test('a TTL of years counts as 75 minutes', () => {
    const bench = Bench.browsing();
    bench.hear(withTtl(records(), 0xffff_ffff));
    bench.run(4_499_000);
    expect(bench.services().size).toBe(1);
    bench.run(4_500_000);
    expect(bench.services().size).toBe(0);
  });
});

describe('a device looked up by name', () => {
  const name = instanceOf('pr-1', 'de-1')!;
  const questions = [`SRV ${name}`, `TXT ${name}`, 'A pr-1-de-1.local', 'AAAA pr-1-de-1.local'];

  test('is queried at once, in one message without shared records, and again after 1 and 2 s', () => {
    const bench = new Bench();
    bench.scanner.browse(browsedName('pr-1-de-1'), 0);
    bench.scanner.find(name, 0);
    bench.run(5_000);
    const own = bench.questions().filter(([, [text]]) => !text?.startsWith('PTR'));
    expect(own).toEqual([0, 1_000, 3_000].map((time) => [time, questions]));
  });

  test('is reported without delay, with its address', () => {
    const bench = new Bench();
    const responder = new Responder(records(), () => 0.5, -10_000);
    for (let now = responder.nextTimeout(); now < 0; now = responder.nextTimeout()) {
      responder.handleTimeout(now);
      while (responder.transmit() !== null);
    }
    bench.scanner.find(name, 0);
    bench.run(0);
    responder.receive(bench.sent[0]![1], PEER, 0);
    expect(responder.nextTimeout()).toBe(0);
    responder.handleTimeout(0);
    bench.hear(responder.transmit()!.message.answers);
    expect(bench.events).toMatchObject([[0, { name, service: { listed: [] } }]]);
    expect(shown(bench.events[0]?.[1].service)).toEqual(WHOLE);
  });

  test('is reported without TXT as well, and forgotten when the lookup ends', () => {
    const bench = new Bench();
    bench.scanner.find(name, 0);
    bench.hear(ofTypes(records(), 'SRV', 'A'));
    expect(shown(bench.events[0]?.[1].service)).toEqual([['192.0.2.1 5592'], null]);
    bench.scanner.endFind(name, 0);
    bench.scanner.endFind('other', 0);
    bench.drain();
    expect(bench.services().size).toBe(0);
    bench.run(10_000);
    expect(bench.questions()).toEqual([]);
    expect(bench.scanner.nextTimeout()).toBe(Number.POSITIVE_INFINITY);
  });

  test('stays reported when a scan lists it as well', () => {
    const bench = Bench.browsing();
    bench.scanner.find(name, 0);
    bench.hear(records());
    bench.scanner.endFind(name, 0);
    bench.drain();
    expect(bench.services().size).toBe(1);
  });

  test.each([
    ['pr.1', 'de-1'],
    ['pr 1', 'de-1'],
    ['p'.repeat(40), 'd'.repeat(23)],
    ['', 'ü'],
  ])('%s and %s are not valid ids of a device', (productId, deviceId) => {
    expect(instanceOf(productId, deviceId)).toBeNull();
  });
});

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

  test('a thousand devices that answer together are all reported, and queried once per TTL', () => {
    const random = new Random('a thousand');
    const bench = Bench.browsing(() => random.fraction());
    bench.run(150);
    for (let i = 0; i < 1000; i++) {
      bench.now += 0.1;
      bench.hear(records({ name: `pr-1-de-${i}` }));
    }
    expect(bench.services().size).toBe(1000);
    bench.run(64_000);
    bench.questions();
    bench.run(98_700);
    const asked = bench.questions();
    expect(asked.flatMap(([, questions]) => questions).length).toBeLessThanOrEqual(3);
  });

  describe('a full table', () => {
    /** Fills the table with one instance after another. */
    function full(make: (name: string) => readonly DnsRecord[]): Bench {
      const bench = Bench.browsing();
      for (let i = 0; i < MAX_INSTANCES; i++) {
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
      for (let i = 0; i < 2_000; i++) bench.hear(names(`more-${i}`));
      expect([...bench.services().keys()]).toEqual([instance('honest')]);
      bench.hear(whole('honest-2'));
      expect(bench.services().size).toBe(2);
    });

    test('of whole services drops the one heard longest ago, and reports its removal', () => {
      const bench = full(whole);
      expect(bench.services().size).toBe(MAX_INSTANCES);
      bench.hear(whole('forged-0'));
      bench.hear(whole('honest'));
      const there = bench.services();
      expect(there.size).toBe(MAX_INSTANCES);
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
      for (let i = 0; i < 1_500; i++) bench.hear(whole(`more-${i}`));
      expect(bench.services().size).toBe(MAX_INSTANCES + 1);
      expect(shown(bench.services().get(instance()))).toEqual(WHOLE);
      bench.scanner.endFind(instance(), bench.now);
      bench.drain();
      expect(bench.services().size).toBe(MAX_INSTANCES);
    });

    test('causes queries for missing records at a limited rate, and not for ever', () => {
      const bench = full(names);
      bench.sent.length = 0;
      const begin = bench.now;
      bench.run(begin + 60_000);
      const unique = bench.sent.filter(([, { questions }]) => questions.some(({ type }) => type !== 'PTR'));
      for (const [time] of unique) expect(unique.filter(([other]) => other >= time && other < time + 100).length).toBeLessThanOrEqual(4);
      const asked = unique.flatMap(([, { questions }]) => questions);
      expect(asked.length).toBeLessThanOrEqual(2 * 4 * MAX_INSTANCES);
      expect(new Set(asked.map(({ name }) => name)).size).toBe(MAX_INSTANCES);
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
