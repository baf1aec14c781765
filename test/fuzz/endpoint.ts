/**
 * An endpoint that serves a connection while an attacker without its keys sends damaged and random packets to both
 * ends, and a relay's route table. The connection must continue, and no other may be established.
 */
import { RouteTable } from '../../protocol/relay/index.ts';
import type { Random } from '../../testing/random.ts';
import { nativeHost } from '../support/crypto.ts';
import { dial, pair } from '../support/fixture/endpoints.ts';
import { below, chance, hostile, joined } from './mutate.ts';
import type { Target } from './target.ts';

const PACKETS = 300;
const TYPES = [0x80, 0x81, 0x82, 0x83, 0x84, 0x85, 0x88, 0xc0, 0xe0];

export const endpointTarget: Target = {
  name: 'endpoint',
  weight: 5,
  iterate(random) {
    const { network, client, device } = pair(random.u32(), {
      device: { limits: { halfOpen: 16, retryAbove: below(random, 3), connections: 4 } },
    });
    const connection = dial(client, device);
    network.onEvent = (node, of, event) => {
      if (event.kind === 'opened') of.messages.send(Uint8Array.of(1, 2, 3));
      if (event.kind === 'message' && node === device) of.messages.send(event.data);
    };
    if (!network.run(() => client.find('message') !== undefined)) throw new Error('the connection was not established');
    const samples = network.sent.map(({ bytes }) => bytes).filter((bytes) => bytes.length > 0);
    const genuine = new Set(samples.map((bytes) => bytes.join()));
    const table = relay(random);
    for (let i = 0; i < PACKETS; i++) {
      const packet = hostile(random, samples);
      if (packet.length > 0 && chance(random, 0.2)) packet[0] = TYPES[below(random, TYPES.length)]!;
      table(packet);
      // a genuine packet is a duplicate for its receiver
      if (genuine.has(packet.join()) && packet[0] === 0x80) continue;
      const [to, from] = chance(random, 0.5) ? [client, device] : [device, client];
      to.endpoint.receive(packet, to.path(from, chance(random, 0.5) ? 4433 : 999), network.now);
      if (i % 16 === 0) network.pass(below(random, 50));
    }
    const before = client.kinds().filter((kind) => kind === 'message').length;
    connection.messages.send(Uint8Array.of(7));
    if (!network.run(() => client.kinds().filter((kind) => kind === 'message').length > before, 5000))
      throw new Error('it no longer answers');
    if (device.accepted.length !== 1 || client.endpoint.stats.connections !== 1) throw new Error('a connection too many, or too few');
  },
};

/** Feeds packets to a route table, sometimes with a valid id. */
function relay(random: Random): (packet: Uint8Array) => void {
  const crypto = nativeHost(random.u32());
  const table = new RouteTable(crypto, crypto.randomBytes(32), {}, 0);
  const [a, b] = ['a', 'b'].map((key) => ({
    paths: { validated: { kind: 'udp' as const, key, address: '192.0.2.1', port: 1, socket: 0, local: false } },
  }));
  const end = table.open(a!, b!, 0)!;
  return (packet) => {
    const inner = joined(Uint8Array.of(0x88), chance(random, 0.5) ? end.id : random.bytes(8), packet);
    const datagram = chance(random, 0.2) ? inner.subarray(0, below(random, 12)) : inner;
    const to = table.forward(datagram, chance(random, 0.5) ? a!.paths.validated : b!.paths.validated, 1);
    if (to !== null && to !== end.other) throw new Error('forwarded to a stranger');
    if (to === null) table.answer(datagram, 1);
  };
}
