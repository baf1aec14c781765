/** Round-trip time (RFC 9002 §5) and the probe timeout (§6.2.1), in milliseconds. */
import { Connection } from './connection';
import { flightOf } from './flight';
import { RecoveryState } from './recovery-state';

// RFC 9002
export const GRANULARITY: f32 = 1;
const INITIAL_RTT: f32 = 333;

/**
 * Initializes from `sample`, the handshake's round trip (RFC 9002 §5.1: any packet and its answer will do), 0 = none.
 */
export function rttInit(c: Connection, sample: f32): void {
  c.smoothedRtt = INITIAL_RTT;
  c.rttVariation = INITIAL_RTT / 2;
  c.minimumRtt = 0;
  c.hasRtt = 0;
  if (sample > 0) onRttSample(c, sample, 0);
}

/** Adds a sample (§5.3); `ackDelay` as the peer reported it. */
export function onRttSample(c: Connection, sample: f32, ackDelay: f32): void {
  if (c.flight) flightOf(c).latestRtt = sample;
  if (!c.hasRtt) {
    c.hasRtt = 1;
    c.minimumRtt = sample;
    c.smoothedRtt = sample;
    c.rttVariation = sample / 2;
    return;
  }
  c.minimumRtt = min(c.minimumRtt, sample);
  const delay = min(ackDelay, <f32>c.peerMaxAckDelay);
  const adjusted = sample >= c.minimumRtt + delay ? sample - delay : sample;
  c.rttVariation = <f32>0.75 * c.rttVariation + <f32>0.25 * abs(c.smoothedRtt - adjusted);
  c.smoothedRtt = <f32>0.875 * c.smoothedRtt + <f32>0.125 * adjusted;
}

/** PTO without back-off. */
export function probeTimeout(c: Connection): f64 {
  return timeoutOf(c, c.peerMaxAckDelay);
}

/** The same for any path's round trip. */
export function timeoutOf(state: RecoveryState, maxAckDelay: u16): f64 {
  return <f64>(state.smoothedRtt + max<f32>(<f32>4 * state.rttVariation, GRANULARITY) + <f32>maxAckDelay);
}
