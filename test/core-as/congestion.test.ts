/**
 * The round-trip time compared with RFC 9002 §5.3, CUBIC's window with the formulas of RFC 9438, HyStart++ with the
 * phases of RFC 9406.
 */
import { describe, expect, test } from 'vitest';
import { CongestionState } from '../../bindings/index.ts';
import { type TestCore, testCore } from './module.ts';

const PACKET = 1_200;
// RFC 9438 §4.1, §4.3, §4.6
const C = 0.4;
const BETA = 0.7;
const ALPHA = (3 * (1 - BETA)) / (1 + BETA);

/** A window in congestion avoidance to which a test feeds acknowledgements, round by round. */
class Cubic {
  now = 1_000;
  readonly rtt: number;
  readonly core: TestCore;
  readonly connection: number;

  constructor(packets: number, rtt: number) {
    this.core = testCore();
    this.connection = this.core.call.blankConnection!();
    this.rtt = rtt;
    this.core.call.setCubic!(this.connection, packets * PACKET, packets * PACKET, rtt, this.now);
  }

  /** In packets. */
  get window(): number {
    return this.core.call.congestionWindow!(this.connection) / PACKET;
  }

  get k(): number {
    return this.core.call.cubicK!(this.connection);
  }

  get wMax(): number {
    return this.core.call.cubicWMax!(this.connection) / PACKET;
  }

  lose(): void {
    this.core.call.cubicLost!(this.connection, this.now, this.now, BETA);
  }

  /** The window is full for one round trip, and all of it is acknowledged. */
  round(): void {
    const packets = Math.floor(this.window);
    for (let i = 0; i < packets; i++) {
      this.now += this.rtt / packets;
      this.core.call.cubicAcked!(this.connection, PACKET, this.now, packets * PACKET, this.now);
    }
  }
}

describe('CUBIC', () => {
  test('follows W_cubic(t): concave up to W_max at K, then convex', () => {
    const cubic = new Cubic(1_000, 100);
    cubic.lose();
    const start = cubic.now;
    expect(cubic.window).toBeCloseTo(1_000 * BETA, 0);
    const k = Math.cbrt((1_000 * (1 - BETA)) / C);
    expect(cubic.k).toBeCloseTo(k * 1_000, 0);
    let atK = 0;
    const growth: number[] = [];
    for (let i = 0; i < 160; i++) {
      const before = cubic.window;
      cubic.round();
      growth.push(cubic.window - before);
      const t = (cubic.now - start) / 1_000;
      if (atK === 0 && t >= k) atK = cubic.window;
      expect(Math.abs(cubic.window - (C * (t - k) ** 3 + 1_000))).toBeLessThan(0.01 * cubic.window);
    }
    expect(atK).toBeCloseTo(1_000, -1);
    expect(growth[0]).toBeGreaterThan(5 * (growth[Math.round(k * 10)] as number));
    expect(growth[159]).toBeGreaterThan(5 * (growth[Math.round(k * 10)] as number));
  });

  test('grows like Reno where that is faster: α packets a round trip', () => {
    const cubic = new Cubic(20, 10);
    cubic.lose();
    // K is 2.5 s here, 250 round trips; Reno is back at 20 packets after 11.
    const rounds = 8;
    for (let i = 0; i < rounds; i++) cubic.round();
    const sum = cubic.window - 20 * BETA;
    expect(sum).toBeGreaterThan(0.8 * rounds * ALPHA);
    expect(sum).toBeLessThan(1.2 * rounds * ALPHA);
    expect(cubic.core.call.cubicWEst!(cubic.connection) / PACKET).toBeCloseTo(cubic.window, 1);
    // Above the window before the loss, α is 1 (§4.3).
    while (cubic.window < 21) cubic.round();
    const before = cubic.window;
    for (let i = 0; i < 5; i++) cubic.round();
    expect(cubic.window - before).toBeGreaterThan(4);
    expect(cubic.window - before).toBeLessThan(5.5);
  });

  test('reduces W_max further after a loss below the previous W_max: fast convergence', () => {
    const cubic = new Cubic(100, 50);
    cubic.lose();
    expect(cubic.wMax).toBeCloseTo(100, 0);
    cubic.round();
    const window = cubic.window;
    expect(window).toBeLessThan(100);
    cubic.lose();
    expect(cubic.wMax).toBeCloseTo((window * (1 + BETA)) / 2, 1);
    expect(cubic.window).toBeCloseTo(window * BETA, 0);
  });

  test('subtracts time in which the window was not needed from the epoch', () => {
    const cubic = new Cubic(100, 50);
    cubic.lose();
    for (let i = 0; i < 10; i++) cubic.round();
    const before = cubic.window;
    for (let i = 0; i < 1_000; i++) {
      cubic.now += 50;
      cubic.core.call.cubicAcked!(cubic.connection, PACKET, cubic.now, PACKET, cubic.now);
    }
    expect(cubic.window).toBe(before);
    cubic.round();
    expect(cubic.window - before).toBeLessThan(8);
  });

  test('reduces once for all losses of a round trip', () => {
    const cubic = new Cubic(100, 50);
    cubic.lose();
    cubic.core.call.cubicLost!(cubic.connection, cubic.now - 10, cubic.now + 5, BETA);
    expect(cubic.window).toBeCloseTo(70, 0);
  });
});

describe('HyStart++', () => {
  /** `samples` acknowledgements in a round, all with that RTT; the last one ends the round. */
  function round(core: TestCore, h: number, state: { next: number }, rtt: number, samples = 10): void {
    const end = state.next;
    state.next += samples;
    for (let i = 1; i <= samples; i++) core.call.hystartRtt!(h, rtt, BigInt(i === samples ? end : 0), BigInt(state.next));
  }

  function begin(): { core: TestCore; h: number; state: { next: number } } {
    const core = testCore();
    const h = core.call.scratch!();
    core.call.hystartInit!(h, 1n);
    return { core, h, state: { next: 1 } };
  }

  test('stays in slow start while the delay does not rise by an eighth', () => {
    const { core, h, state } = begin();
    for (const rtt of [100, 101, 105, 116, 120]) round(core, h, state, rtt);
    expect(core.call.conservativeRounds!(h)).toBe(0);
    expect(core.call.hystartAcked!(h, 1_200)).toBe(1_200);
  });

  test('then grows a quarter as fast for five rounds, and ends slow start', () => {
    const { core, h, state } = begin();
    round(core, h, state, 100);
    round(core, h, state, 113);
    expect(core.call.conservativeRounds!(h)).toBeGreaterThan(0);
    expect(core.call.hystartAcked!(h, 1_200)).toBe(300);
    // The round in which it began counts.
    for (let i = 0; i < 3; i++) round(core, h, state, 115);
    expect(core.call.endSlowStart!(h)).toBe(0);
    round(core, h, state, 115);
    expect(core.call.endSlowStart!(h)).toBe(1);
  });

  test.each([
    ['the first', 0xffff_ffff, 300],
    ['no later', 1_000 * PACKET, PACKET],
  ])('slows %s slow start (§4.3)', (_name, threshold, growth) => {
    const core = testCore();
    const c = core.call.blankConnection!();
    core.call.setCubic!(c, 10 * PACKET, threshold, 100, 1_000);
    for (const [index, rtt] of [100, 130, 130].entries()) {
      core.call.setAcked!(c, BigInt(10 * index), BigInt(10 * index + 10));
      for (let i = 0; i < 10; i++) core.call.cubicAckDone!(c, rtt);
    }
    const before = core.call.congestionWindow!(c);
    core.call.cubicAcked!(c, PACKET, 2_000, before, 2_000);
    expect(core.call.congestionWindow!(c) - before).toBe(growth);
  });

  test('resumes slow start when the delay falls below its baseline', () => {
    const { core, h, state } = begin();
    round(core, h, state, 100);
    round(core, h, state, 130);
    round(core, h, state, 104);
    expect(core.call.conservativeRounds!(h)).toBe(0);
  });

  test.each([
    [10, 4],
    [100, 12.5],
    [400, 16],
  ])('at %d ms the threshold is %d ms, and eight samples are needed', (rtt, threshold) => {
    for (const [rise, samples, entered] of [
      [threshold - 0.1, 10, false],
      [threshold + 0.1, 7, false],
      [threshold + 0.1, 8, true],
    ] as const) {
      const { core, h, state } = begin();
      round(core, h, state, rtt);
      round(core, h, state, rtt + rise, samples);
      expect(core.call.conservativeRounds!(h) > 0).toBe(entered);
    }
  });
});

test('the probe timeout follows the formulas of RFC 9002 §5.3 and §6.2.1', () => {
  const core = testCore();
  const c = core.call.blankConnection!();
  core.call.rttInit!(c, 0);
  // kInitialRtt; the peer's maximum delay is 25 ms.
  expect(core.call.probeTimeout!(c)).toBeCloseTo(333 + 4 * (333 / 2) + 25, 1);
  let [least, smoothed, variation] = [0, 0, 0];
  // The peer's delay counts up to its 25 ms, and not where the result would be below the minimum.
  for (const [sample, delay] of [
    [100, 0],
    [140, 20],
    [105, 10],
    [180, 60],
    [90, 0],
    [91, 25],
  ] as const) {
    core.call.onRttSample!(c, sample, delay);
    if (least === 0) [least, smoothed, variation] = [sample, sample, sample / 2];
    else {
      least = Math.min(least, sample);
      const known = Math.min(delay, 25);
      const adjusted = sample >= least + known ? sample - known : sample;
      variation = 0.75 * variation + 0.25 * Math.abs(smoothed - adjusted);
      smoothed = 0.875 * smoothed + 0.125 * adjusted;
    }
    expect(core.call.smoothedRtt!(c)).toBeCloseTo(smoothed, 2);
    expect(core.call.probeTimeout!(c)).toBeCloseTo(smoothed + Math.max(4 * variation, 1) + 25, 2);
  }
  // kGranularity, once the variation is zero.
  for (let i = 0; i < 200; i++) core.call.onRttSample!(c, 90, 0);
  expect(core.call.probeTimeout!(c)).toBeCloseTo(90 + 1 + 25, 1);
});

test.each([
  ['within its announced maximum', 20, 80],
  ['above the maximum, which counts as 25 ms', 90, 75],
])("BBR subtracts the peer's delay from a round trip: %s", (_name, delay, queued) => {
  const core = testCore();
  expect(core.call.queuedRtt!(core.call.blankConnection!(), 100, delay)).toBeCloseTo(queued, 2);
});

test.each([
  ['that ended it', 1, CongestionState.STARTUP],
  ['beside a plateau', 0, CongestionState.DRAIN],
])('spurious losses %s: whether Startup resumes (draft-ietf-ccwg-bbr §5.5.11)', (_name, because, state) => {
  const core = testCore();
  expect(core.call.stateAfterUndo!(core.call.blankConnection!(), because)).toBe(state);
});

test.each([
  ['ends competing: BBR continues with the latest delivery rate', CongestionState.COMPETE, 40],
  ['keeps the measured bandwidth where no other flow holds the queue', CongestionState.PROBE_BW_CRUISE, 100],
])('ProbeRTT %s', (_, state, bandwidth) => {
  const { call } = testCore();
  expect(call.bandwidthInProbeRtt!(call.blankConnection!(), state)).toBe(bandwidth);
});
