/** Exports of the test target: the module's exports and internals, so that each part has its own unit tests. */
import { CONGESTION_BBR, CONGESTION_CUBIC } from './codes.generated';
import { bbrInit, bbrLossEpisode, bbrUndo } from './congestion/bbr/bbr';
import { checkProbeRtt } from './congestion/bbr/probe-rtt';
import { BBR_USED, bbrOf } from './congestion/bbr/record';
import { checkStartupDone } from './congestion/bbr/states';
import { CUBIC_USED, cubicInit, cubicOf } from './congestion/cubic';
import { Hystart } from './congestion/hystart';
import { CUBIC_IN_BBR, takeModel } from './congestion/model';
import { closeCode } from './connection/close';
import { receive } from './connection/receive';
import { startReading, writeVarint } from './frames/varint';
import { BOOKKEEPING, CHUNK, takeClearChunk } from './memory/chunks';
import { CONNECTION_SIZE, connectionSlab, receiveSlot, STREAM_SIZE, transfer } from './memory/layout';
import { OVERHEAD, PHASE_BIT } from './packet/header';
import { unprotect } from './packet/protection';
import { CONNECTION_USED, Connection, flagged, PHASE_ACKED, SEND_PHASE } from './records/connection';
import { IDS_USED } from './records/connection-ids';
import { ensureFlight, FLIGHT_USED, flightOf, newRecord, OUTSTANDING, RECORD_SIZE, SENT_USED } from './records/flight';
import { KEPT, PATHS_USED, Path } from './records/path';
import { moveRecovery, RECOVERY_SIZE, resetRecovery } from './records/recovery-state';
import { rttInit } from './records/rtt';
import { STREAM_USED } from './records/stream';
import { receiveAck } from './recovery/acknowledge';

export { maskOf } from './aead/chacha';
// Scratch of a call: test/core-as/module-state.test.ts spoils it between calls.
export {
  rsAppLimited,
  rsDelivered,
  rsDeliveryRate,
  rsHasData,
  rsLost,
  rsPriorDelivered,
  rsTxInFlight,
} from './congestion/bbr/rate-sample';
export { pacingRate } from './congestion/congestion';
export { cubicAckDone, cubicAcked, cubicLost } from './congestion/cubic';
export { endSlowStart, hystartAcked, hystartInit, hystartRtt } from './congestion/hystart';
export { mayPace, onPaced, pacingIdle, pacingTime, refill } from './congestion/pacing';
export { written, writtenBytes } from './connection/emit';
export { outElicited, outNonProbing } from './connection/frames';
export { openedHandle } from './connection/open';
export { outTransmitPath } from './connection/transmit';
export { cursor, end, failed, readVarint, startReading, varintSize, writeVarint } from './frames/varint';
export * from './index';
export { addressOf, copyIn, copyOut, releaseAll, releaseBelow, releaseRest, reserve } from './memory/chunk-map';
export { chunksUsed, freeChunks, releaseChunk, roomBehindGap, takeChunk } from './memory/chunks';
export {
  contains as listContains,
  head as listHead,
  next as listNext,
  push as listPush,
  remove as listRemove,
  rotate as listRotate,
} from './memory/list';
export { releaseSlot, takeSlot } from './memory/packet-slots';
export {
  clear as rangeClear,
  count as rangeCount,
  covered as rangesCovered,
  endFrom as rangeEndFrom,
  insert as rangeInsert,
  insertMerging as rangeInsertMerging,
  outEnd,
  outStart,
  remove as rangeRemove,
  seek as rangeSeek,
} from './memory/range-set';
export { reconstruct } from './packet/header';
export { maybeUpdateSendKey, NEXT_KEY } from './packet/key-update';
export { openedError, openedId, openedNumber } from './packet/protection';
export { isNew, mark, scanDown, windowFloor } from './packet/replay-window';
export { eliciting } from './packet/staging';
export { outAddedPath } from './paths/api';
export { arrivedOn } from './paths/arrival';
export { outEventPath, outEventValue } from './paths/events';
export { outResponseData } from './paths/responses';
export { onRttSample, probeTimeout, rttInit } from './records/rtt';
export { writeAck } from './recovery/ack-policy';
export { outStream } from './streams/lifecycle';

/** A zeroed connection in the first slot, for parts that need one. */
export function blankConnection(): Connection {
  memory.fill(connectionSlab, 0, CONNECTION_SIZE);
  const c = changetype<Connection>(connectionSlab);
  c.largestReceived = -1;
  c.largestAcked = -1;
  c.packetSize = 1_200;
  c.peerMaxAckDelay = 25;
  c.ackTime = Infinity;
  return c;
}

/** Sets the inputs of the pacer, with a flight. */
export function setPace(c: Connection, window: u32, rtt: f32): void {
  c.congestionWindow = window;
  c.smoothedRtt = rtt;
  ensureFlight(c);
}

/**
 * Makes the connection a BBR one that sends `rate` bytes per ms; `queueStands`: every packet of the last round waited
 * in a queue.
 */
export function setBbrPace(c: Connection, rate: f64, queueStands: bool): void {
  c.congestion = <u8>CONGESTION_BBR;
  ensureFlight(c);
  takeModel(c, 0);
  bbrInit(c, 0);
  bbrOf(c).pacingRate = rate;
  bbrOf(c).waitedRound = queueStands;
}

/** Makes the connection a CUBIC one with that window, in congestion avoidance when `threshold` is not above it. */
export function setCubic(c: Connection, window: u32, threshold: u32, rtt: f32, now: f64): void {
  c.congestion = <u8>CONGESTION_CUBIC;
  c.congestionWindow = window;
  c.slowStartThreshold = threshold;
  c.smoothedRtt = rtt;
  ensureFlight(c);
  takeModel(c, now);
  cubicInit(c);
}

/** Makes the state that of a peer that acknowledged up to `largest`, with all numbers below `next` sent. */
export function setAcked(c: Connection, largest: i64, next: u64): void {
  c.largestAcked = largest;
  c.nextNumber = next;
}

export function congestionWindow(c: Connection): u32 {
  return c.congestionWindow;
}

/** BBR's state after spurious losses during which it left Startup: `because` of them, or for a plateau. */
export function stateAfterUndo(c: Connection, because: bool): u32 {
  c.congestion = <u8>CONGESTION_BBR;
  ensureFlight(c);
  takeModel(c, 0);
  bbrInit(c, 0);
  const b = bbrOf(c);
  bbrLossEpisode(c);
  b.fullBwReached = !because;
  b.lossRoundStart = because;
  b.congestedRound = because;
  b.lossRanges = 6;
  checkStartupDone(c, b);
  bbrUndo(c);
  return b.state;
}

/** Bandwidth that BBR believes in after ProbeRTT began in `state`: 100 bytes per ms were measured once, 40 lately. */
export function bandwidthInProbeRtt(c: Connection, state: u32): f64 {
  setBbrPace(c, 100, false);
  const b = bbrOf(c);
  b.state = <u8>state;
  b.maxBw = 100;
  b.bwLatest = 40;
  b.minRttExpired = true;
  checkProbeRtt(c, b, 10_000);
  return b.maxBw;
}

/** K (ms), W_max and W_est (bytes). */
export function cubicK(c: Connection): f64 {
  return cubicOf(c).k;
}

export function cubicWMax(c: Connection): f64 {
  return cubicOf(c).wMax;
}

export function cubicWEst(c: Connection): f64 {
  return cubicOf(c).wEst;
}

/** 0 = standard slow start, else the round of conservative slow start. */
export function conservativeRounds(h: Hystart): u32 {
  return h.conservativeRounds;
}

/** A connection that has sent `packets` under a key in use since 0, the first of them acknowledged at once. */
export function setPhase(c: Connection, packets: u64): void {
  c.nextNumber = <u64>c.sendPhaseFirst + packets;
  c.flags |= PHASE_ACKED;
}

export function sendPhase(c: Connection): bool {
  return flagged(c, SEND_PHASE);
}

/**
 * Close code of the connection after `failures` packets failed to open, the last of them in this call; 0 = it stays
 * open.
 */
export function closesAfter(c: Connection, failures: u64): u64 {
  c.authenticationFailures = failures - 1;
  // A Data packet of zeros except for its first byte: it has this id, and no key opens it.
  store<u8>(receiveSlot, 0xc0);
  receive(c, 0, OVERHEAD, 0, 0);
  return closeCode(c);
}

/** Returns whether a forged packet with the phase bit of the next key is dropped. */
export function dropsNextPhase(c: Connection): bool {
  store<u8>(receiveSlot, 0xc0 | PHASE_BIT);
  return !unprotect(c, receiveSlot, OVERHEAD, 0);
}

/**
 * Round trip less the peer's delay as BBR notes it when the first of two packets, sent at 0, is acknowledged after
 * `rtt` ms by an ACK frame with a delay of `delay` ms.
 */
export function queuedRtt(c: Connection, rtt: f64, delay: f64): f64 {
  setBbrPace(c, 1_000, false);
  c.nextNumber = 2;
  for (let number: u64 = 0; number < 2; number++) {
    const record = newRecord(c, number);
    record.state = OUTSTANDING;
    record.size = 1_200;
    flightOf(c).outstanding++;
    c.bytesInFlight += 1_200;
  }
  rttInit(c, 10);
  const end = writeVarint(writeVarint(writeVarint(writeVarint(transfer, 0), <u64>(delay * 125)), 0), 0);
  startReading(transfer, end);
  receiveAck(c, false, rtt);
  return bbrOf(c).quietRtt;
}

export function setAckFloor(c: Connection, floor: u64): void {
  c.ackFloor = floor;
}

export function smoothedRtt(c: Connection): f32 {
  return c.smoothedRtt;
}

/** A zeroed chunk, for the maps, sets and lists of a test. */
export function scratch(): usize {
  return takeClearChunk(BOOKKEEPING);
}

/**
 * Returns whether switching away from a path and back keeps every byte of its recovery state and leaves the bytes after
 * it unchanged.
 */
export function recoveryStateMoves(): bool {
  const c = blankConnection();
  const p = changetype<Path>(scratch());
  const state = changetype<usize>(c);
  const saved = changetype<usize>(p);
  for (let i: usize = 0; i < RECOVERY_SIZE; i++) store<u8>(state + i, <u8>(i + 1));
  const model = c.model;
  p.flags = KEPT;
  moveRecovery(p, c);
  if (c.model != 0 || p.flags != KEPT) return false;
  c.model = model;
  if (memory.compare(state, saved, RECOVERY_SIZE) != 0) return false;
  resetRecovery(c);
  moveRecovery(c, p);
  p.model = model;
  return memory.compare(state, saved, RECOVERY_SIZE) == 0 && c.largestAcked == -1;
}

/** Returns whether the used part of each record fits its slab entry. */
export function recordsFit(): bool {
  const slabs = CONNECTION_USED <= CONNECTION_SIZE && STREAM_USED <= STREAM_SIZE;
  const chunks = FLIGHT_USED <= CHUNK && PATHS_USED <= CHUNK && IDS_USED <= CHUNK;
  return slabs && BBR_USED <= CUBIC_IN_BBR && CUBIC_IN_BBR + CUBIC_USED <= CHUNK && SENT_USED <= RECORD_SIZE && chunks;
}
