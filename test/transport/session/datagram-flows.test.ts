/** Datagrams of byte streams over a session: early, late, too long, without a flow; and on another path. */
import { describe, expect, it } from 'vitest';
import { encodeFlowDatagram } from '../../../protocol/datagrams/index.ts';
import { DatagramFlows, noDatagrams, SURE_LENGTH } from '../../../transport/session/datagram-flows.ts';
import type { SessionStream } from '../../../transport/session/index.ts';
import { acceptedSession, type ConnectedPair, pair, text, utf8 } from './support.ts';

describe('flows alone', () => {
  it('deliver each datagram to its flow, and early ones when it opens', () => {
    const flows = new DatagramFlows(() => true);
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
    const flows = new DatagramFlows(() => true);
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
    const flows = new DatagramFlows(() => false);
    const counts = noDatagrams();
    const flow = flows.open(0, () => {}, counts);
    flow.send(new Uint8Array(SURE_LENGTH - 1));
    flow.send(new Uint8Array(SURE_LENGTH));
    expect(counts).toEqual({ ...noDatagrams(), dropped: 1, tooLong: 1 });
  });
});

/** A device that echoes the datagrams of every stream. */
async function echoing(options: Parameters<typeof pair>[0] = {}): Promise<ConnectedPair> {
  const both = await pair(options);
  const accepted = await acceptedSession(both);
  accepted.onDatagram = (datagram) => accepted.flows.receive(datagram);
  accepted.onStream = (incoming) => {
    const stream = incoming.accept();
    const flow = accepted.flows.open(stream.id, (payload) => queueMicrotask(() => flow.send(payload)), noDatagrams());
  };
  both.session.onDatagram = (datagram) => both.session.flows.receive(datagram);
  return both;
}

function flowOn({ session }: ConnectedPair, stream: SessionStream) {
  const counts = noDatagrams();
  const seen: Uint8Array[] = [];
  return { ...session.flows.open(stream.id, (payload) => seen.push(payload), counts), counts, seen };
}

describe('flows over a session', () => {
  it('datagrams that leave with the opening of their stream are answered after one round trip', async () => {
    const both = await echoing({ link: { delay: 50 } });
    const began = both.simulation.now;
    const flow = flowOn(both, both.session.startStream(1));
    flow.send(utf8('at once'));
    await both.simulation.run(() => flow.seen.length > 0);
    expect(both.simulation.now - began).toBeLessThan(105);
    expect(flow.seen.map(text)).toEqual(['at once']);
  });

  it('a datagram of the stated length always fits, a longer one may not', async () => {
    const both = await echoing();
    const flow = flowOn(both, both.session.startStream(1));
    flow.send(new Uint8Array(SURE_LENGTH - 1).fill(3));
    flow.send(new Uint8Array(1_300));
    await both.simulation.run(1_000);
    expect(flow.seen.map(({ length }) => length)).toEqual([SURE_LENGTH - 1]);
    expect(flow.counts).toEqual({ sent: 1, received: 1, tooLong: 1, dropped: 0 });
  });

  it('concurrent streams keep their datagrams apart while the link loses and reorders', { tags: ['slow'] }, async () => {
    const both = await echoing({ link: { delay: 20, loss: 0.1, jitter: 30 }, seed: 3 });
    const flows = Array.from({ length: 20 }, () => flowOn(both, both.session.startStream(1)));
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
