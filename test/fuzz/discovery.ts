/**
 * The mDNS scanner behind the library of the platform, in the handler of its socket: damaged and forged answers, and
 * queries of neighbours. What the handler throws would end the process.
 */
import { EventEmitter } from 'node:events';
import { decode, encode } from 'dns-packet';
import makeMdns from 'multicast-dns';
import { fromPacket, type MdnsPacket, toPacket } from '../../platform/node/mdns-packets.ts';
import {
  browsedName,
  type DnsMessage,
  dnsQuery,
  dnsResponse,
  instanceOf,
  MAX_INSTANCES,
  Scanner,
  SERVICE_TYPE,
  serviceRecords,
} from '../../protocol/discovery/index.ts';
import type { Random } from '../../testing/random.ts';
import { chance, hostile, pick } from './mutate.ts';
import type { Target } from './target.ts';

const MESSAGES = 60;
const SOURCE = { address: '192.0.2.1', port: 5353 };
const NAMES = ['pr-1-de-1', 'pr-1-de-2', 'ü', 'x'.repeat(63)];

const samples = NAMES.flatMap((name) => {
  const records = serviceRecords({
    name,
    port: 5592,
    subtypes: ['a'],
    txt: [Uint8Array.of(0x61, 0x3d)],
    addresses: ['192.0.2.1', 'fe80::1'],
  });
  const question = { name: SERVICE_TYPE, type: 'PTR', unicast: false };
  return [
    dnsResponse({ answers: records.slice(0, 1), additionals: records.slice(1) }),
    dnsResponse({ answers: records.map((record) => ({ ...record, ttl: 0 })) }),
    dnsQuery({ questions: [question], answers: records.slice(0, 1) }),
  ].map((message) => encode(toPacket(message) as never) as Uint8Array);
});

const scanner: Target = {
  name: 'mdns.scanner',
  iterate(random) {
    const scanner = new Scanner(() => random.fraction(), MAX_INSTANCES);
    let now = 0;
    scanner.browse(SERVICE_TYPE, now);
    scanner.browse(browsedName('a'), now);
    scanner.find(instanceOf('pr-1', 'de-1')!, now);
    const there = new Set<string>();
    for (let i = 0; i < MESSAGES; i++) {
      const message = received(random);
      if (message !== null) scanner.receive(message, { ...SOURCE, port: chance(random, 0.9) ? 5353 : 1 }, now, chance(random, 0.1));
      drain(scanner, there);
      now += pick(random, [0, 1, 500, 20_000]);
      if (scanner.nextTimeout() > now) continue;
      scanner.handleTimeout(now);
      drain(scanner, there);
      if (!(scanner.nextTimeout() > now)) throw new Error('the scanner spins');
    }
    scanner.endBrowse(browsedName('A'));
    scanner.endBrowse(SERVICE_TYPE);
    scanner.endFind(instanceOf('pr-1', 'de-1')!, now);
    // It stays for the rest of the second after the question.
    scanner.handleTimeout(now + 1_000);
    drain(scanner, there);
    if (there.size > 0) throw new Error(`${[...there].join()} is there though no search is open for it`);
  },
};

/** Stands for the socket of a link. */
const socket = Object.assign(new EventEmitter(), { bind: () => {} });
let arrived: DnsMessage | null = null;
makeMdns({ socket: socket as never, multicast: false }).on('packet', (packet) => (arrived = fromPacket(packet as MdnsPacket)));

/** Returns null for a datagram that the library drops. */
function received(random: Random): DnsMessage | null {
  arrived = null;
  socket.emit('message', Buffer.from(hostile(random, samples)), SOURCE);
  return arrived;
}

/** Messages that are sent decode, and what is reported is bounded. */
function drain(scanner: Scanner, there: Set<string>): void {
  for (let out = scanner.transmit(); out !== null; out = scanner.transmit()) {
    const bytes = encode(toPacket(out.message) as never);
    const read = fromPacket(decode(bytes) as MdnsPacket);
    if (bytes.length > 1400) throw new Error(`${bytes.length} bytes in one message`);
    if (JSON.stringify(read.questions) !== JSON.stringify(out.message.questions)) throw new Error('the questions change when encoded');
  }
  for (let event = scanner.nextEvent(); event !== null; event = scanner.nextEvent()) {
    const { name, service } = event;
    if (service === null) there.delete(name);
    else there.add(name);
    if (service !== null && (service.endpoints.length === 0 || service.endpoints.length > 32)) throw new Error('addresses without bounds');
    if (there.size > MAX_INSTANCES + 1) throw new Error('services without bounds');
  }
}

export const discoveryTargets: readonly Target[] = [scanner];
