/**
 * Key update (PROTOCOL.md §4), each direction on its own; numbers and replay window run on.
 *
 * - next key = REKEY of Noise rev. 34 §4.2: ENCRYPT(k, nonce 2^64 - 1, no associated data, 32 zero bytes), first 32 bytes;
 * - a sender flips after 2^28 packets or 1 h of use (or when asked), never before a packet of the current phase was
 *   acknowledged and 3 PTO have passed since;
 * - a receiver commits to the prepared next key only when a tag holds under it, and keeps the previous one for 3 PTO.
 */
import { seal } from "../aead";
import {
  Connection, ON_RECEIVE_KEY, ON_SEND_KEY, PHASE_ACKED, RECEIVE_PHASE, SEND_PHASE, UPDATE_WANTED, flagged, nextReceiveKey,
  receiveKey, sendKey,
} from "../connection/record";
import { BOOKKEEPING, releaseChunk, takeChunk } from "../memory/chunks";
import { probeTimeout } from "../recovery/rtt";

/** Our constants: packets and milliseconds under one key. */
const PACKETS_PER_KEY: u64 = 1 << 28;
const TIME_PER_KEY: f64 = 3_600_000;

const KEY: u32 = 32;
const NONCE = memory.data(12, 4);
const TAG = memory.data(16, 16);

/** Field offset in the previous key's chunk, after the key: when it is wiped. */
const DISCARD_AT: usize = 32;

/** `target` = REKEY(`key`). They may be the same. */
export function rekey(key: usize, target: usize): void {
  store<u32>(NONCE, 0);
  store<u64>(NONCE, u64.MAX_VALUE, 4);
  const text = memory.data(32, 16);
  memory.fill(text, 0, KEY);
  seal(key, NONCE, NONCE, 0, text, KEY, TAG);
  memory.copy(target, text, KEY);
  memory.fill(text, 0, KEY);
}

/** Flips the sending key if it is time and allowed; asked before each packet. */
export function maybeUpdateSendKey(c: Connection, now: f64): void {
  const due = flagged(c, UPDATE_WANTED) || c.nextNumber - c.sendPhaseFirst >= PACKETS_PER_KEY || now - c.phaseStart >= TIME_PER_KEY;
  if (!due || !updateAllowed(c, now)) return;
  rekey(sendKey(c), sendKey(c));
  c.flags = (c.flags ^ SEND_PHASE) & ~(PHASE_ACKED | UPDATE_WANTED);
  c.sendPhaseFirst = c.nextNumber;
  c.phaseStart = now;
  c.events |= ON_SEND_KEY;
}

/** Whether the current phase is confirmed long enough. */
export function updateAllowed(c: Connection, now: f64): bool {
  return flagged(c, PHASE_ACKED) && now - c.phaseStart >= 3 * probeTimeout(c);
}

/** An acknowledgement arrived: the first of the current phase starts its clock. */
export function onNumberAcknowledged(c: Connection, number: u64, now: f64): void {
  if (flagged(c, PHASE_ACKED) || number < c.sendPhaseFirst) return;
  c.flags |= PHASE_ACKED;
  c.phaseStart = now;
}

/** The next key proved right for packet `number`: current becomes previous, next becomes current, a new next is prepared. */
export function commitReceiveKey(c: Connection, number: u64, now: f64): void {
  if (!c.previousKey) c.previousKey = takeChunk(BOOKKEEPING);
  if (c.previousKey) {
    memory.copy(c.previousKey, receiveKey(c), KEY);
    store<f64>(c.previousKey, now + 3 * probeTimeout(c), DISCARD_AT);
  }
  memory.copy(receiveKey(c), nextReceiveKey(c), KEY);
  rekey(receiveKey(c), nextReceiveKey(c));
  c.flags ^= RECEIVE_PHASE;
  c.receivePhaseFirst = number;
  c.events |= ON_RECEIVE_KEY;
}

/** Address of the previous receive key, 0 when there is none any more. */
export function previousKey(c: Connection): usize {
  return c.previousKey;
}

/** When the previous key is wiped, Infinity without one. */
export function previousKeyTime(c: Connection): f64 {
  return c.previousKey ? load<f64>(c.previousKey, DISCARD_AT) : Infinity;
}

export function discardPreviousKey(c: Connection): void {
  if (!c.previousKey) return;
  memory.fill(c.previousKey, 0, KEY);
  releaseChunk(c.previousKey, BOOKKEEPING);
  c.previousKey = 0;
}
