/**
 * Key update (PROTOCOL.md §4), each direction on its own; numbers and replay window continue.
 *
 * - The next key is REKEY of Noise rev. 34 §4.2: ENCRYPT(k, nonce 2^64 - 1, no associated data, 32 zero bytes), first
 *   32 bytes.
 * - A sender flips after 2^28 packets or 1 h from the first use (or on request), never before a packet of the current
 *   phase was acknowledged and 3 PTO have passed since.
 * - A receiver computes the next key when a packet with the other phase bit arrives that is not of the previous phase,
 *   commits to it only when its tag matches, and keeps the previous key for 3 PTO.
 * - A peer whose phases do not follow its packet numbers, or that updates again before it can know that we have its
 *   last phase, is closed with KEY_UPDATE_ERROR (RFC 9001 §6.2, §6.4). A packet under an older key than its number
 *   calls for does not open at all (§6.5) and is dropped like a forgery.
 *
 * The next key is not computed ahead. RFC 9001 §6.3 and §9.5 ask for that so that timing does not reveal the key phase,
 * which QUIC hides behind header protection; here the phase bit is in clear, so there is nothing to reveal. A forged
 * packet with the other phase bit costs one more ChaCha20 block than one with the current bit: measured, a fifth more
 * for a full packet (0.16 µs on top of 0.8) and half more for the shortest, less than a longer packet of the current
 * phase.
 */
import { chachaBlock } from '../aead';
import { ERROR_KEY_UPDATE_ERROR, ERROR_NO_ERROR } from '../codes.generated';
import { BOOKKEEPING, releaseChunk, takeChunk } from '../memory/chunks';
import {
  Connection,
  flagged,
  ON_RECEIVE_KEY,
  ON_SEND_KEY,
  PHASE_ACKED,
  PHASE_REPORTED,
  RECEIVE_PHASE,
  receiveKey,
  SEND_PHASE,
  sendKey,
  ticksOf,
  UPDATE_WANTED,
} from '../records/connection';
import { probeTimeout } from '../records/rtt';

/** Our constants: packets and milliseconds under one key. */
const PACKETS_PER_KEY: u32 = 1 << 28;
const TIME_PER_KEY: u32 = 3_600_000;

const KEY: u32 = 32;
const NONCE = memory.data(12, 4);
const BLOCK = memory.data(64, 16);
/** The next receive key of the connection whose packet is being opened; zero at any other time. */
export const NEXT_KEY: usize = memory.data(32, 16);

/** Fields in the previous key's chunk, after the key: when it is wiped, and the largest number it opened. */
const DISCARD_AT: usize = 32;
const LARGEST_AT: usize = 40;

/** Writes REKEY(`key`) to `target`; both may be the same address. */
export function rekey(key: usize, target: usize): void {
  store<u32>(NONCE, 0);
  store<u64>(NONCE, u64.MAX_VALUE, 4);
  // The text is 32 zeros, so the ciphertext is the key stream, which begins with block 1 (RFC 8439 §2.8).
  chachaBlock(key, 1, NONCE, BLOCK);
  memory.copy(target, BLOCK, KEY);
  memory.fill(BLOCK, 0, 64);
}

/** Flips the sending key if it is due and allowed; called before each packet. */
export function maybeUpdateSendKey(c: Connection, now: f64): void {
  const due =
    flagged(c, UPDATE_WANTED) || <u32>c.nextNumber - c.sendPhaseFirst >= PACKETS_PER_KEY || ticksOf(now) - c.phaseStart >= TIME_PER_KEY;
  if (!due || !updateAllowed(c, now)) return;
  rekey(sendKey(c), sendKey(c));
  c.flags = (c.flags ^ SEND_PHASE) & ~(PHASE_ACKED | UPDATE_WANTED);
  c.sendPhaseFirst = <u32>c.nextNumber;
  c.phaseStart = ticksOf(now);
  c.events |= ON_SEND_KEY;
}

/** Returns whether the current phase has been confirmed for long enough. */
export function updateAllowed(c: Connection, now: f64): bool {
  return flagged(c, PHASE_ACKED) && <f64>(ticksOf(now) - c.phaseAcked) >= 3 * probeTimeout(c);
}

/** Notes an acknowledgement: 3 PTO have to pass from the first one of the current phase. */
export function onNumberAcknowledged(c: Connection, number: u64, now: f64): void {
  if (flagged(c, PHASE_ACKED) || c.nextNumber - number > <u64>(<u32>c.nextNumber - c.sendPhaseFirst)) return;
  c.flags |= PHASE_ACKED;
  c.phaseAcked = ticksOf(now);
}

/** Computes the key the peer will use next; it stays at NEXT_KEY until `wipeNextKey`. */
export function nextReceiveKey(c: Connection): usize {
  rekey(receiveKey(c), NEXT_KEY);
  return NEXT_KEY;
}

export function wipeNextKey(): void {
  memory.fill(NEXT_KEY, 0, KEY);
}

/**
 * Commits to the key at NEXT_KEY, which opened packet `number`: current becomes previous, next becomes current. Returns
 * a transport error code.
 */
export function commitReceiveKey(c: Connection, number: u64, now: f64): u32 {
  // A later number came under an earlier key, or we have not yet acknowledged the peer's last update.
  if (<i64>number < c.largestReceived || !flagged(c, PHASE_REPORTED)) return ERROR_KEY_UPDATE_ERROR;
  if (!c.previousKey) c.previousKey = takeChunk(BOOKKEEPING);
  if (c.previousKey) {
    memory.copy(c.previousKey, receiveKey(c), KEY);
    store<f64>(c.previousKey, now + 3 * probeTimeout(c), DISCARD_AT);
    store<i64>(c.previousKey, c.largestReceived, LARGEST_AT);
  }
  memory.copy(receiveKey(c), NEXT_KEY, KEY);
  c.flags = (c.flags ^ RECEIVE_PHASE) & ~PHASE_REPORTED;
  c.receivePhaseFirst = number;
  c.events |= ON_RECEIVE_KEY;
  return ERROR_NO_ERROR;
}

/** Notes a packet of the current phase with a lower number than all before it. Returns a transport error code. */
export function lowerPhaseFirst(c: Connection, number: u64): u32 {
  if (number >= c.receivePhaseFirst) return ERROR_NO_ERROR;
  if (c.previousKey && <i64>number < load<i64>(c.previousKey, LARGEST_AT)) return ERROR_KEY_UPDATE_ERROR;
  c.receivePhaseFirst = number;
  return ERROR_NO_ERROR;
}

/** Notes that the previous key opened packet `number`. */
export function onPreviousKeyUsed(c: Connection, number: u64): void {
  if (<i64>number > load<i64>(c.previousKey, LARGEST_AT)) store<i64>(c.previousKey, <i64>number, LARGEST_AT);
}

/** Returns when the previous key is wiped, Infinity without one. */
export function previousKeyTime(c: Connection): f64 {
  return c.previousKey ? load<f64>(c.previousKey, DISCARD_AT) : Infinity;
}

export function discardPreviousKey(c: Connection): void {
  if (!c.previousKey) return;
  memory.fill(c.previousKey, 0, KEY);
  releaseChunk(c.previousKey, BOOKKEEPING);
  c.previousKey = 0;
}
