/**
 * HyStart++ (RFC 9406): slow start ends when the round trip grows, before packets are lost.
 *
 *   slow start → (delay rises) conservative slow start, a quarter of the growth → (5 rounds) congestion avoidance
 *                              ← (delay falls again)
 *
 * L is infinite: our packets are paced (§4.3).
 */

// RFC 9406 §4.3; ms.
const MIN_RTT_THRESH: f64 = 4;
const MAX_RTT_THRESH: f64 = 16;
const MIN_RTT_DIVISOR: f64 = 8;
const N_RTT_SAMPLE: u32 = 8;
const CSS_GROWTH_DIVISOR: u32 = 4;
const CSS_ROUNDS: u32 = 5;

@unmanaged
export class Hystart {
  lastRoundMinRtt: f64;
  currentRoundMinRtt: f64;
  cssBaselineMinRtt: f64;
  /** The round ends when this packet number is acknowledged. */
  windowEnd: u64;
  rttSampleCount: u32;
  /** 0 = standard slow start, else the number of the current round of conservative slow start. */
  conservativeRounds: u32;
}

export function hystartInit(h: Hystart, nextNumber: u64): void {
  h.lastRoundMinRtt = Infinity;
  h.currentRoundMinRtt = Infinity;
  h.cssBaselineMinRtt = Infinity;
  h.windowEnd = nextNumber;
  h.rttSampleCount = 0;
  h.conservativeRounds = 0;
}

/** Growth of the window for `size` acknowledged bytes. */
export function hystartAcked(h: Hystart, size: u32): u32 {
  return h.conservativeRounds > 0 ? size / CSS_GROWTH_DIVISOR : size;
}

/** Processes an ACK up to `largest`: its RTT sample, negative = none. */
export function hystartRtt(h: Hystart, rtt: f64, largest: i64, nextNumber: u64): void {
  if (rtt >= 0) {
    h.currentRoundMinRtt = min(h.currentRoundMinRtt, rtt);
    h.rttSampleCount++;
    if (h.rttSampleCount >= N_RTT_SAMPLE) judge(h);
  }
  if (largest >= <i64>h.windowEnd) nextRound(h, nextNumber);
}

/** Returns whether conservative slow start has lasted long enough. */
export function endSlowStart(h: Hystart): bool {
  return h.conservativeRounds > CSS_ROUNDS;
}

function judge(h: Hystart): void {
  if (h.conservativeRounds > 0) {
    if (h.currentRoundMinRtt >= h.cssBaselineMinRtt) return;
    h.cssBaselineMinRtt = Infinity;
    h.conservativeRounds = 0;
  } else if (h.lastRoundMinRtt != Infinity) {
    const threshold = max(MIN_RTT_THRESH, min(h.lastRoundMinRtt / MIN_RTT_DIVISOR, MAX_RTT_THRESH));
    if (h.currentRoundMinRtt < h.lastRoundMinRtt + threshold) return;
    h.cssBaselineMinRtt = h.currentRoundMinRtt;
    h.conservativeRounds = 1;
  }
}

function nextRound(h: Hystart, nextNumber: u64): void {
  h.lastRoundMinRtt = h.currentRoundMinRtt;
  h.currentRoundMinRtt = Infinity;
  h.rttSampleCount = 0;
  h.windowEnd = nextNumber;
  if (h.conservativeRounds > 0) h.conservativeRounds++;
}
