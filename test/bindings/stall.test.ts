/**
 * A receiver whose data stops arriving probes the sender: what that saves after a NAT rebinding, and how little it
 * costs otherwise.
 */
import { describe, expect, test } from 'vitest';
import { EventKind } from '../../bindings/index.ts';
import { Pair } from './pair.ts';
import { content, Reader, Writer } from './traffic.ts';

const RTT = 50;
/**
 * Only acknowledgement delays and timers of the platform: the round trip, four times its variation, the delay of an
 * acknowledgement.
 */
const TIMEOUT = RTT + 4 * (RTT / 2) + 25;
/**
 * Three timeouts until the receiver probes; then the sender's own timeout, doubled for each unanswered probe, may have
 * to expire.
 */
const SOON = 8 * TIMEOUT;
const KEEP_ALIVE = { interval: 25_000, retryInterval: 2_000, maxRetries: 15 };
const LEAST = 16_384;
/** All acknowledgements have arrived, and no probe was sent yet. */
const SETTLED = 3 * RTT;

/** A pair in which the responder writes to the stream `id` and the initiator reads; both have keep-alive. */
function downloading(): { pair: Pair; id: number; reader: Reader; sent: { up: number; down: number } } {
  const pair = new Pair({ link: { delay: RTT / 2 }, initiator: { keepAlive: KEEP_ALIVE }, responder: { keepAlive: KEEP_ALIVE } });
  const { initiator, responder } = pair;
  // As after a handshake both know the round trip.
  for (const { connection } of pair.ends) connection.ping();
  pair.run(5 * RTT);
  const id = responder.connection.streams.open();
  const reader = new Reader(initiator);
  initiator.onEvent = (event) => reader.on(event);
  const sent = { up: 0, down: 0 };
  pair.intercept = (datagram, from) => {
    sent[from === initiator ? 'up' : 'down']++;
    return datagram;
  };
  return { pair, id, reader, sent };
}

/**
 * ms until `bytes` were read. With `last`, a NAT rebinds the receiver after it has answered that packet of the sender:
 * packets in flight and later ones are lost until a packet of the receiver shows its new address.
 */
function timeToRead(bytes: number, last = Number.POSITIVE_INFINITY): number {
  const { pair, id, reader } = downloading();
  let passed = 0;
  let rebound = Number.POSITIVE_INFINITY;
  let lost = false;
  pair.intercept = (datagram, from) => {
    if (from === pair.initiator) {
      if (pair.now > rebound) lost = false;
      return datagram;
    }
    if (++passed === last) rebound = pair.now + RTT / 2;
    const passes = !lost;
    if (passed === last) lost = true;
    return passes ? datagram : null;
  };
  const writer = new Writer(pair.responder, id, bytes);
  pair.responder.onEvent = (event) => writer.on(event);
  const from = pair.now;
  expect(
    pair.run(60_000, () => reader.ended.has(id)),
    `rebound after packet ${last}`,
  ).toBe(true);
  expect([reader.wrong, reader.lengths.get(id)]).toEqual([0, bytes]);
  const time = pair.now - from;
  pair.free();
  return time;
}

describe('a NAT rebinds the end that only receives', () => {
  // Below LEAST no probe is sent; when one of the last packets is lost, fewer than an acknowledgement takes, the end of
  // the stream is lost, too, and repeated.
  const resumes = (step: number): void => {
    const whole = timeToRead(1 << 20);
    for (let last = 20; last < 720; last += step)
      expect(timeToRead(1 << 20, last), `rebound after packet ${last}`).toBeLessThan(whole + SOON);
  };

  test('whichever packet is the last to arrive, the transfer resumes within a few timeouts', { tags: ['slow'] }, () => resumes(233));
  test('every fifth packet as the last to arrive: the transfer resumes', { tags: ['slow'] }, () => resumes(5));
});

describe('the cost', () => {
  test('of a stream that ended: no packet', () => {
    const { pair, id, reader, sent } = downloading();
    const writer = new Writer(pair.responder, id, 4 * LEAST);
    pair.responder.onEvent = (event) => writer.on(event);
    expect(pair.run(5_000, () => reader.ended.has(id) && writer.finished)).toBe(true);
    const before = { ...sent };
    pair.run(10_000);
    expect(sent).toEqual(before);
  });

  test('of a message of 60 KiB as the answer to another: no packet', () => {
    const { pair, sent } = downloading();
    pair.initiator.onEvent = ({ kind, stream }, { connection }) => {
      if (kind === EventKind.MESSAGE) connection.messages.read(stream);
    };
    for (let i = 0; i < 5; i++) {
      pair.responder.connection.messages.send(new Uint8Array(60_000));
      pair.run(2_000);
      const before = { ...sent };
      pair.run(5_000);
      expect(sent, `message ${i}`).toEqual(before);
    }
  });

  test('of a sender that pauses: one packet and its acknowledgement', () => {
    const { pair, id, sent } = downloading();
    for (let i = 0; i < 5; i++) {
      pair.responder.connection.streams.write(id, content(id, i * LEAST, LEAST));
      pair.run(SETTLED);
      const before = { ...sent };
      pair.run(10_000);
      expect(sent, `pause ${i}`).toEqual({ up: before.up + 1, down: before.down + 1 });
    }
  });

  test('of a sender of a line a second: at most one packet and its acknowledgement in 16 KiB', { tags: ['slow'] }, () => {
    const packets = (length: number): { up: number; down: number } => {
      const { pair, id, sent } = downloading();
      for (let i = 0; i < 400; i++) {
        pair.responder.connection.streams.write(id, content(id, i * length, length));
        pair.run(1_000);
      }
      pair.free();
      return sent;
    };
    const without = packets(10);
    const asked = packets(100);
    expect(asked.up).toBeLessThanOrEqual(without.up + 2);
    expect(asked.down).toBeLessThanOrEqual(without.down + 2);
  });

  test('of datagrams: one packet in 16 KiB, and none while they arrive', () => {
    const { pair, sent } = downloading();
    pair.initiator.onEvent = ({ kind }, { connection }) => {
      if (kind === EventKind.DATAGRAM) connection.messages.readDatagram();
    };
    const burst = (): void => {
      for (let i = 0; i < 20; i++) {
        pair.responder.connection.messages.sendDatagram(new Uint8Array(1_000));
        pair.run(20);
      }
      pair.run(SETTLED);
    };
    for (let i = 0; i < 3; i++) {
      const from = sent.down;
      burst();
      expect(sent.down).toBe(from + 20);
      const before = { ...sent };
      pair.run(10_000);
      expect(sent, `pause ${i}`).toEqual({ up: before.up + 1, down: before.down + 1 });
    }
  });
});
