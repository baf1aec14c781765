/** Multicast DNS on a real interface: two sockets of this host, and packets made by `dns-packet`. */
import { createSocket } from 'node:dgram';
import { EventEmitter, once } from 'node:events';
import { networkInterfaces } from 'node:os';
import { decode, encode } from 'dns-packet';
import { describe, expect, test } from 'vitest';
import type { MdnsLink } from '../../../platform/mdns.ts';
import { limitArrivals, nodeMdns } from '../../../platform/node/mdns.ts';
import { fromPacket, type MdnsPacket, toPacket } from '../../../platform/node/mdns-packets.ts';
import { type DnsMessage, dnsQuery, dnsResponse, Responder, serviceRecords } from '../../../protocol/discovery/index.ts';
import { Random } from '../../../testing/random.ts';
import { eventually } from '../../support/eventually.ts';
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

  test('a flood from one source reaches only the sockets', async () => {
    const link = links.find(({ addresses }) => addresses[0]?.includes('.')) as MdnsLink;
    let [heard, counted] = [0, 0];
    const limited = network.open(link, { received: () => heard++, failed: () => {} });
    const plain = createSocket({ type: 'udp4', reuseAddr: true });
    plain.on('message', () => counted++);
    plain.bind(5353);
    await once(plain, 'listening');
    // Nothing leaves this host.
    plain.setMulticastTTL(0);
    plain.addMembership('224.0.0.251', link.addresses[0]);
    plain.setMulticastInterface(link.addresses[0]!);
    const packet = encode(toPacket(dnsQuery({ questions: [{ name: `${NAME}.local`, type: 'ANY', unicast: false }] })) as never);
    for (let sent = 20; sent <= 600; sent += 20) {
      for (let i = 0; i < 20; i++) plain.send(packet, 5353, '224.0.0.251');
      await eventually(() => expect(counted).toBeGreaterThanOrEqual(sent));
    }
    expect(heard).toBeLessThan(500);
    plain.close();
    await limited.close();
  });

  test('an interface that does not exist fails alone, and is closed', async () => {
    const link = { ...(links[0] as MdnsLink), name: 'gone', interface: 'gone', family: 4, addresses: ['192.0.2.250'], cidrs: [] };
    const error = await new Promise<Error>((resolve) => {
      network.open(link, { received: () => {}, failed: resolve });
    });
    expect(error.message).toMatch(/addMembership/);
  });
});

test('a flood is left out before it is decoded; other events pass', () => {
  const socket = new EventEmitter();
  let [messages, errors] = [0, 0];
  socket.on('message', () => messages++);
  socket.on('error', () => errors++);
  limitArrivals(socket as never);
  for (let i = 0; i < 5_000; i++) socket.emit('message', Buffer.alloc(0), { address: '192.0.2.9' });
  for (let i = 0; i < 300; i++) socket.emit('error', new Error('x'), { address: '192.0.2.9' });
  expect(messages).toBeGreaterThanOrEqual(256);
  expect(messages).toBeLessThan(1_000);
  expect(errors).toBe(300);
  const before = messages;
  socket.emit('message', Buffer.alloc(0), { address: '192.0.2.10' });
  expect(messages).toBe(before + 1);
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
