/** ProbeRTT (draft-ietf-ccwg-bbr §5.3.4) and the restart from idle (§5.4). */
import { STATE_PROBE_RTT } from '../../codes.generated';
import { Connection } from '../../records/connection';
import { endCompete } from './compete';
import { ProbeRTTDuration } from './constants';
import { setPacingRate } from './control';
import { startRound } from './path';
import { markAppLimited, rsDelivered } from './rate-sample';
import { ACKS_PROBE_STOPPING, Bbr, isCompeting, isInProbeBw } from './record';
import { resetShortTermModel } from './signals';
import { enterStartup, startProbeBwCruise, startProbeBwDown } from './states';

/** CheckProbeRTT (§5.3.4.3). */
export function checkProbeRtt(c: Connection, b: Bbr, now: f64): void {
  if (b.state != <u8>STATE_PROBE_RTT && b.minRttExpired && !b.idleRestart) {
    if (isCompeting(b)) endCompete(c, b);
    b.priorCwnd = <f64>c.congestionWindow;
    b.state = <u8>STATE_PROBE_RTT;
    b.probeRttDoneStamp = 0;
    b.ackPhase = ACKS_PROBE_STOPPING;
    startRound(b);
  }
  if (b.state == <u8>STATE_PROBE_RTT) handleProbeRtt(c, b, now);
  if (rsDelivered > 0) b.idleRestart = false;
}

/** HandleRestartFromIdle (§5.4.1): a packet goes out while nothing else is in flight. */
export function restartFromIdle(c: Connection, b: Bbr, now: f64): void {
  if (!b.appLimited) return;
  b.idleRestart = true;
  b.extraAckedIntervalStart = now;
  if (isInProbeBw(b)) setPacingRate(b, 1);
  else if (b.state == <u8>STATE_PROBE_RTT) checkProbeRttDone(c, b, now);
}

function handleProbeRtt(c: Connection, b: Bbr, now: f64): void {
  markAppLimited(c);
  if (b.probeRttDoneStamp == 0) {
    if (<f64>c.bytesInFlight > b.probeRttCwnd) return;
    b.probeRttDoneStamp = now + ProbeRTTDuration;
    b.probeRttRoundDone = false;
    startRound(b);
    return;
  }
  if (b.roundStart) b.probeRttRoundDone = true;
  if (b.probeRttRoundDone) checkProbeRttDone(c, b, now);
}

function checkProbeRttDone(c: Connection, b: Bbr, now: f64): void {
  if (b.probeRttDoneStamp == 0 || now <= b.probeRttDoneStamp) return;
  b.minRttStamp = now;
  c.congestionWindow = max(c.congestionWindow, <u32>b.priorCwnd);
  // ExitProbeRTT (§5.3.4.4).
  resetShortTermModel(b);
  if (!b.fullBwReached) {
    enterStartup(b);
    return;
  }
  startProbeBwDown(c, b, now);
  startProbeBwCruise(b);
}
