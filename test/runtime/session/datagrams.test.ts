/** Datagrams of byte streams over a session: early, late, too long, without a flow; and on another path. */
import { describe, expect, it } from 'vitest';
import { encodeFlowDatagram, encodeFlowPart, MAX_PARTS } from '../../../protocol/datagrams/index.ts';
import { type DatagramsOwner, noDatagrams, SessionDatagrams, SURE_LENGTH } from '../../../runtime/session/datagrams.ts';
import type { Stream } from '../../../runtime/session/index.ts';
import { acceptedSession, type ConnectedPair, pair, pattern, text, utf8 } from './support.ts';

/** The session of a connection of full size to a peer that takes no parts; it takes everything. */
const messages = { datagramSize: 1_411, datagramRoom: 256, sendDatagram: () => true };
const connection = { peer: { flowParts: 0 }, messages, stats: () => null };
const owner: DatagramsOwner = { connection, clock: { now: () => 0 }, whileOpen: (call) => call() };
const withParts = { ...connection, peer: { flowParts: MAX_PARTS } };

describe('flows alone', () => {
  it('deliver each datagram to its flow, and early ones when it opens', () => {
    const flows = new SessionDatagrams(owner);
    const counts = noDatagrams();
    const seen: string[] = [];
    flows.receive(encodeFlowDatagram(1, utf8('early')));
    flows.receive(encodeFlowDatagram(2, utf8('other')));
    const flow = flows.open(4, (payload) => seen.push(text(payload)), counts);
    flows.receive(encodeFlowDatagram(1, utf8('in time')));
    flow.close();
    flows.receive(encodeFlowDatagram(1, utf8('late')));
    expect(seen).toEqual(['early', 'in time']);
    expect(counts).toEqual({ ...noDatagrams(), received: 2 });
    expect(flows.unclaimed).toBe(0);
    expect([flows.sweep(), flows.unclaimed]).toEqual([false, 0]);
    expect([flows.sweep(), flows.unclaimed]).toEqual([true, 2]);
  });

  it('keep the last 32 without a flow, and count the others', () => {
    const flows = new SessionDatagrams(owner);
    for (let i = 0; i < 1_000; i++) {
      if (i === 990) flows.sweep();
      flows.receive(encodeFlowDatagram(5, Uint8Array.of(i & 0xff)));
    }
    flows.receive(new Uint8Array(0));
    const seen: number[] = [];
    flows.open(20, (payload) => seen.push(payload[0]!), noDatagrams());
    expect(seen).toEqual(Array.from({ length: 32 }, (_, i) => (968 + i) & 0xff));
    expect(flows.unclaimed).toBe(969);
  });

  it('distinguish a datagram that is too long from one without capacity', () => {
    const flows = new SessionDatagrams({ ...owner, connection: { ...connection, messages: { ...messages, sendDatagram: () => false } } });
    const counts = noDatagrams();
    const flow = flows.open(0, () => {}, counts);
    for (const length of [SURE_LENGTH - 1, 1_410, 1_411, 65_507]) flow.send(new Uint8Array(length));
    expect(counts).toEqual({ ...noDatagrams(), dropped: 2, tooLong: 2 });
  });

  it('send a datagram that fits a packet whole, a longer one in parts, and all parts or none', () => {
    const sent: number[] = [];
    const sendDatagram = (content: Uint8Array): boolean => sent.push(content.length) > 0;
    const room = { ...withParts, messages: { ...messages, datagramRoom: 57, sendDatagram } };
    const counts = noDatagrams();
    const flow = new SessionDatagrams({ ...owner, connection: room }).open(0, () => {}, counts);
    for (const length of [1_409, 1_410]) flow.send(new Uint8Array(length));
    expect(sent).toEqual([1_411, 709, 709]);
    flow.send(new Uint8Array(65_507));
    room.messages.datagramRoom = 56;
    flow.send(new Uint8Array(65_507));
    flow.send(new Uint8Array(65_528));
    expect(sent).toHaveLength(3 + 57);
    expect(counts).toEqual({ ...noDatagrams(), sent: 3, dropped: 1, tooLong: 1 });
  });

  it('put parts together before the flow opens, and count what stayed incomplete for it', () => {
    let now = 0;
    const flows = new SessionDatagrams({ ...owner, connection: withParts, clock: { now: () => now } });
    const counts = noDatagrams();
    const seen: string[] = [];
    const part = (number: number, index: number, payload: string) =>
      flows.receive(encodeFlowPart({ flow: 1, number, index, count: 2, payload: utf8(payload) }));
    part(1, 1, 'ly');
    part(1, 0, 'ear');
    part(2, 0, 'never whole');
    flows.open(4, (payload) => seen.push(text(payload)), counts);
    now = 1_000;
    expect([flows.sweep(), counts.incomplete]).toEqual([true, 1]);
    part(3, 0, 'who');
    expect(flows.sweep()).toBe(false);
    part(3, 1, 'le');
    flows.receive(encodeFlowPart({ flow: 1, number: 0, index: 0, count: 1, payload: utf8('at once') }));
    expect([seen, counts]).toEqual([['early', 'whole', 'at once'], { ...noDatagrams(), received: 3, incomplete: 1 }]);
  });

  it('keep at most 256 KiB without a flow', () => {
    const flows = new SessionDatagrams(owner);
    for (let i = 0; i < 10; i++) flows.receive(encodeFlowDatagram(1, new Uint8Array(60_000).fill(i)));
    const seen: number[] = [];
    flows.open(4, (payload) => seen.push(payload[0]!), noDatagrams());
    expect([seen, flows.unclaimed]).toEqual([[6, 7, 8, 9], 6]);
  });
});

/** A device that echoes the datagrams of every stream. */
async function echoing(options: Parameters<typeof pair>[0] = {}): Promise<ConnectedPair> {
  const both = await pair(options);
  const accepted = await acceptedSession(both);
  accepted.onDatagram = (datagram) => accepted.datagrams.receive(datagram);
  accepted.onStream = (incoming) => {
    const stream = incoming.accept();
    const flow = accepted.datagrams.open(stream.id, (payload) => queueMicrotask(() => flow.send(payload)), noDatagrams());
  };
  both.session.onDatagram = (datagram) => both.session.datagrams.receive(datagram);
  return both;
}

function flowOn({ session }: ConnectedPair, stream: Stream) {
  const counts = noDatagrams();
  const seen: Uint8Array[] = [];
  return { ...session.datagrams.open(stream.id, (payload) => seen.push(payload), counts), counts, seen };
}

describe('flows over a session', () => {
  it('datagrams that leave with the opening of their stream are answered after one round trip', async () => {
    const both = await echoing({ link: { delay: 50 } });
    const began = both.simulation.now;
    const flow = flowOn(both, both.session.streams.open(1));
    flow.send(utf8('at once'));
    await both.simulation.run(() => flow.seen.length > 0);
    expect(both.simulation.now - began).toBeLessThan(105);
    expect(flow.seen.map(text)).toEqual(['at once']);
  });

  it('a datagram of any size that UDP carries arrives as it was', async () => {
    const both = await echoing({ link: { delay: 5 } });
    const flow = flowOn(both, both.session.streams.open(1));
    const sizes = [0, 1, 1_157, 1_158, 1_159, 1_199, 1_200, 1_372, 1_472, 9_000, 65_507];
    for (const size of sizes) {
      flow.send(pattern(size));
      await both.simulation.run(100);
    }
    expect(flow.seen.map(({ length }) => length)).toEqual(sizes);
    expect(flow.seen.every((payload) => Buffer.from(payload).equals(pattern(payload.length)))).toBe(true);
    expect(flow.counts).toEqual({ ...noDatagrams(), sent: sizes.length, received: sizes.length });
  });

  it('to a peer that takes no datagrams nothing is sent', async () => {
    const both = await pair({ device: { parameters: { maxDatagram: 0 } } });
    const flow = flowOn(both, both.session.streams.open(1));
    for (const size of [0, 100, 5_000]) flow.send(new Uint8Array(size));
    await both.simulation.run(100);
    expect([both.session.isOpen, flow.counts]).toEqual([true, { ...noDatagrams(), dropped: 2, tooLong: 1 }]);
  });

  it('what a link loses is counted at the end that sent it, and what lacks a part at the other', async () => {
    const both = await echoing({ link: { delay: 20, loss: 0.1 }, seed: 3 });
    const flow = flowOn(both, both.session.streams.open(1));
    for (let i = 0; i < 60; i++) {
      flow.send(new Uint8Array(3_000));
      await both.simulation.run(20);
    }
    await both.simulation.run(2_000);
    both.session.datagrams.sweep();
    const accepted = await acceptedSession(both);
    for (const { datagrams } of [both.session, accepted]) expect(datagrams.lost).toBeGreaterThan(5);
    expect(flow.counts.incomplete).toBeGreaterThan(0);
    expect(flow.seen.length).toBeLessThan(60);
    const before = both.session.datagrams.lost;
    await both.simulation.settle(both.session.close());
    expect(both.session.datagrams.lost).toBe(before);
  });

  it('concurrent streams keep their datagrams apart while the link loses and reorders', { tags: ['slow'] }, async () => {
    const both = await echoing({ link: { delay: 20, loss: 0.1, jitter: 30 }, seed: 3 });
    const flows = Array.from({ length: 20 }, () => flowOn(both, both.session.streams.open(1)));
    for (let round = 0; round < 20; round++) {
      for (const [index, flow] of flows.entries()) flow.send(Uint8Array.of(index, round));
      await both.simulation.run(50);
    }
    await both.simulation.run(2_000);
    flows.forEach(({ seen }, index) => {
      expect(seen.every(([from]) => from === index)).toBe(true);
      expect(new Set(seen.map(([, round]) => round)).size).toBe(seen.length);
    });
    const received = flows.reduce((sum, { seen }) => sum + seen.length, 0);
    expect(received).toBeGreaterThan(250);
    expect(received).toBeLessThan(400);
  });
});
