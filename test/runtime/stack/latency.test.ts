/**
 * The cost of the first byte and of a small answer: exact round trips in virtual time, exact datagrams. An additional
 * packet or round trip is a regression, however little it shows on loopback.
 */
import { expect, it } from 'vitest';
import { PacketType } from '../../../protocol/packet/index.ts';
import type { LinkOptions } from '../../../testing/index.ts';
import { openedStream } from '../../support/opened-stream.ts';
import { deviceTarget, hosts, type Pair, testRouter, utf8 } from '../session/support.ts';

const RTT = 50;
const ECHOES = 50;

/** A client and a device that echoes streams and requests, and the kinds of sent packets in order. */
async function scene(link: LinkOptions) {
  const both: Pair = await hosts({
    link,
    device: {
      onSession: (session) => {
        session.router = testRouter(both.deviceEnvironment);
        session.onStream = async (incoming) => {
          const stream = incoming.accept();
          for (;;) await stream.write(await stream.read());
        };
      },
    },
  });
  const wire: string[] = [];
  both.simulation.onTrace = (packet, fate) => {
    if (fate !== 'delivered') wire.push(`${packet.from} ${kind(packet.data)}`);
  };
  const connect = () => both.client.dials.connect(deviceTarget(both));
  return { ...both, wire, connect };
}

function kind(packet: Uint8Array): string {
  return Object.entries(PacketType).find(([, type]) => type === packet[0])?.[0] ?? 'unknown';
}

const HANDSHAKE = ['client INITIATE', 'device RESPOND', 'client COMPLETE', 'client DATA', 'device DATA'];
const links = [
  { name: 'where packets of one burst arrive together', link: { delay: RTT / 2 }, slack: 0 },
  { name: 'where they arrive one after the other', link: { delay: RTT / 2, rate: 10e6 }, slack: 2.5 },
];

it.each(links)('the first echo of a stream on a new connection takes two round trips and five packets, $name', async ({ link, slack }) => {
  const { simulation, connect, wire } = await scene(link);
  const from = simulation.now;
  const echo = async () => {
    const stream = (await connect()).streams.open(1);
    await stream.write(utf8('hello'));
    return stream.readAll(5);
  };
  expect(await simulation.settle(echo())).toEqual(utf8('hello'));
  expect(simulation.now - from).toBeGreaterThanOrEqual(2 * RTT);
  expect(simulation.now - from).toBeLessThanOrEqual(2 * RTT + slack);
  expect(wire).toEqual(HANDSHAKE);
});

it.each(links)('so does the first request, $name', async ({ link, slack }) => {
  const { simulation, connect, wire } = await scene(link);
  const from = simulation.now;
  const request = async () => (await connect()).request({ method: 'POST', path: '/echo', payload: utf8('hello') });
  expect((await simulation.settle(request())).payload).toEqual(utf8('hello'));
  expect(simulation.now - from).toBeLessThanOrEqual(2 * RTT + slack);
  expect(wire).toEqual(HANDSHAKE);
});

it('an echo on an open connection takes one round trip and one packet each way, stream or request', { tags: ['slow'] }, async () => {
  const { simulation, connect, wire } = await scene({ delay: RTT / 2 });
  const session = await simulation.settle(connect());
  const stream = await simulation.settle(openedStream(session, 1));
  const data = new Uint8Array(64).fill(7);
  const echoes = {
    stream: async () => {
      await stream.write(data);
      return stream.readAll(data.length);
    },
    request: async () => (await session.request({ method: 'POST', path: '/echo', payload: data })).payload,
  };
  for (const echo of Object.values(echoes)) {
    expect(await simulation.settle(echo())).toEqual(data);
    const [from, before] = [simulation.now, wire.length];
    for (let index = 0; index < ECHOES; index++) expect(await simulation.settle(echo())).toEqual(data);
    expect(simulation.now - from).toBe(ECHOES * RTT);
    expect(wire.slice(before)).toEqual(Array.from({ length: ECHOES }, () => ['client DATA', 'device DATA']).flat());
  }
});

it('both ends know the round-trip time from the handshake', async () => {
  const both = await scene({ delay: RTT / 2 });
  const session = await both.simulation.settle(both.connect());
  expect(session.stats()).toMatchObject({ rtt: RTT, minimumRtt: RTT });
  await both.simulation.run(() => both.accepted.length > 0);
  expect(both.accepted[0]!.stats()).toMatchObject({ rtt: RTT, minimumRtt: RTT });
});

it('a retransmitted handshake packet gives no round-trip time', async () => {
  const { simulation, connect } = await scene({ delay: RTT / 2 });
  let dropped = 0;
  simulation.onPacket = (packet) => (kind(packet.data) === 'INITIATE' && dropped++ === 0 ? 'drop' : undefined);
  const session = await simulation.settle(connect());
  expect(session.stats()).toMatchObject({ rtt: 333, minimumRtt: 0 });
});

it('the first bytes, when lost, are sent again after three round trips and the delay of acknowledgements', async () => {
  const { simulation, connect } = await scene({ delay: RTT / 2 });
  let dropped = 0;
  simulation.onPacket = (packet) => (packet.from === 'client' && kind(packet.data) === 'DATA' && dropped++ === 0 ? 'drop' : undefined);
  const from = simulation.now;
  const echo = async () => {
    const stream = (await connect()).streams.open(1);
    await stream.write(utf8('hello'));
    return stream.readAll(5);
  };
  expect(await simulation.settle(echo())).toEqual(utf8('hello'));
  expect(simulation.now - from).toBeLessThan(2 * RTT + 3 * RTT + 25 + 5);
});

it('packets that waited for Complete at the device give no round-trip time', async () => {
  const { simulation, connect } = await scene({ delay: RTT / 2 });
  const toDrop = new Set(['INITIATE', 'COMPLETE']);
  simulation.onPacket = (packet) => (toDrop.delete(kind(packet.data)) ? 'drop' : undefined);
  const echo = async () => {
    const session = await connect();
    const stream = session.streams.open(1);
    await stream.write(utf8('hello'));
    await stream.readAll(5);
    return session.stats().rtt;
  };
  expect(await simulation.settle(echo())).toBe(333);
  expect(toDrop.size).toBe(0);
});
