/**
 * Packets that arrive later than RFC 9002's thresholds allow: the thresholds adapt, and controllers undo their spurious
 * reductions.
 */
import { describe, expect, test } from 'vitest';
import type { CongestionControl } from '../../bindings/index.ts';
import { Flow, type FlowOptions } from './flow.ts';
import { Line } from './pair.ts';

const RATE = 20e6;
const RTT = 50;
const BDP = (RATE / 8_000) * RTT;
const controllers: CongestionControl[] = ['newreno', 'cubic', 'bbr'];

function flow(congestion: CongestionControl, jitter: number, options: Partial<FlowOptions> = {}): Flow {
  const made = new Flow({ congestion, line: new Line(RATE, BDP), rtt: RTT, seed: 3, ...options });
  made.pair.link.jitter = jitter;
  return made;
}

describe('jitter that reorders', () => {
  // The line carries 19.4; without adaptation these were 1.0, 1.2 and 9.0 at 5 ms.
  const cells = controllers.flatMap((congestion) => [5, 20].map((jitter) => [congestion, jitter] as const));

  test.each(cells)('%s, %d ms: the line stays full', { tags: ['slow'] }, (congestion, jitter) => {
    const made = flow(congestion, jitter);
    expect(made.measure(4_000)).toBeGreaterThan(17);
  });

  test('after the first round trips no packet is declared lost', { tags: ['slow'] }, () => {
    const made = flow('bbr', 15, { line: new Line(RATE, 20 * BDP) });
    made.pair.run(1_000);
    const { packetsLost } = made.stats;
    made.pair.run(3_000);
    expect(made.stats.packetsLost).toBe(packetsLost);
  });

  test('with random loss BBR keeps the line full', { tags: ['slow'] }, () => {
    const made = flow('bbr', 5, { loss: 0.02 });
    expect(made.measure(6_000)).toBeGreaterThan(16.5);
  });
});

describe('one packet that is late without reordering for a while', () => {
  /** Holds one packet back until it is declared lost. `before`: the window until then. */
  function late(congestion: CongestionControl): { made: Flow; before: number; arrive: () => void } {
    const made = flow(congestion, 0, { line: new Line(RATE, 20 * BDP) });
    made.pair.run(400);
    const { packetsLost } = made.stats;
    let held: Uint8Array | undefined;
    made.pair.intercept = (datagram, from) => {
      if (held !== undefined || from !== made.pair.initiator || datagram.length < 1_000) return datagram;
      held = datagram;
      return null;
    };
    let before = 0;
    while (made.stats.packetsLost === packetsLost) {
      before = made.stats.congestionWindow;
      made.pair.run(1);
    }
    return { made, before, arrive: () => made.pair.inject(held as Uint8Array, made.pair.responder) };
  }

  test.each(['newreno', 'cubic'] as const)(
    '%s halves its window, and restores it when the packet arrives',
    { tags: ['slow'] },
    (congestion) => {
      const { made, before, arrive } = late(congestion);
      expect(made.stats.congestionWindow).toBeLessThan(0.75 * before);
      const { packetsLost } = made.stats;
      arrive();
      made.pair.run(RTT);
      expect(made.stats.congestionWindow).toBeGreaterThanOrEqual(before);
      expect(made.stats.packetsLost).toBe(packetsLost - 1);
    },
  );

  test.each(['newreno', 'cubic'] as const)('%s keeps the reduction when the packet does not arrive', (congestion) => {
    const { made, before } = late(congestion);
    made.pair.run(RTT);
    expect(made.stats.congestionWindow).toBeLessThan(0.8 * before);
  });
});
