/**
 * Control parameters: pacing rate, send quantum, window (draft-ietf-ccwg-bbr §5.6).
 *
 * One departure: the pacing rate is raised by the path's random loss. Bandwidth is measured after that loss; pacing at
 * the arrival rate would let the rate sink by the loss with each round, and only the probes would restore it.
 */
import {
  STATE_DRAIN,
  STATE_PROBE_BW_CRUISE,
  STATE_PROBE_BW_DOWN,
  STATE_PROBE_BW_UP,
  STATE_PROBE_RTT,
  STATE_STARTUP,
} from '../../codes.generated';
import { Connection } from '../../records/connection';
import { initialWindow } from '../model';
import {
  CompetePacingGain,
  DefaultCwndGain,
  DrainPacingGain,
  Headroom,
  MostSendQuantum,
  PacingMargin,
  ProbeDownPacingGain,
  ProbeRTTCwndGain,
  ProbeUpCwndGain,
  ProbeUpPacingGain,
  StartupPacingGain,
} from './constants';
import { bdpMultiple, quantized } from './path';
import { Bbr, isCompeting, isInProbeBw, minPipeCwnd, smss } from './record';

/** InitPacingRate (§5.6.2), again with the first RTT sample. */
export function initPacingRate(c: Connection, b: Bbr, rtt: f64): void {
  b.pacingRate = (StartupPacingGain * <f64>initialWindow(c)) / max(rtt, 0.01);
}

/** UpdateControlParameters (§5.2.3). */
export function updateControlParameters(c: Connection, b: Bbr, acked: f64): void {
  if (isCompeting(b)) {
    b.pacingRate = (CompetePacingGain * <f64>c.congestionWindow) / max(<f64>c.smoothedRtt, 0.01);
    return;
  }
  setPacingRate(b, pacingGain(b));
  b.sendQuantum = max(min(b.pacingRate, MostSendQuantum), 2 * smss(c));
  setCwnd(c, b, acked);
}

/** SetPacingRateWithGain (§5.6.2). */
export function setPacingRate(b: Bbr, gain: f64): void {
  const rate = (gain * b.bw * (1 - PacingMargin)) / (1 - b.randomLoss);
  if (rate > 0 && (b.fullBwReached || rate > b.pacingRate)) b.pacingRate = rate;
}

/** InflightWithHeadroom (§5.3.3.9). */
export function inflightWithHeadroom(c: Connection, b: Bbr): f64 {
  if (b.inflightLongterm == Infinity) return Infinity;
  const headroom = max(smss(c), Headroom * b.inflightLongterm);
  return max(b.inflightLongterm - headroom, minPipeCwnd(c));
}

/** SetCwnd (§5.6.4.6). */
function setCwnd(c: Connection, b: Bbr, acked: f64): void {
  updateMaxInflight(c, b);
  let cwnd = <f64>c.congestionWindow;
  if (b.fullBwReached) cwnd = min(cwnd + acked, b.maxInflight);
  else if (cwnd < b.maxInflight || <f64>b.delivered < <f64>initialWindow(c)) cwnd += acked;
  cwnd = max(cwnd, minPipeCwnd(c));
  if (b.state == <u8>STATE_PROBE_RTT) cwnd = min(cwnd, b.probeRttCwnd);
  c.congestionWindow = <u32>min(min(cwnd, cap(c, b)), <f64>i32.MAX_VALUE);
}

/** UpdateMaxInflight (§5.6.4.2). */
function updateMaxInflight(c: Connection, b: Bbr): void {
  const inflight = bdpMultiple(c, b, b.bw, cwndGain(b)) + max(b.extraAckedCurrent, b.extraAckedPrevious);
  b.maxInflight = quantized(c, b, inflight) + (b.state == <u8>STATE_PROBE_BW_UP ? 2 * smss(c) : 0);
}

/** BoundCwndForModel (§5.6.4.7). */
function cap(c: Connection, b: Bbr): f64 {
  let most: f64 = Infinity;
  if (b.state == <u8>STATE_PROBE_RTT || b.state == <u8>STATE_PROBE_BW_CRUISE) most = inflightWithHeadroom(c, b);
  else if (isInProbeBw(b)) most = b.inflightLongterm;
  return max(min(most, b.inflightShortterm), minPipeCwnd(c));
}

/** §5.6.1 */
function pacingGain(b: Bbr): f64 {
  switch (<u32>b.state) {
    case STATE_STARTUP:
      return StartupPacingGain;
    case STATE_DRAIN:
      return DrainPacingGain;
    case STATE_PROBE_BW_DOWN:
      return ProbeDownPacingGain;
    case STATE_PROBE_BW_UP:
      return ProbeUpPacingGain;
    default:
      return 1;
  }
}

/** §5.6.1 */
function cwndGain(b: Bbr): f64 {
  if (b.state == <u8>STATE_PROBE_BW_UP) return ProbeUpCwndGain;
  return b.state == <u8>STATE_PROBE_RTT ? ProbeRTTCwndGain : DefaultCwndGain;
}
