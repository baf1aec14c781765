/** The mDNS responder of one link in virtual time: RFC 6762, section by section. */
import { describe, expect, test } from 'vitest';
import {
  type DnsMessage,
  type DnsQuestion,
  type DnsRecord,
  dnsQuery,
  dnsResponse,
  type OutgoingDnsMessage,
  Responder,
  SERVICE_TYPE,
  SERVICE_TYPES,
  serviceRecords,
} from '../../../protocol/discovery/index.ts';

const NAME = 'pr-1-de-1';
const INSTANCE = `${NAME}.${SERVICE_TYPE}`;
const HOST = `${NAME}.local`;
const QUERIER = { address: '192.0.2.9', port: 5353 };
const RESOLVER = { address: '192.0.2.9', port: 40_000 };
const service = { name: NAME, port: 5592, subtypes: ['tcptunnel'], addresses: ['192.0.2.1', 'fe80::1'] };

function records(text = 'a=1', addresses: readonly string[] = service.addresses): DnsRecord[] {
  return serviceRecords({ ...service, addresses, txt: [new TextEncoder().encode(text)] });
}

/** Makes a responder whose random numbers are all `random`. */
function responder(random = 0): Responder {
  return new Responder(records(), () => random, 0);
}

/** Returns everything it sends up to `until`, with times. */
function run(responder: Responder, until: number): [number, OutgoingDnsMessage][] {
  const sent: [number, OutgoingDnsMessage][] = [];
  for (let now = responder.nextTimeout(); now <= until; now = responder.nextTimeout()) {
    responder.handleTimeout(now);
    for (let out = responder.transmit(); out !== null; out = responder.transmit()) sent.push([now, out]);
  }
  return sent;
}

/** Makes a responder that has announced itself; the time is 10,000. */
function announced(random = 0): Responder {
  const made = responder(random);
  run(made, 10_000);
  return made;
}

function ask(name: string, type: string, more: Partial<DnsMessage> & { unicast?: boolean } = {}): DnsMessage {
  const { unicast = false, ...parts } = more;
  const questions: DnsQuestion[] = [{ name, type, unicast }];
  return dnsQuery({ questions, ...parts });
}

const names = (list: readonly DnsRecord[]): string[] => list.map(({ type, name }) => `${type} ${name}`);

/** Returns the answers to a question: time after it, records, additionals. */
function answers(to: Responder, query: DnsMessage, from = QUERIER, at = 10_000) {
  to.receive(query, from, at);
  return run(to, at + 5_000).map(([time, { message, to }]) => ({
    after: time - at,
    to,
    answers: names(message.answers),
    more: names(message.additionals),
    message,
  }));
}

describe('probing and announcing (§8)', () => {
  test('three probes 250 ms apart with the proposed records, then two announcements a second apart', () => {
    const sent = run(responder(0.5), 60_000);
    expect(sent.map(([time, { message }]) => [time, message.response])).toEqual([
      [125, false],
      [375, false],
      [625, false],
      [875, true],
      [1875, true],
    ]);
    const [probe, , , announcement] = sent.map(([, { message }]) => message);
    expect(probe?.questions.map(({ name, type }) => `${type} ${name}`)).toEqual([`ANY ${INSTANCE}`, `ANY ${HOST}`]);
    expect(names(probe?.authorities ?? [])).toEqual([`SRV ${INSTANCE}`, `TXT ${INSTANCE}`, `A ${HOST}`, `AAAA ${HOST}`]);
    expect(announcement?.answers.map(({ type, name, ttl, flush }) => [type, name, ttl, flush])).toEqual([
      ['PTR', SERVICE_TYPE, 120, false],
      ['PTR', `${NAME}._sub.${SERVICE_TYPE}`, 120, false],
      ['PTR', `tcptunnel._sub.${SERVICE_TYPE}`, 120, false],
      ['PTR', SERVICE_TYPES, 120, false],
      ['SRV', INSTANCE, 120, true],
      ['TXT', INSTANCE, 120, true],
      ['A', HOST, 120, true],
      ['AAAA', HOST, 120, true],
    ]);
    expect(announcement?.answers[4]?.data).toEqual({ priority: 0, weight: 0, port: 5592, target: HOST });
  });

  test('nothing is answered before probing has ended', () => {
    const young = responder();
    young.receive(ask(SERVICE_TYPE, 'PTR'), QUERIER, 10);
    expect(run(young, 700).every(([, { message }]) => !message.response)).toBe(true);
  });

  test('changed records are announced twice again, not within a second of the last announcement', () => {
    const made = announced();
    made.setRecords(records('a=2'), 10_000);
    made.setRecords(records('a=3'), 10_000);
    const sent = run(made, 60_000);
    expect(sent.map(([time]) => time)).toEqual([10_000, 11_000]);
    expect(sent[0]?.[1].message.answers.find(({ type }) => type === 'TXT')?.data).toEqual([new TextEncoder().encode('a=3')]);
    made.setRecords(records('a=4'), 11_500);
    expect(run(made, 60_000).map(([time]) => time)).toEqual([12_000, 13_000]);
  });

  test('goodbye withdraws everything except the shared record of the service type', () => {
    expect(responder().goodbye()).toBeNull();
    const message = announced().goodbye();
    expect(message?.answers.every(({ ttl }) => ttl === 0)).toBe(true);
    expect(names(message?.answers ?? [])).toEqual([
      `PTR ${SERVICE_TYPE}`,
      `PTR ${NAME}._sub.${SERVICE_TYPE}`,
      `PTR tcptunnel._sub.${SERVICE_TYPE}`,
      `SRV ${INSTANCE}`,
      `TXT ${INSTANCE}`,
      `A ${HOST}`,
      `AAAA ${HOST}`,
    ]);
  });
});

describe('answers (§6)', () => {
  test('to the service type, after a random wait, with all records that are needed next', () => {
    const more = [`SRV ${INSTANCE}`, `TXT ${INSTANCE}`, `A ${HOST}`, `AAAA ${HOST}`];
    const expected = { to: null, answers: [`PTR ${SERVICE_TYPE}`], more };
    expect(answers(announced(0), ask(SERVICE_TYPE, 'PTR'))).toMatchObject([{ after: 20, ...expected }]);
    expect(answers(announced(0.999), ask(SERVICE_TYPE, 'PTR'))[0]?.after).toBeCloseTo(119.9);
  });

  test.each([
    [`${NAME}._sub.${SERVICE_TYPE}`, 'PTR', [`PTR ${NAME}._sub.${SERVICE_TYPE}`]],
    [`tcptunnel._sub.${SERVICE_TYPE}`, 'PTR', [`PTR tcptunnel._sub.${SERVICE_TYPE}`]],
    [SERVICE_TYPES, 'PTR', [`PTR ${SERVICE_TYPES}`]],
    [INSTANCE, 'SRV', [`SRV ${INSTANCE}`]],
    [INSTANCE.toUpperCase(), 'TXT', [`TXT ${INSTANCE}`]],
    [INSTANCE, 'ANY', [`SRV ${INSTANCE}`, `TXT ${INSTANCE}`]],
    [HOST, 'A', [`A ${HOST}`]],
    [HOST, 'AAAA', [`AAAA ${HOST}`]],
  ])('to %s %s', (name, type, expected) => {
    const [answer, ...rest] = answers(announced(), ask(name, type));
    expect(answer?.answers).toEqual(expected);
    expect(answer?.after).toBe(type === 'PTR' ? 20 : 0);
    expect(rest).toEqual([]);
  });

  test('to a missing type of our name with NSEC (§6.1), and none to other names', () => {
    const made = new Responder(records('a=1', ['192.0.2.1']), () => 0, 0);
    run(made, 10_000);
    const [answer] = answers(made, ask(HOST, 'AAAA'));
    expect(answer?.message.answers).toMatchObject([{ type: 'NSEC', name: HOST, data: { nextDomain: HOST, rrtypes: ['A'] } }]);
    expect(answers(made, ask('other.local', 'A'))).toEqual([]);
    expect(answers(made, ask(`nothing._sub.${SERVICE_TYPE}`, 'PTR'))).toEqual([]);
  });

  test('no record is multicast twice within a second, except in answer to a probe', () => {
    const made = announced();
    expect(answers(made, ask(INSTANCE, 'SRV'))[0]?.after).toBe(0);
    made.receive(ask(INSTANCE, 'SRV'), QUERIER, 20_000);
    run(made, 20_000);
    expect(answers(made, ask(INSTANCE, 'SRV'), QUERIER, 20_100)[0]?.after).toBe(900);
    made.receive(ask(INSTANCE, 'SRV'), QUERIER, 30_000);
    run(made, 30_000);
    const probe = ask(INSTANCE, 'ANY', { authorities: records().filter(({ type }) => type === 'SRV') });
    expect(answers(made, probe, QUERIER, 30_100)[0]?.after).toBe(0);
  });

  test('two queriers with the same question get one answer', () => {
    const made = announced();
    made.receive(ask(SERVICE_TYPE, 'PTR'), QUERIER, 10_000);
    expect(answers(made, ask(SERVICE_TYPE, 'PTR'), { address: '192.0.2.8', port: 5353 }, 10_005)).toHaveLength(1);
  });

  test('questions beyond the queue limit are dropped', () => {
    const made = announced();
    for (let i = 0; i < 1000; i++)
      made.receive(ask(INSTANCE, 'SRV', { unicast: true }), { address: `192.0.2.${i % 250}`, port: 5353 }, 10_000);
    expect(run(made, 20_000)).toHaveLength(32);
  });
});

describe('answer suppression (§7)', () => {
  const known = (ttl: number) => records().map((record) => ({ ...record, ttl }));

  test('a record that the querier knows with at least half of its TTL is not answered', () => {
    expect(answers(announced(), ask(SERVICE_TYPE, 'PTR', { answers: known(60) }))).toEqual([]);
    expect(answers(announced(), ask(SERVICE_TYPE, 'PTR', { answers: known(59) }))).toHaveLength(1);
    const other = known(120).map((record) => (record.type === 'PTR' ? { ...record, data: 'other' } : record));
    expect(answers(announced(), ask(SERVICE_TYPE, 'PTR', { answers: other as DnsRecord[] }))).toHaveLength(1);
  });

  test('each known answer is examined a few times, however many questions come with it', () => {
    let reads = 0;
    const counted = Array.from(
      { length: 500 },
      (_, i): DnsRecord => ({
        type: 'PTR',
        ttl: 120,
        flush: false,
        data: `x${i}`,
        get name() {
          reads++;
          return SERVICE_TYPE;
        },
      }),
    );
    const questions = Array.from({ length: 500 }, () => ({ name: SERVICE_TYPE, type: 'PTR', unicast: false }));
    expect(answers(announced(), dnsQuery({ questions, answers: counted }))).toHaveLength(1);
    expect(reads).toBeGreaterThan(0);
    expect(reads).toBeLessThan(5 * counted.length);
  });

  test('known answers that follow in further packets are awaited', () => {
    const truncated = ask(SERVICE_TYPE, 'PTR', { truncated: true });
    expect(answers(announced(0), truncated)[0]?.after).toBe(400);
    const made = announced();
    made.receive(truncated, QUERIER, 10_000);
    made.receive(dnsQuery({ answers: known(120) }), { ...QUERIER, address: '192.0.2.8' }, 10_100);
    expect(made.nextTimeout()).toBe(10_400);
    made.receive(dnsQuery({ answers: known(120) }), QUERIER, 10_200);
    expect(run(made, 20_000)).toEqual([]);
  });

  test('an answer that another responder has just given is not repeated', () => {
    const made = announced();
    made.receive(ask(SERVICE_TYPES, 'PTR'), QUERIER, 10_000);
    made.receive(
      dnsResponse({ answers: records().filter(({ name }) => name === SERVICE_TYPES) }),
      { ...QUERIER, address: '192.0.2.7' },
      10_010,
    );
    expect(run(made, 20_000)).toEqual([]);
  });
});

describe('unicast answers (§5.4, §6.7)', () => {
  test('a unicast question is answered at once to the querier alone, unless the multicast is due again', () => {
    const [direct] = answers(announced(), ask(SERVICE_TYPE, 'PTR', { unicast: true }));
    expect(direct).toMatchObject({ after: 0, to: QUERIER, answers: [`PTR ${SERVICE_TYPE}`] });
    expect(direct?.message.answers[0]?.ttl).toBe(120);
    const [late] = answers(announced(), ask(SERVICE_TYPE, 'PTR', { unicast: true }), QUERIER, 100_000);
    expect(late?.to).toBeNull();
  });

  test('a plain DNS resolver gets its id and question back, short TTLs and no cache-flush bit', () => {
    const query = ask(INSTANCE, 'SRV', { id: 4711, answers: records() });
    const [answer] = answers(announced(), query, RESOLVER, 100_000);
    expect(answer).toMatchObject({ after: 0, to: RESOLVER, answers: [`SRV ${INSTANCE}`] });
    expect(answer?.message).toMatchObject({ id: 4711, questions: query.questions });
    const all = [...(answer?.message.answers ?? []), ...(answer?.message.additionals ?? [])];
    expect(all.map(({ ttl, flush }) => [ttl, flush])).toEqual(all.map(() => [10, false]));
  });
});

describe('conflicts (§9)', () => {
  const foreign = (): DnsRecord[] => records('a=1', ['192.0.2.77']).filter(({ type }) => type === 'A');

  test('are reported, and the device stays in caches beside the other one', () => {
    const made = announced();
    made.receive(dnsResponse({ answers: foreign() }), QUERIER, 10_000);
    expect([made.nextEvent(), made.nextEvent()]).toEqual([{ kind: 'conflict', from: QUERIER }, null]);
    const [answer] = answers(made, ask(HOST, 'A'));
    expect(answer?.message.answers).toMatchObject([{ type: 'A', data: '192.0.2.1', flush: false }]);
  });

  test('are reported while both probe', () => {
    const made = responder();
    made.receive(ask(HOST, 'ANY', { authorities: foreign() }), QUERIER, 10);
    expect([made.nextEvent(), made.nextEvent()]).toEqual([{ kind: 'conflict', from: QUERIER }, null]);
  });

  test('are not reported for our own records, another interface of this host, goodbyes and other names', () => {
    const made = announced();
    made.receive(dnsResponse({ answers: records('a=2', ['192.0.2.1']) }), QUERIER, 10_000);
    made.receive(dnsResponse({ answers: foreign() }), QUERIER, 10_000, true);
    made.receive(dnsResponse({ answers: foreign().map((record) => ({ ...record, ttl: 0 })) }), QUERIER, 10_000);
    made.receive(dnsResponse({ answers: foreign().map((record) => ({ ...record, name: 'other.local' })) }), QUERIER, 10_000);
    expect(made.nextEvent()).toBeNull();
  });
});
