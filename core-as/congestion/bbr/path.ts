/**
 * The model of the path: rounds, maximum bandwidth, minimum RTT, ACK aggregation (draft-ietf-ccwg-bbr §5.5.1 to
 * §5.5.9).
 */
import { STATE_PROBE_RTT } from '../../codes.generated';
import { Connection } from '../../records/connection';
import { initialWindow } from '../model';
import { ExtraAckedFilterLen, MinPipeCwndPackets, MinRTTFilterLen, MinRTTFilterRounds, PacketsPerAck, ProbeRTTCwndGain } from './constants';
import { rsAppLimited, rsDeliveryRate, rsPriorDelivered } from './rate-sample';
import { Bbr, minPipeCwnd, smss } from './record';

/** StartRound (§5.5.1). */
export function startRound(b: Bbr): void {
  b.nextRoundDelivered = b.delivered;
}

/** UpdateMaxBw (§5.5.5), UpdateRound first. */
export function updateMaxBw(b: Bbr): void {
  updateRound(b);
  if (rsDeliveryRate <= 0 || (rsAppLimited && rsDeliveryRate < b.maxBw)) return;
  b.maxBwCurrent = max(b.maxBwCurrent, rsDeliveryRate);
  b.maxBw = max(b.maxBwPrevious, b.maxBwCurrent);
}

/**
 * AdvanceMaxBwFilter (§5.5.6): MaxBwFilterLen is two cycles. As in Linux, a cycle without a sample does not count; in
 * the draft it would.
 */
export function advanceMaxBwFilter(b: Bbr): void {
  if (b.maxBwCurrent == 0) return;
  b.maxBwPrevious = b.maxBwCurrent;
  b.maxBwCurrent = 0;
  b.maxBw = b.maxBwPrevious;
}

/** UpdateMinRTT (§5.3.4.3); `rtt` negative = no sample. */
export function updateMinRtt(c: Connection, b: Bbr, rtt: f64, now: f64): void {
  const filter = b.minRtt == Infinity ? MinRTTFilterLen : max(MinRTTFilterLen, MinRTTFilterRounds * b.minRtt);
  b.minRttExpired = now > b.minRttStamp + filter;
  if (b.minRttExpired && b.state != <u8>STATE_PROBE_RTT) b.probeRttCwnd = max(bdpMultiple(c, b, b.bw, ProbeRTTCwndGain), minPipeCwnd(c));
  if (rtt < 0 || (rtt >= b.minRtt && !b.minRttExpired)) return;
  b.minRtt = rtt;
  b.minRttStamp = now;
}

/** UpdateACKAggregation (§5.5.9). The window of 10 rounds is kept as two halves, in Startup as one round. */
export function updateAckAggregation(c: Connection, b: Bbr, acked: f64, now: f64): void {
  const half = b.fullBwReached ? ExtraAckedFilterLen / 2 : 1;
  if (b.roundStart && b.roundCount - b.extraAckedRound >= half) {
    b.extraAckedRound = b.roundCount;
    b.extraAckedPrevious = b.fullBwReached ? b.extraAckedCurrent : 0;
    b.extraAckedCurrent = 0;
  }
  let expected = b.bw * (now - b.extraAckedIntervalStart);
  if (b.extraAckedDelivered <= expected) {
    b.extraAckedDelivered = 0;
    b.extraAckedIntervalStart = now;
    expected = 0;
  }
  b.extraAckedDelivered += acked;
  b.extraAckedCurrent = max(b.extraAckedCurrent, min(b.extraAckedDelivered - expected, <f64>c.congestionWindow));
}

/** BDPMultiple (§5.6.4.2). */
export function bdpMultiple(c: Connection, b: Bbr, bw: f64, gain: f64): f64 {
  if (b.minRtt == Infinity || bw == 0) return <f64>initialWindow(c);
  return gain * bw * b.minRtt;
}

/** Inflight(bw, gain) (§5.6.4.2). */
export function inflightOf(c: Connection, b: Bbr, bw: f64, gain: f64): f64 {
  return quantized(c, b, bdpMultiple(c, b, bw, gain));
}

/** TargetInflight (§5.3.3.8.3). */
export function targetInflight(c: Connection, b: Bbr): f64 {
  return min(bdpMultiple(c, b, b.bw, 1), <f64>c.congestionWindow);
}

/**
 * QuantizationBudget (§5.6.4.2) without ProbeBW_UP's extra. The offload budget covers the packets of one ACK of our
 * receivers.
 */
export function quantized(c: Connection, b: Bbr, inflight: f64): f64 {
  const perAck = min(PacketsPerAck * smss(c), (b.bw * <f64>c.smoothedRtt) / 4);
  return max(max(inflight, b.sendQuantum + perAck), MinPipeCwndPackets * smss(c));
}

/** UpdateRound (§5.5.1). */
function updateRound(b: Bbr): void {
  b.roundStart = rsPriorDelivered >= b.nextRoundDelivered;
  if (!b.roundStart) return;
  startRound(b);
  b.roundCount++;
  b.roundsSinceProbeUp++;
  b.cwndLimited = b.windowFull;
  b.windowFull = false;
  b.creditLimited = b.outOfCredit;
  b.outOfCredit = false;
}
