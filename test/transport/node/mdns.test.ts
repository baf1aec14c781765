/** Multicast DNS on a real interface: two sockets of this host, and packets made by `dns-packet`. */
import { networkInterfaces } from 'node:os';
import { decode, encode } from 'dns-packet';
import { describe, expect, test } from 'vitest';
import { type DnsMessage, dnsQuery, dnsResponse, Responder, serviceRecords } from '../../../protocol/discovery/index.ts';
import type { MdnsLink } from '../../../transport/mdns.ts';
import { nodeMdns } from '../../../transport/node/mdns.ts';
import { fromPacket, type MdnsPacket, toPacket } from '../../../transport/node/mdns-packets.ts';
import { Random } from '../../../transport/sim/random.ts';
import { drawnProduct } from '../../support/fixture/identifiers.ts';
import { linksWithMulticast } from '../../support/multicast.ts';

/** A name unique to this run, so that other traffic is ignored. */
const NAME = `${drawnProduct()}-de`;
const records = serviceRecords({
  name: NAME,
  port: 5592,
  subtypes: ['x'],
  txt: [new TextEncoder().encode('a=1')],
  addresses: ['192.0.2.1', 'fe80::1'],
});

const network = nodeMdns();
const links = await linksWithMulticast(network.links());

describe.skipIf(links.length === 0)('links that carry multicast (none here: skipped)', () => {
  test.each(links)('$name: a query arrives, and the answer returns to its sender', async (link) => {
    let answered = (_: DnsMessage): void => {};
    const answer = new Promise<DnsMessage>((resolve) => {
      answered = resolve;
    });
    const question = { name: `${NAME}.local`, type: 'ANY', unicast: false };
    const responder = network.open(link, {
      received: (message, from, own) => {
        if (!message.response && own && message.questions.some(({ name }) => name === question.name)) {
          expect(from.port).toBe(5353);
          responder.send(dnsResponse({ answers: records.slice(0, 6), additionals: records.slice(6) }), null);
        }
      },
      failed: () => {},
    });
    const asker = network.open(link, {
      received: (message) => {
        if (message.answers.some(({ name }) => name.startsWith(NAME))) answered(message);
      },
      failed: () => {},
    });
    try {
      asker.send(dnsQuery({ questions: [question] }), null);
      const { answers, additionals } = await answer;
      expect(JSON.parse(JSON.stringify(plain([...answers, ...additionals])))).toEqual(JSON.parse(JSON.stringify(plain(records))));
    } finally {
      await Promise.all([asker.close(), responder.close()]);
    }
  });

  test('an interface that does not exist fails alone, and is closed', async () => {
    const link = { ...(links[0] as MdnsLink), name: 'gone', interface: 'gone', family: 4, addresses: ['192.0.2.250'], cidrs: [] };
    const error = await new Promise<Error>((resolve) => {
      network.open(link, { received: () => {}, failed: resolve });
    });
    expect(error.message).toMatch(/addMembership/);
  });
});

/** TXT bytes as arrays: a Buffer is printed in another form. */
function plain(list: readonly { readonly type: string; readonly data: unknown }[]): unknown[] {
  return list.map((record) => ({
    ...record,
    data: record.type === 'TXT' ? (record.data as Uint8Array[]).map((item) => [...item]) : record.data,
  }));
}

test('every interface but loopback has a link for each family; with names given, only those', () => {
  const all = networkInterfaces();
  const names = nodeMdns()
    .links()
    .map(({ name }) => name.replace(/ IPv[46]$/, ''));
  const outside = Object.keys(all).filter((name) => all[name]?.some(({ internal }) => !internal));
  expect(new Set(names)).toEqual(new Set(outside.length > 0 ? outside : Object.keys(all)));
  expect(nodeMdns([]).links()).toEqual([]);
});

test('packets: the unicast-response and truncation bits are decoded, unused records are omitted', () => {
  const message = fromPacket({
    type: 'query',
    flags: 0x200,
    questions: [
      { name: 'a.local', type: 'PTR', class: 'UNKNOWN_32769' },
      { name: 'b.local', type: 'PTR', class: 'IN' },
    ],
    answers: [
      { name: 'a.local', type: 'HINFO', data: {} },
      { name: 'a.local', type: 'A', data: 'garbage' },
      { name: '.', type: 'OPT' },
    ],
  });
  expect(message.truncated).toBe(true);
  expect(message.questions.map(({ unicast }) => unicast)).toEqual([true, false]);
  expect(message.answers).toEqual([]);
  expect(toPacket(dnsResponse({ answers: records }))).toMatchObject({ type: 'response', flags: 0x400, id: 0 });
});

test('damaged packets: any that decode do no harm, and later valid queries are answered', { tags: ['slow'] }, () => {
  const random = new Random('damaged mdns');
  const responder = new Responder(records, () => 0, 0);
  const questions = records.map(({ name, type }) => ({ name, type, unicast: false }));
  const whole = [dnsQuery({ questions, answers: records, authorities: records }), dnsResponse({ answers: records, additionals: records })];
  const packets = whole.map((message) => encode(toPacket(message) as never));
  let decoded = 0;
  let now = 0;
  const drain = (): number => {
    let sent = 0;
    responder.handleTimeout(now);
    for (; responder.transmit() !== null; ) sent++;
    return sent;
  };
  for (let round = 0; round < 1_500; round++) {
    const bytes = Buffer.from(packets[round % 2] as Buffer);
    for (const spot of random.bytes(4)) bytes[Math.floor((spot * bytes.length) / 256)] = random.bytes(1)[0] as number;
    now += 10;
    try {
      decode(bytes);
    } catch {
      continue;
    }
    decoded++;
    responder.receive(fromPacket(decode(bytes) as MdnsPacket), { address: '192.0.2.9', port: 5353 }, now);
    drain();
  }
  expect(decoded).toBeGreaterThan(50);
  now += 10_000;
  drain();
  responder.receive(dnsQuery({ questions: questions.slice(0, 1) }), { address: '192.0.2.9', port: 5353 }, now);
  now += 2_000;
  expect(drain()).toBe(1);
});
