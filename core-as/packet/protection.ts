/**
 * Packet protection (PROTOCOL.md §4).
 *
 *   protect:   header, nonce from the number, encrypt in place, tag after the text
 *   unprotect: 1 one of our ids  2 number rebuilt  3 not in the replay window  4 key by phase and number  5 tag
 *
 * Nothing of a packet is used before its tag matches; otherwise `open` wipes what it decrypted. The caller marks the
 * number as received, after it has processed the packet.
 */
import { open, seal } from '../aead';
import { Connection, flagged, RECEIVE_PHASE, receiveKey, SEND_PHASE, sendKey } from '../records/connection';
import { findLocal } from '../records/connection-ids';
import { destinationOf, HEADER, isData, maskedNumberOf, OVERHEAD, PHASE_BIT, reconstruct, TAG, writeHeader } from './header';
import { commitReceiveKey, lowerPhaseFirst, NEXT_KEY, nextReceiveKey, onPreviousKeyUsed, wipeNextKey } from './key-update';
import { isNew } from './replay-window';

const NONCE = memory.data(12, 4);

/** Number of the packet that `unprotect` opened last, and the transport error that its key phase causes, 0 = none. */
export let openedNumber: u64 = 0;
/** The connection id that it was sent to. */
export let openedId: u64 = 0;
export let openedError: u32 = 0;

/** Seals `length` bytes of frames at `packet` + HEADER as packet `number`; returns the packet's size. */
export function protect(c: Connection, packet: usize, length: u32, number: u64): u32 {
  writeHeader(packet, flagged(c, SEND_PHASE), c.remoteId, <u32>number + c.sendMask);
  setNonce(number);
  const text = packet + HEADER;
  seal(sendKey(c), NONCE, packet, HEADER, text, length, text + length);
  return HEADER + length + TAG;
}

/**
 * Opens the packet of `size` bytes in place; true if it is authentic and new. `now` starts the remaining time of an
 * outgoing key.
 */
export function unprotect(c: Connection, packet: usize, size: u32, now: f64): bool {
  if (size < OVERHEAD || !isData(load<u8>(packet))) return false;
  const id = destinationOf(packet);
  let mask = c.receiveMask;
  if (id != c.localId) {
    const ours = findLocal(c, id);
    if (!changetype<usize>(ours)) return false;
    mask = ours.mask;
  }
  const number = reconstruct(c.largestReceived, maskedNumberOf(packet) - mask);
  if (!isNew(c, number)) return false;

  const phase = (load<u8>(packet) & PHASE_BIT) != 0;
  const key = keyFor(c, phase, number);
  if (!key) return false;
  const length = size - OVERHEAD;
  const text = packet + HEADER;
  setNonce(number);
  const opened = open(key, NONCE, packet, HEADER, text, length, text + length);
  if (opened) {
    openedNumber = number;
    openedId = id;
    openedError = notePhase(c, key, number, now);
  } else {
    c.authenticationFailures++;
  }
  if (key == NEXT_KEY) wipeNextKey();
  return opened;
}

/** Notes that `key` opened packet `number`. Returns a transport error code. */
function notePhase(c: Connection, key: usize, number: u64, now: f64): u32 {
  if (key == NEXT_KEY) return commitReceiveKey(c, number, now);
  if (key == receiveKey(c)) return lowerPhaseFirst(c, number);
  onPreviousKeyUsed(c, number);
  return 0;
}

/**
 * The key for a phase bit and number. Same phase: current. Other phase: previous below the current phase, else next
 * (RFC 9001 §6.3, §6.5).
 */
function keyFor(c: Connection, phase: bool, number: u64): usize {
  if (phase == flagged(c, RECEIVE_PHASE)) return receiveKey(c);
  return number < c.receivePhaseFirst ? c.previousKey : nextReceiveKey(c);
}

function setNonce(number: u64): void {
  store<u32>(NONCE, 0);
  store<u64>(NONCE, number, 4);
}
