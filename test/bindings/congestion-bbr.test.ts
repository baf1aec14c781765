/** BBR through its states, as in draft-ietf-ccwg-bbr. */
import { describe, expect, test } from 'vitest';
import { CongestionState as State } from '../../bindings/index.ts';
import { Flow, type FlowOptions } from './flow.ts';
import { Line, PARAMETERS, runTogether } from './pair.ts';

/** Rate of the line, bit/s. It has too few packets per round to count rounds in Startup and ProbeRTT. */
const RATE = 10e6;
/** Rate of the line where rounds are counted, bit/s. */
const FULL_RATE = 20e6;
const RTT = 50;
const BDP = (RATE / 8_000) * RTT;
const FULL_BDP = (FULL_RATE / 8_000) * RTT;
/** §2.5: PacingMarginPercent */
const MARGIN = 0.99;

function flow(options: Partial<FlowOptions> = {}): Flow {
  return new Flow({ congestion: 'bbr', line: new Line(RATE, 2 * BDP), rtt: RTT, ...options });
}

function fullFlow(): Flow {
  return flow({ line: new Line(FULL_RATE, 2 * FULL_BDP) });
}

interface Visit {
  state: number;
  from: number;
  to: number;
}

/** Runs for `time` ms and returns the states it went through; calls `look` every ms. */
function visits(of: Flow, time: number, look: (stats: Flow['stats']) => void = () => {}): Visit[] {
  const found: Visit[] = [];
  for (let end = of.pair.now + time; of.pair.now < end; ) {
    of.pair.run(1);
    const { stats } = of;
    const state = stats.congestionState;
    const last = found.at(-1);
    if (last?.state === state) last.to = of.pair.now;
    else found.push({ state, from: of.pair.now, to: of.pair.now });
    look(stats);
  }
  return found;
}

test('Startup doubles the rate each round, Drain empties the queue, ProbeBW cycles', { tags: ['slow'] }, () => {
  const bbr = fullFlow();
  const rates: number[] = [];
  for (let round = 0; round < 5; round++) {
    bbr.pair.run(RTT);
    rates.push(bbr.stats.pacingRate);
  }
  // From the second to the fifth round: three doublings, minus the granularity of packets and ticks.
  expect((rates[4] as number) / (rates[1] as number)).toBeGreaterThan(5.5);
  const order = visits(bbr, 4_000).map(({ state }) => state);
  // After Drain the queue is empty: DOWN lasts no longer than one acknowledgement takes.
  expect(order.slice(0, 7)).toEqual([
    State.STARTUP,
    State.DRAIN,
    State.PROBE_BW_CRUISE,
    State.PROBE_BW_REFILL,
    State.PROBE_BW_UP,
    State.PROBE_BW_DOWN,
    State.PROBE_BW_CRUISE,
  ]);
});

test('Startup ends on a plateau with the bandwidth of the line, within 2 %', { tags: ['slow'] }, () => {
  const bbr = flow();
  while (bbr.stats.congestionState === State.STARTUP) bbr.pair.run(1);
  expect(bbr.stats.congestionState).toBe(State.DRAIN);
  expect(Math.abs(bbr.stats.bandwidth / (RATE / 8) - 1)).toBeLessThan(0.02);
});

test('each state paces at its gain and keeps its window (§5.6.1)', { tags: ['slow'] }, () => {
  const bbr = fullFlow();
  const gains = new Map<number, number>();
  const windows = new Map<number, number>();
  visits(bbr, 5_000, ({ congestionState: state, pacingRate, bandwidth, congestionWindow }) => {
    gains.set(state, pacingRate / bandwidth);
    windows.set(state, Math.max(windows.get(state) ?? 0, congestionWindow));
  });
  for (const [state, gain] of [
    [State.DRAIN, 0.5],
    [State.PROBE_BW_DOWN, 0.9],
    [State.PROBE_BW_CRUISE, 1],
    [State.PROBE_BW_REFILL, 1],
    [State.PROBE_BW_UP, 1.25],
  ] as const) {
    expect(gains.get(state), `state ${state}`).toBeCloseTo(gain * MARGIN, 2);
  }
  expect(windows.get(State.PROBE_BW_CRUISE)).toBeGreaterThan(1.9 * FULL_BDP);
  expect(windows.get(State.PROBE_BW_CRUISE)).toBeLessThan(2.5 * FULL_BDP);
  expect(windows.get(State.PROBE_BW_UP)).toBeLessThan(2.8 * FULL_BDP);
});

test('ProbeBW probes for bandwidth after 2 to 3 s, or 62 rounds (§5.3.3.8.3)', { tags: ['slow'] }, () => {
  const bbr = flow();
  const all = visits(bbr, 9_500);
  const ups = all.filter(({ state }) => state === State.PROBE_BW_UP);
  expect(ups.length).toBeGreaterThanOrEqual(3);
  for (let i = 1; i < ups.length; i++) {
    const pause = (ups[i] as Visit).from - (ups[i - 1] as Visit).to;
    expect(pause).toBeGreaterThan(1_900);
    expect(pause).toBeLessThan(3_400);
  }
});

test('UP ends half a round after its packets queue, before the three rounds without growth of §5.3.3.9', { tags: ['slow'] }, () => {
  const bbr = flow({ line: new Line(RATE, 4 * BDP) });
  const ups = visits(bbr, 9_500).filter(({ state }) => state === State.PROBE_BW_UP);
  expect(ups.length).toBeGreaterThanOrEqual(3);
  for (const { from, to } of ups) {
    // A round to the first acknowledgement, half a round or more until the queue is 9 ms long, half a round to confirm
    // it. Three rounds would be 3.8.
    expect(to - from).toBeGreaterThan(2 * RTT);
    expect(to - from).toBeLessThan(3 * RTT);
  }
});

test('UP continues while it finds bandwidth, and then for the three rounds of the draft', { tags: ['slow'] }, () => {
  const line = new Line(RATE, 4 * BDP);
  const bbr = flow({ line });
  while (bbr.stats.congestionState !== State.PROBE_BW_REFILL) bbr.pair.run(1);
  line.rate = 2 * RATE;
  const up = visits(bbr, 1_500).find(({ state }) => state === State.PROBE_BW_UP) as Visit;
  expect(up.to - up.from).toBeGreaterThan(6 * RTT);
  expect(bbr.stats.bandwidth).toBeGreaterThan(1.9 * (RATE / 8));
});

test('ProbeRTT after 10 s without a smaller round trip: half the window for 200 ms and a round (§5.3.4)', { tags: ['slow'] }, () => {
  const bbr = flow({ line: new Line(RATE / 2, BDP) });
  bbr.pair.run(1_000);
  // The path becomes longer, so even with an empty queue no round trip is as small as before.
  bbr.pair.link.delay += 1;
  let least = Number.POSITIVE_INFINITY;
  let gain = 0;
  const all = visits(bbr, 10_500, ({ congestionState, congestionWindow, pacingRate, bandwidth }) => {
    if (congestionState !== State.PROBE_RTT) return;
    least = Math.min(least, congestionWindow);
    gain = pacingRate / bandwidth;
  });
  const probes = all.filter(({ state }) => state === State.PROBE_RTT);
  expect(probes.length).toBe(1);
  const [{ from, to }] = probes as [Visit];
  expect(from).toBeGreaterThan(11_000);
  expect(to - from).toBeGreaterThan(200);
  expect(to - from).toBeLessThan(200 + 4 * RTT);
  expect(least).toBeLessThan(0.55 * (BDP / 2));
  expect(gain).toBeCloseTo(MARGIN, 2);
  expect(all[all.findIndex(({ state }) => state === State.PROBE_RTT) + 1]?.state).toBe(State.PROBE_BW_CRUISE);
});

test('BBR follows a line that gets slower or faster', { tags: ['slow'] }, () => {
  const line = new Line(RATE, 4 * BDP);
  const bbr = flow({ line });
  bbr.pair.run(3_000);
  line.rate = RATE / 2;
  bbr.pair.run(9_000);
  expect(bbr.stats.bandwidth).toBeLessThan(0.6 * (RATE / 8));
  line.rate = 2 * RATE;
  bbr.pair.run(6_000);
  expect(bbr.stats.bandwidth).toBeGreaterThan(1.8 * (RATE / 8));
});

test('an application that sends little stays in Startup, and its window does not shrink', () => {
  const bbr = flow();
  bbr.pause();
  bbr.pair.run(2_000);
  const { connection } = bbr.pair.initiator;
  for (let i = 0; i < 100; i++) {
    connection.ping();
    bbr.pair.run(40);
  }
  expect(bbr.stats.congestionState).toBe(State.STARTUP);
  expect(bbr.stats.congestionWindow).toBeGreaterThanOrEqual(12_000);
});

test("the peer's flow control window ends Startup like a bottleneck (§4.1.1)", () => {
  const bbr = flow({ parameters: { ...PARAMETERS, initialMaxStreamData: BDP / 2 } });
  bbr.pair.run(20 * RTT);
  expect(bbr.stats.congestionState).not.toBe(State.STARTUP);
  expect(bbr.stats.bandwidth).toBeGreaterThan(0.4 * (RATE / 8));
  expect(bbr.measure(2_000)).toBeGreaterThan(0.35 * (RATE / 1e6));
});

test('after a pause it resumes at the rate it had measured (§5.4)', () => {
  const bbr = flow();
  bbr.pair.run(4_000);
  bbr.pause();
  bbr.pair.run(3_000);
  expect(bbr.stats.bytesInFlight).toBe(0);
  bbr.resume();
  // One and a half round trips: the pipe is full again.
  bbr.pair.run(1.5 * RTT);
  expect(bbr.measure(500)).toBeGreaterThan(0.9 * (RATE / 1e6));
});

describe('losses', () => {
  test('in Startup, with the queue full, end it: the window is bounded by the delivered bytes', () => {
    const line = new Line(RATE, BDP / 2);
    const bbr = flow({ line });
    const all = visits(bbr, 1_000);
    expect(all[1]?.state).toBe(State.DRAIN);
    expect(all[1]?.from as number).toBeLessThan(1_000 + 12 * RTT);
    expect(bbr.stats.congestionWindow).toBeLessThan(1.6 * BDP);
  });

  test('at random do not end Startup before the line is full, and do not lower the rate', { tags: ['slow'] }, () => {
    const bbr = flow({ loss: 0.05, seed: 11 });
    while (bbr.stats.congestionState === State.STARTUP) bbr.pair.run(1);
    expect(bbr.stats.bandwidth).toBeGreaterThan(0.85 * (RATE / 8));
    let least = Number.POSITIVE_INFINITY;
    visits(bbr, 8_000, ({ bandwidth }) => {
      least = Math.min(least, bandwidth);
    });
    expect(least).toBeGreaterThan(0.85 * (RATE / 8));
  });

  test('of a queue of a quarter BDP end the probe and bound the window, with headroom left', { tags: ['slow'] }, () => {
    const line = new Line(RATE, BDP / 4);
    const bbr = flow({ line });
    bbr.pair.run(6_000);
    const windows: number[] = [];
    const all = visits(bbr, 6_000, ({ congestionState, congestionWindow }) => {
      if (congestionState === State.PROBE_BW_CRUISE) windows.push(congestionWindow);
    });
    expect(all.some(({ state }) => state === State.PROBE_BW_UP)).toBe(true);
    expect(Math.max(...windows)).toBeLessThan(1.45 * BDP);
  });

  test.each([100, 150, 200])('that last until nothing arrives, %d ms into Startup, do not end it', { tags: ['slow'] }, (start) => {
    const fast = flow({ line: new Line(100e6, BDP * 5) });
    const { pair } = fast;
    pair.run(start);
    expect(fast.stats.congestionState).toBe(State.STARTUP);
    const before = fast.stats.bandwidth;
    pair.intercept = () => null;
    pair.run(2_000);
    pair.intercept = (datagram) => datagram;
    const after = fast.received;
    expect(pair.run(20_000, () => fast.received > after)).toBe(true);
    // From four packets it takes 8 doublings to fill the line.
    pair.run(15 * RTT);
    expect(fast.stats.bandwidth).toBeGreaterThan(4 * before);
    expect(Math.abs(fast.stats.bandwidth / (100e6 / 8) - 1)).toBeLessThan(0.05);
  });

  test('that last until nothing arrives shrink the window; it recovers with the path', () => {
    const bbr = flow({ parameters: { idleTimeout: 0, initialMaxData: 8_000_000, initialMaxStreamData: 3_700_000 } });
    bbr.pair.run(3_000);
    bbr.pair.link.loss = 1;
    bbr.pair.run(3_000);
    bbr.pair.link.loss = 0;
    bbr.pair.run(3_000);
    expect(bbr.measure(1_000)).toBeGreaterThan(0.85 * (RATE / 1e6));
  });
});

test.each([
  ['alone', 0, 1],
  ['with jitter', 5, 1],
  ['with timers of 10 ms', 0, 10],
])('%s it never takes its own queue for that of another flow', { tags: ['slow'] }, (_name, jitter, granularity) => {
  const bbr = flow({ line: new Line(RATE, 4 * BDP), granularity });
  bbr.pair.link.jitter = jitter;
  expect(visits(bbr, 12_000).map(({ state }) => state)).not.toContain(State.COMPETE);
});

test('it does not take hosts that process packets in batches for another flow', { tags: ['slow'] }, () => {
  const bbr = flow({ line: new Line(500e6, 1_000_000), rtt: 0.4 });
  bbr.pair.run(300);
  bbr.pair.turn = 2;
  expect(visits(bbr, 4_000).map(({ state }) => state)).not.toContain(State.COMPETE);
});

test('it knows the random loss of the link soon after Startup', { tags: ['slow'] }, () => {
  const known = Array.from({ length: 4 }, (_, seed) => {
    const bbr = flow({ line: new Line(5 * RATE, 5 * BDP), loss: 0.05, seed: seed + 1 });
    while (bbr.stats.congestionState !== State.PROBE_BW_CRUISE) bbr.pair.run(1);
    bbr.pair.run(3 * RTT);
    // It sends more than the line is to deliver, by the share that is lost.
    const { pacingRate, bandwidth } = bbr.stats;
    bbr.pair.free();
    return 1 - (MARGIN * bandwidth) / pacingRate;
  });
  const mean = known.reduce((sum, loss) => sum + loss) / known.length;
  expect(mean).toBeGreaterThan(0.038);
  expect(mean).toBeLessThan(0.055);
  expect(Math.min(...known)).toBeGreaterThan(0.02);
});

test('beside CUBIC in a full queue it competes, and stops when CUBIC ends', { tags: ['slow'] }, () => {
  const line = new Line(RATE, BDP);
  const [cubic, bbr] = [flow({ congestion: 'cubic', line, seed: 1 }), flow({ line, seed: 2 })];
  const competes = (): boolean => bbr.stats.congestionState === State.COMPETE;
  expect(runTogether([cubic.pair, bbr.pair], 10_000, competes)).toBe(true);
  cubic.pause();
  // At the latest until the next ProbeRTT.
  expect(runTogether([cubic.pair, bbr.pair], 13_000, () => !competes())).toBe(true);
  expect(runTogether([cubic.pair, bbr.pair], 3_000, competes)).toBe(false);
  for (const { pair } of [cubic, bbr]) pair.free();
});

test('while competing, it falls to the minimum window after persistent congestion, and grows from there (RFC 9002 §7.6.2)', {
  tags: ['slow'],
}, () => {
  const line = new Line(RATE, BDP);
  const [cubic, bbr] = [flow({ congestion: 'cubic', line, seed: 1 }), flow({ line, seed: 2 })];
  const pairs = [cubic.pair, bbr.pair];
  for (let i = 0; i < 500 && bbr.stats.congestionState !== State.COMPETE; i++) runTogether(pairs, 20);
  const before = bbr.stats.congestionWindow;
  expect(bbr.stats.congestionState).toBe(State.COMPETE);
  bbr.pair.link.loss = 1;
  runTogether(pairs, 3_000);
  bbr.pair.link.loss = 0;
  while (bbr.stats.congestionWindow > 4_800) runTogether(pairs, 1);
  runTogether(pairs, RTT);
  expect(bbr.stats.congestionWindow).toBeLessThan(before / 4);
  for (const pair of pairs) pair.free();
});
