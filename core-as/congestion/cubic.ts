/**
 * CUBIC (RFC 9438); slow start ends as HyStart++ specifies (hystart.ts).
 *
 * Volumes are bytes here, segments in the RFC; times are ms here, seconds there. The flight size of §4.6 is the window,
 * which grows only while it is used.
 */
import { CONGESTION_BBR } from '../codes.generated';
import { APP_LIMITED, Connection, flagged } from '../records/connection';
import { flightOf } from '../records/flight';
import { endSlowStart, Hystart, hystartAcked, hystartInit, hystartRtt } from './hystart';
import { CUBIC_IN_BBR, initialWindow, Model } from './model';
import { minimumWindow, newRenoUndo } from './new-reno';

// RFC 9438 §4.1, §4.6, §4.3
const CUBIC_C: f64 = 0.4;
export const BETA_CUBIC: f64 = 0.7;
const ALPHA_CUBIC: f64 = (3 * (1 - BETA_CUBIC)) / (1 + BETA_CUBIC);
/** §4.2: the target lies between the window and this multiple of it. */
const MAX_TARGET: f64 = 1.5;

@unmanaged
export class Cubic extends Model {
  hystart: Hystart;
  /** W_max, cwnd_prior, W_est (§4.1.2), bytes. */
  wMax: f64;
  cwndPrior: f64;
  wEst: f64;
  /** K, ms. */
  k: f64;
  /** t_epoch, -1 = no congestion avoidance yet, ms. */
  epochStart: f64;
  /** Time of the last ACK: periods in which the window was not needed are taken out of the epoch (§5.8). */
  lastAck: f64;
  /** Fractions of the window, bytes. */
  window: f64;
  // Restored when a spurious reduction is undone (§4.9.2).
  undoWMax: f64;
  undoCwndPrior: f64;
  undoWEst: f64;
  undoK: f64;
  undoEpochStart: f64;
  undoCubicWindow: f64;
}

/** Bytes of the chunk in use, slow start's part included. */
export const CUBIC_USED: usize = offsetof<Cubic>() + offsetof<Hystart>();

/** The model itself, or the part of BBR's model for use beside a flow that fills the queue. */
export function cubicOf(c: Connection): Cubic {
  return changetype<Cubic>(c.congestion == CONGESTION_BBR ? c.model + CUBIC_IN_BBR : c.model);
}

/** Begins congestion avoidance from the current window. */
export function cubicBegin(c: Connection, now: f64): void {
  const cubic = cubicOf(c);
  cubic.wMax = c.congestionWindow;
  cubic.cwndPrior = c.congestionWindow;
  beginEpoch(c, cubic, now);
}

export function cubicInit(c: Connection): void {
  const cubic = cubicOf(c);
  cubic.epochStart = -1;
  cubic.hystart = changetype<Hystart>(c.model + offsetof<Cubic>());
  hystartInit(cubic.hystart, c.nextNumber);
}

export function cubicAcked(c: Connection, size: u32, sentTime: f64, inFlight: u32, now: f64): void {
  const cubic = cubicOf(c);
  const pause = now - cubic.lastAck;
  cubic.lastAck = now;
  if (flagged(c, APP_LIMITED) || inFlight < c.congestionWindow / 2) {
    if (cubic.epochStart >= 0) cubic.epochStart += pause;
    return;
  }
  if (sentTime <= flightOf(c).recoveryStart) return;
  if (c.congestionWindow < c.slowStartThreshold) c.congestionWindow += isFirstSlowStart(c) ? hystartAcked(cubic.hystart, size) : size;
  else avoid(c, cubic, size, now);
}

/** The window as CUBIC last set it, bytes. */
export function cubicWindowNow(c: Connection): u32 {
  return <u32>cubicOf(c).window;
}

/** All packets of an ACK are counted; `rtt` is its sample, negative = none. */
export function cubicAckDone(c: Connection, rtt: f64): void {
  if (!isFirstSlowStart(c)) return;
  const cubic = cubicOf(c);
  hystartRtt(cubic.hystart, rtt, c.largestAcked, c.nextNumber);
  if (endSlowStart(cubic.hystart)) c.slowStartThreshold = c.congestionWindow;
}

/** §4.6 and §4.7; `beta` is β_cubic except for a competing BBR (bbr/compete.ts). */
export function cubicLost(c: Connection, sentTime: f64, now: f64, beta: f64): void {
  const flight = flightOf(c);
  if (sentTime <= flight.recoveryStart) return;
  flight.recoveryStart = now;
  const cubic = cubicOf(c);
  const window = <f64>c.congestionWindow;
  cubic.cwndPrior = window;
  cubic.wMax = window < cubic.wMax ? (window * (1 + beta)) / 2 : window;
  c.slowStartThreshold = max(<u32>(window * beta), minimumWindow(c));
  c.congestionWindow = c.slowStartThreshold;
  beginEpoch(c, cubic, now);
}

/** §4.9.2: saves the state before the reduction. */
export function cubicLossEpisode(c: Connection): void {
  const cubic = cubicOf(c);
  cubic.undoWMax = cubic.wMax;
  cubic.undoCwndPrior = cubic.cwndPrior;
  cubic.undoWEst = cubic.wEst;
  cubic.undoK = cubic.k;
  cubic.undoEpochStart = cubic.epochStart;
  cubic.undoCubicWindow = cubic.window;
}

/** §4.9.2: the reduction was spurious. */
export function cubicUndo(c: Connection): void {
  const flight = flightOf(c);
  if (flight.undoWindow <= c.congestionWindow) return;
  const cubic = cubicOf(c);
  newRenoUndo(c);
  cubic.wMax = cubic.undoWMax;
  cubic.cwndPrior = cubic.undoCwndPrior;
  cubic.wEst = cubic.undoWEst;
  cubic.k = cubic.undoK;
  cubic.epochStart = cubic.undoEpochStart;
  cubic.window = cubic.undoCubicWindow;
}

/** RFC 9002 §7.6.2, RFC 9438 §4.8: the next epoch begins when slow start ends. */
export function cubicPersistent(c: Connection): void {
  const cubic = cubicOf(c);
  c.congestionWindow = minimumWindow(c);
  cubic.window = c.congestionWindow;
  cubic.epochStart = -1;
  flightOf(c).recoveryStart = -1;
}

/** Returns whether the model knows more than at the start. */
export function cubicWorthKeeping(c: Connection): bool {
  return c.slowStartThreshold != u32.MAX_VALUE || c.congestionWindow != initialWindow(c);
}

export function isConservative(c: Connection): bool {
  return isFirstSlowStart(c) && cubicOf(c).hystart.conservativeRounds > 0;
}

/** RFC 9406 §4.3: later slow starts end at the threshold, without HyStart++. */
function isFirstSlowStart(c: Connection): bool {
  return c.slowStartThreshold == u32.MAX_VALUE;
}

/** Congestion avoidance (§4.2 to §4.5) for `size` acknowledged bytes. */
function avoid(c: Connection, cubic: Cubic, size: u32, now: f64): void {
  // Slow start ended without a loss: §4.2, K = 0 and W_max is the window.
  if (cubic.epochStart < 0) cubicBegin(c, now);
  const window = cubic.window;
  const alpha = cubic.wEst < cubic.cwndPrior ? ALPHA_CUBIC : 1;
  cubic.wEst += (alpha * <f64>size * <f64>c.packetSize) / window;
  const t = now - cubic.epochStart;
  if (cubicWindow(c, cubic, t) < cubic.wEst) {
    cubic.window = max(window, cubic.wEst);
  } else {
    const target = min(max(cubicWindow(c, cubic, t + <f64>c.smoothedRtt), window), MAX_TARGET * window);
    cubic.window += ((target - window) * <f64>size) / window;
  }
  c.congestionWindow = <u32>cubic.window;
}

/** W_cubic(t) of §4.2, figure 1. */
function cubicWindow(c: Connection, cubic: Cubic, t: f64): f64 {
  const seconds = (t - cubic.k) / 1_000;
  return CUBIC_C * seconds * seconds * seconds * <f64>c.packetSize + cubic.wMax;
}

function beginEpoch(c: Connection, cubic: Cubic, now: f64): void {
  const window = <f64>c.congestionWindow;
  cubic.epochStart = now;
  cubic.lastAck = now;
  cubic.window = window;
  cubic.wEst = window;
  // §4.2, figure 2.
  cubic.k = Math.cbrt(max(cubic.wMax - window, 0) / <f64>c.packetSize / CUBIC_C) * 1_000;
}
