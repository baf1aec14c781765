/** Acknowledgements, congestion window, loss recovery and pacing (RFC 9002). */
import { describe, expect, test } from 'vitest';
import { EventKind } from '../../bindings/index.ts';
import { type End, Pair, type PairOptions } from './pair.ts';
import { content, Reader, Writer } from './traffic.ts';

const PACKET = 1_200;
const INITIAL_WINDOW = 10 * PACKET;
const NEWRENO = { congestion: 'newreno' } as const;

/** A bulk transfer from initiator to responder that a test can stop and inspect. */
function bulk(total: number, options: PairOptions = {}): { pair: Pair; reader: Reader; id: number; initiator: End } {
  const pair = new Pair(options);
  const id = pair.initiator.connection.streams.open();
  const writer = new Writer(pair.initiator, id, total);
  const reader = new Reader(pair.responder);
  pair.initiator.onEvent = (event) => writer.on(event);
  pair.responder.onEvent = (event) => reader.on(event);
  return { pair, reader, id, initiator: pair.initiator };
}

/** Index of the datagram among its sender's Data packets, counted from 1; drops those named by `lose`. */
function losing(pair: Pair, lose: (index: number) => boolean): void {
  let index = 0;
  pair.intercept = (datagram, from) => (from === pair.initiator && lose(++index) ? null : datagram);
}

describe('acknowledgements', () => {
  test('do not delay a small window by the maximum delay', () => {
    const total = 2_000_000;
    const { pair, reader, id } = bulk(total, {
      seed: 5,
      initiator: NEWRENO,
      link: { delay: 0.5, loss: 0.01 },
      parameters: { initialMaxStreamData: 1_000_000 },
    });
    const start = pair.now;
    pair.run(10_000, () => reader.lengths.get(id) === total);
    // NewReno at 1 % loss and 1 ms reaches about 15 MB/s; with a delay of 25 ms for each small window it was 1.1.
    expect(total / (pair.now - start)).toBeGreaterThan(5_000);
  });

  test('report the delay of the largest number, not of the oldest', () => {
    const pair = new Pair({ link: { delay: 10 } });
    pair.responder.onEvent = ({ kind, stream }, { connection }) => {
      if (kind === EventKind.MESSAGE) connection.messages.read(stream);
    };
    const send = (pause: number): void => {
      pair.initiator.connection.messages.send(content(0, 0, 100));
      pair.run(pause);
    };
    send(100);
    pair.link.delay = 30;
    // Pairs 20 ms apart: the second one is acknowledged at once, so nothing may be subtracted from its sample of 60 ms.
    for (let i = 0; i < 40; i++) {
      send(20);
      send(200);
    }
    const { rtt, minimumRtt } = pair.initiator.connection.stats();
    expect(minimumRtt).toBeLessThan(50);
    expect(rtt).toBeGreaterThan(58);
  });
});

describe('the congestion window of NewReno', () => {
  test('doubles each round trip until the first loss', () => {
    const { pair, initiator } = bulk(10_000_000, {
      initiator: NEWRENO,
      link: { delay: 50 },
      parameters: { initialMaxStreamData: 3_000_000, initialMaxData: 4_000_000 },
    });
    pair.run(101);
    expect(initiator.connection.stats().congestionWindow).toBeGreaterThanOrEqual(INITIAL_WINDOW);
    pair.run(300);
    const { congestionWindow } = initiator.connection.stats();
    expect(congestionWindow).toBeGreaterThan(5 * INITIAL_WINDOW);
    expect(congestionWindow).toBeLessThan(17 * INITIAL_WINDOW);
  });

  test('halves once for several losses of one round trip', { tags: ['slow'] }, () => {
    const { pair, initiator } = bulk(10_000_000, { initiator: NEWRENO, link: { delay: 20 } });
    pair.run(200);
    const before = initiator.connection.stats().congestionWindow;
    losing(pair, (index) => index % 7 === 1 && index < 40);
    const lost = initiator.connection.stats().packetsLost;
    pair.run(45, () => initiator.connection.stats().packetsLost > lost);
    const after = initiator.connection.stats().congestionWindow;
    expect(after).toBeGreaterThanOrEqual(before / 2);
    pair.run(20);
    expect(initiator.connection.stats().congestionWindow).toBeGreaterThan(before / 2.5);
    expect(initiator.connection.stats().congestionWindow).toBeLessThan(before);
  });

  test('does not grow while the application does not fill it', { tags: ['slow'] }, () => {
    const pair = new Pair({ initiator: NEWRENO });
    pair.responder.onEvent = ({ kind, stream }, { connection }) => {
      if (kind === EventKind.MESSAGE) connection.messages.read(stream);
    };
    for (let i = 0; i < 200; i++) {
      pair.initiator.connection.messages.send(content(0, 0, 800));
      pair.run(100);
    }
    expect(pair.initiator.connection.stats().congestionWindow).toBe(INITIAL_WINDOW);
  });

  test('falls to two packets after persistent congestion', { tags: ['slow'] }, () => {
    const { pair, initiator } = bulk(10_000_000, { initiator: NEWRENO, link: { delay: 20 }, parameters: { idleTimeout: 0 } });
    pair.run(300);
    expect(initiator.connection.stats().congestionWindow).toBeGreaterThan(INITIAL_WINDOW);
    // All packets are lost for a while except the probes that end it: a run of losses far longer than 3 PTO.
    pair.intercept = () => null;
    pair.run(4_000);
    pair.intercept = (datagram) => datagram;
    let least = Number.POSITIVE_INFINITY;
    for (let i = 0; i < 400; i++) {
      pair.run(10);
      least = Math.min(least, initiator.connection.stats().congestionWindow);
    }
    expect(least).toBeLessThanOrEqual(4 * PACKET);
  });
});

test('counts persistent congestion from the first packet after a pause: the round trip is known (RFC 9002 §7.6.2)', () => {
  const pair = new Pair({ initiator: NEWRENO, link: { delay: 20 }, parameters: { idleTimeout: 0 } });
  const { connection } = pair.initiator;
  connection.ping();
  pair.run(1_000);
  expect(connection.stats().bytesInFlight).toBe(0);
  pair.intercept = () => null;
  connection.messages.send(content(0, 0, 20_000));
  pair.run(4_000);
  pair.intercept = (datagram) => datagram;
  let least = Number.POSITIVE_INFINITY;
  for (let i = 0; i < 400; i++) {
    pair.run(10);
    least = Math.min(least, connection.stats().congestionWindow);
  }
  expect(least).toBeLessThanOrEqual(4 * PACKET);
});

describe('loss recovery', () => {
  test('a hole is filled after one round trip, not after a timer', () => {
    const { pair, reader, id } = bulk(11_000, { link: { delay: 40 } });
    losing(pair, (index) => index === 3);
    expect(pair.run(5_000, () => reader.ended.has(id))).toBe(true);
    expect(pair.initiator.connection.stats().packetsLost).toBe(1);
    expect(pair.now - 1_000).toBeLessThan(3 * 40 + 5);
  });

  test('a lost tail is sent again after the probe timeout', () => {
    const pair = new Pair({ link: { delay: 10 } });
    pair.initiator.connection.ping();
    pair.run(500);
    let message = 0;
    pair.responder.onEvent = ({ kind }) => {
      if (kind === EventKind.MESSAGE) message = pair.now;
    };
    losing(pair, (index) => index === 1);
    const start = pair.now;
    pair.initiator.connection.messages.send(content(0, 0, 100));
    expect(pair.run(2_000, () => message > 0)).toBe(true);
    // PTO = RTT + 4 × variation + 25 ms, then one way.
    expect(message - start).toBeLessThan(150);
  });

  test('a hole below fewer than three packets is found after 9/8 of a round trip (RFC 9002 §6.1.2)', () => {
    const [delay, rtt] = [100, 200];
    const pair = new Pair({ link: { delay } });
    let arrived = 0;
    pair.responder.onEvent = ({ kind, stream }, { connection }) => {
      if (kind === EventKind.MESSAGE) connection.messages.read(stream);
      if (kind === EventKind.MESSAGE) arrived = pair.now;
    };
    pair.initiator.connection.ping();
    pair.run(1_000);
    losing(pair, (index) => index === 1);
    const start = pair.now;
    pair.initiator.connection.messages.send(content(0, 0, 100));
    pair.run(1);
    pair.initiator.connection.ping();
    // The ACK of the second packet is back after 201 ms, and the first packet counts as lost at 225 ms; the probe
    // timeout would come after at least 325.
    expect(pair.run(2_000, () => arrived > 0)).toBe(true);
    expect(arrived - start).toBeGreaterThanOrEqual((9 / 8) * rtt + delay);
    expect(arrived - start).toBeLessThan((9 / 8) * rtt + delay + 5);
  });

  test.each([
    ['two numbers behind an acknowledged one waits for the timer', 2, 325],
    ['three numbers behind an acknowledged one is lost at once', 3, 303],
  ])('a packet %s (RFC 9002 §6.1.1)', (_, behind, expected) => {
    const pair = new Pair({ link: { delay: 100 } });
    const arrived = new Map<number, number>();
    pair.responder.onEvent = ({ kind, stream }, { connection }) => {
      if (kind === EventKind.MESSAGE) arrived.set(connection.messages.read(stream).length, pair.now);
    };
    pair.initiator.connection.ping();
    pair.run(1_000);
    // The last of the packets arrives alone, and is acknowledged at once because it leaves a gap.
    losing(pair, (index) => index <= behind);
    const start = pair.now;
    for (let i = 0; i <= behind; i++) {
      pair.initiator.connection.messages.send(content(0, 0, 100 + i));
      pair.run(1);
    }
    expect(pair.run(2_000, () => arrived.has(100))).toBe(true);
    expect(arrived.get(100)! - start).toBeGreaterThanOrEqual(expected - 1);
    expect(arrived.get(100)! - start).toBeLessThan(expected + 5);
  });

  /** Pauses between the probes that a message without acknowledgement causes in `ms`. */
  function pausesOfProbes(ms: number): number[] {
    const pair = new Pair({ link: { delay: 10 }, parameters: { idleTimeout: 0 } });
    pair.initiator.connection.ping();
    pair.run(500);
    const sent: number[] = [];
    pair.intercept = (_datagram, from) => {
      if (from === pair.initiator && sent.at(-1) !== pair.now) sent.push(pair.now);
      return null;
    };
    pair.initiator.connection.messages.send(content(0, 0, 100));
    pair.run(ms);
    return sent.slice(1).map((time, index) => time - (sent[index] as number));
  }

  test('the probe timeout doubles until something is acknowledged (RFC 9002 §6.2.1)', () => {
    const pauses = pausesOfProbes(3_000);
    expect(pauses.length).toBeGreaterThan(4);
    for (let i = 1; i < pauses.length; i++) expect((pauses[i] as number) / (pauses[i - 1] as number)).toBeCloseTo(2, 1);
  });

  test('the probe timeout grows to 2 to 3 s and no further, so that a path that recovers is noticed', () => {
    const last = pausesOfProbes(60_000).slice(-10);
    expect(Math.max(...last)).toBeLessThanOrEqual(3_000);
    expect(Math.min(...last)).toBeGreaterThanOrEqual(2_000);
  });

  test.each([2_000, 2_500, 3_000])('probes find a link that is up for a third of every %i ms', (period) => {
    let time = 0;
    const isUp = pausesOfProbes(60_000).map((pause) => {
      time += pause;
      return time % period > (2 / 3) * period;
    });
    // Of the probes that left after the back-off ended.
    expect(isUp.slice(6).filter(Boolean).length).toBeGreaterThan(4);
  });

  test('reordering within three packets is not taken for loss', () => {
    const { pair, reader, id, initiator } = bulk(300_000, { link: { delay: 20 } });
    let held: Uint8Array | null = null;
    pair.intercept = (datagram, from) => {
      if (from !== initiator) return datagram;
      const before = held;
      held = null;
      if (before === null && datagram.length === PACKET) {
        held = datagram;
        return null;
      }
      if (before !== null) pair.inject(before, pair.responder);
      return datagram;
    };
    pair.run(20_000, () => reader.ended.has(id));
    expect(reader.wrong).toBe(0);
    expect(reader.ended.has(id)).toBe(true);
  });
});

describe('pacing', () => {
  test('spreads a window over the round trip, also after a pause', () => {
    const { pair, initiator } = bulk(300_000, {
      link: { delay: 100 },
      parameters: { initialMaxStreamData: 3_000_000, initialMaxData: 4_000_000 },
    });
    initiator.record = true;
    pair.run(2_000);
    const writer = new Writer(initiator, initiator.connection.streams.open(), 300_000);
    initiator.onEvent = (event) => writer.on(event);
    initiator.sent.length = 0;
    pair.run(0.5);
    expect(initiator.sent.length).toBeLessThanOrEqual(14);
    pair.run(300);
    expect(initiator.sent.length).toBeGreaterThan(60);
  });
});

describe('sending order', () => {
  test('messages are sent before byte streams, which keep one packet in four', { tags: ['slow'] }, () => {
    const parameters = { initialMaxStreamData: 3_000_000, initialMaxData: 4_000_000 };
    const pair = new Pair({ memory: 32 << 20, link: { delay: 20 }, parameters });
    const { initiator, responder } = pair;
    const id = initiator.connection.streams.open();
    const writer = new Writer(initiator, id, 5_000_000);
    const reader = new Reader(responder);
    const send = () => {
      while (initiator.connection.messages.send(content(0, 0, 60_000)) >= 0);
    };
    initiator.onEvent = (event) => {
      writer.on(event);
      if (event.kind === EventKind.MESSAGES_WRITABLE) send();
    };
    let messages = 0;
    responder.onEvent = (event) => {
      reader.on(event);
      if (event.kind === EventKind.MESSAGE) messages += responder.connection.messages.read(event.stream).length;
    };
    send();
    expect(pair.run(3_000, () => reader.ended.has(id))).toBe(true);
    const bytes = reader.lengths.get(id) as number;
    expect(bytes / (bytes + messages)).toBeGreaterThan(0.2);
    expect(bytes / (bytes + messages)).toBeLessThan(0.4);
  });

  test('byte streams take turns', { tags: ['slow'] }, () => {
    const pair = new Pair({ link: { delay: 10 } });
    const { initiator, responder } = pair;
    const ids = Array.from({ length: 5 }, () => initiator.connection.streams.open());
    const writers = ids.map((id) => new Writer(initiator, id, 3_000_000));
    const reader = new Reader(responder);
    initiator.onEvent = (event) => {
      for (const writer of writers) writer.on(event);
    };
    responder.onEvent = (event) => reader.on(event);
    pair.run(800);
    const lengths = ids.map((id) => reader.lengths.get(id) as number);
    expect(Math.min(...lengths)).toBeGreaterThan(0.7 * Math.max(...lengths));
  });
});
