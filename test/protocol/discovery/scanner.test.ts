/** The mDNS scanner of one link in virtual time: RFC 6762 and RFC 6763, section by section. */
import { describe, expect, test } from 'vitest';
import { browsedName, type DnsRecord, dnsQuery, instanceOf, Responder, SERVICE_TYPE } from '../../../protocol/discovery/index.ts';
import { Bench, instance, ofTypes, PEER, records, type Shape, shown, WHOLE, withTtl } from './scanner-bench.ts';

const OTHER_SUBTYPE = browsedName('tcptunnel');

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

  test('of a hundred devices are split into messages that each fit a frame', () => {
    const bench = Bench.browsing();
    bench.run(500);
    for (let i = 0; i < 100; i++) bench.hear(records({ name: `pr-1-de-${i}` }));
    bench.sent.length = 0;
    bench.run(1_020);
    const messages = bench.sent.map(([, message]) => message);
    expect(messages.flatMap(({ questions }) => questions)).toHaveLength(1);
    expect(messages[0]?.questions).toHaveLength(1);
    expect(new Set(messages.flatMap(({ answers }) => answers.map(({ data }) => data))).size).toBe(100);
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

  test('is queried once a second at most, and looking it up again restarts the schedule', () => {
    const bench = new Bench();
    bench.scanner.find(name, 0);
    bench.run(3_500);
    bench.scanner.find(name, bench.now);
    bench.scanner.find(name, bench.now);
    bench.run(7_500);
    expect(bench.questions()).toEqual([0, 1_000, 3_000, 4_000, 5_000, 7_000].map((time) => [time, questions]));
    bench.scanner.endFind(name, bench.now);
    bench.scanner.find(name, bench.now);
    bench.run(8_000);
    expect(bench.questions()).toEqual([[8_000, questions]]);
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
