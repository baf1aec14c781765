/**
 * The packets in flight: one record per ack-eliciting packet, found by its number in O(1).
 *
 * Everything lies in chunks that are freed when nothing is in flight. A Flight chunk holds the times that matter only
 * then, the pacer and a ChunkMap keyed by packet number × 128. A record says what the packet carried, as references to
 * streams and flags for control frames. Control frames are never stored: a lost one is rebuilt from state.
 */
import { addressOf, MAP_SIZE, MAP_WINDOW, releaseAll, releaseBelow, releaseRest, reserve } from '../memory/chunk-map';
import { BOOKKEEPING, releaseChunk, takeClearChunk } from '../memory/chunks';
import { Connection } from './connection';

@unmanaged
export class Flight {
  /** When the earliest unacknowledged packet counts as lost by the time threshold; Infinity = none. */
  lossTime: f64;
  /** When the last ack-eliciting packet went out. */
  lastEliciting: f64;
  /** Start of the current recovery period; -1 = none. */
  recoveryStart: f64;
  /**
   * When the path's first RTT sample was taken, -1 = before this flight; bounds persistent congestion (RFC 9002
   * §7.6.2).
   */
  firstSample: f64;
  /**
   * Pacer: when it was last refilled, -Infinity = never, so that it begins full; when the next packet may go, Infinity
   * = now.
   */
  pacedAt: f64;
  pacingTime: f64;
  /** Lowest number that may have a record. */
  base: u64;
  pacingTokens: f32;
  /** The newest RTT sample of this flight, 0 = none, ms. */
  latestRtt: f32;
  ptoCount: u32;
  /** Records waiting for an acknowledgement. */
  outstanding: u32;
  /** Probe packets that may go out regardless of the window. */
  probes: u32;
  // Packet size (recovery/mtu.ts).
  /** Number of the outstanding probe of a larger size, 0 = none. */
  mtuProbe: u64;
  /** Newest packet larger than the base size that was acknowledged. */
  largeAcked: u64;
  /** Large packets below this number were lost to a black hole. */
  excusedBelow: u64;
  /**
   * Start of the current episode of loss (reordering.ts), -1 = none; packets of that episode that have not turned out
   * to be late.
   */
  episodeStart: f64;
  unconfirmed: u32;
  /** Packets declared lost in this flight; only the most recent are kept. */
  lostNext: u32;
  episode: u8;
  /** Early copies of the last packets; whether the next packet is one (early-copy.ts). */
  copies: u8;
  isCopy: u8;
  /** When the next copy is due, Infinity = none is. */
  copyTime: f64;
  /** Restored by a window-based controller when all losses of an episode were spurious. */
  undoWindow: u32;
  undoThreshold: u32;
}

/** A packet declared lost. */
@unmanaged
export class LostPacket {
  time: f64;
  /** Low 32 bits. */
  number: u32;
  size: u16;
  episode: u8;
  isKept: u8;
}

/** Remembered packets that were declared lost: about 5 ms of them at 100 Mbit/s, in the space the chunk has left. */
export const MAX_LOST: u32 = 48;
const MAP_AT: usize = offsetof<Flight>();
const LOST_AT: usize = MAP_AT + MAP_SIZE;
/** Bytes of the flight's chunk in use. */
export const FLIGHT_USED: usize = LOST_AT + <usize>MAX_LOST * offsetof<LostPacket>();

// States of a record; 0 = not tracked (a packet that elicits no acknowledgement).
export const OUTSTANDING: u8 = 1;
/** Acknowledged, or given up as lost. */
export const RESOLVED: u8 = 2;
/** A number skipped on purpose: an ACK of it closes the connection. */
export const SKIPPED: u8 = 3;
/** A challenge or response: nothing waits for it, only its path is known. */
export const UNTRACKED: u8 = 4;

/** References per record, and so the most pieces in a packet. */
export const MAX_REFERENCES: u32 = 5;

@unmanaged
export class SentPacket {
  time: f64;
  /** Largest number in this packet's ACK frame, -1 = it had none. */
  ackLargest: i64;
  size: u16;
  state: u8;
  references: u8;
  /** Connection-wide control frames that it carried, as in Connection.pending. */
  control: u8;
  /** 1: the Complete packet. */
  complete: u8;
  /** 1: at its sending the application left room in the window. */
  appLimited: u8;
  /** 1: a probe of a larger size, without other content. */
  mtuProbe: u8;
  /** Index of the path it went out on (records/path.ts); NO_PATH once that index serves another path. */
  path: u8;
  /** DATAGRAM frames that it carried; the least one has 3 bytes, so that 65,000 bytes hold more than 255. */
  datagrams: u16;
  // Delivery-rate sampling (draft-ietf-ccwg-bbr §4.1.2.1): the connection's counters at its sending, low 32 bits.
  delivered: u32;
  lost: u32;
  /** Bytes in flight, this packet included. */
  txInFlight: u32;
  /** ms from the last delivery, and from the sending of the packet delivered last, to the sending of this one. */
  sinceDelivered: f32;
  sinceFirstSend: f32;
}

/** Both multiples of 16: vectors clear and copy records; a call of the engine costs more. */
export const REFERENCES_AT: usize = 48;
export const REFERENCE_SIZE: u32 = 16;
export const RECORD_SIZE: u32 = 128;
/** Bytes of a record in use. */
export const SENT_USED: usize = REFERENCES_AT + MAX_REFERENCES * REFERENCE_SIZE;
/** Numbers a flight can span: the capacity of a ChunkMap. */
const MAX_RECORDS: u64 = MAP_WINDOW / RECORD_SIZE;

// Kinds of references.
export const REF_DATA: u8 = 0;
export const REF_MAX_STREAM_DATA: u8 = 1;
export const REF_RESET_STREAM: u8 = 2;
export const REF_STOP_SENDING: u8 = 3;
/** Its offset is the limit that was announced. */
export const REF_STREAM_DATA_BLOCKED: u8 = 4;

/** The offset part of `Reference.offsetAndGeneration`. */
export const OFFSET_MASK: u64 = 0x0000_ffff_ffff_ffff;

@unmanaged
export class Reference {
  /** Offset in the low 48 bits, generation of the stream record in the high 16. */
  offsetAndGeneration: u64;
  stream: usize;
  length: u16;
  kind: u8;
  fin: u8;
}

export function flightOf(c: Connection): Flight {
  return changetype<Flight>(c.flight);
}

export function lostPacketOf(flight: Flight, index: u32): LostPacket {
  return changetype<LostPacket>(changetype<usize>(flight) + LOST_AT + <usize>index * offsetof<LostPacket>());
}

export function offsetOf(reference: Reference): u64 {
  return reference.offsetAndGeneration & OFFSET_MASK;
}

/** Ensures the flight; false when no chunk is left. */
export function ensureFlight(c: Connection): bool {
  if (c.flight) return true;
  c.flight = takeClearChunk(BOOKKEEPING);
  if (!c.flight) return false;
  const flight = flightOf(c);
  flight.lossTime = Infinity;
  flight.recoveryStart = -1;
  flight.episodeStart = -1;
  flight.copyTime = Infinity;
  flight.firstSample = -1;
  flight.pacedAt = -Infinity;
  flight.pacingTime = Infinity;
  flight.pacingTokens = 0;
  flight.base = c.nextNumber;
  return true;
}

/** Returns whether the flight spans so much of the number space that sending must wait for acknowledgements. */
export function flightIsFull(c: Connection): bool {
  return c.flight != 0 && c.nextNumber + 1 - flightOf(c).base >= MAX_RECORDS;
}

/** A zeroed record for `number`; null (0) when no chunk is left. */
export function newRecord(c: Connection, number: u64): SentPacket {
  return changetype<SentPacket>(reserve(map(c), number * RECORD_SIZE, BOOKKEEPING, true));
}

/** The record of `number` (at least `base`), null (0) when there is none. */
export function recordOf(c: Connection, number: u64): SentPacket {
  if (number - flightOf(c).base >= MAX_RECORDS) return changetype<SentPacket>(0);
  return changetype<SentPacket>(addressOf(map(c), number * RECORD_SIZE));
}

export function referenceOf(record: SentPacket, index: u32): Reference {
  return changetype<Reference>(changetype<usize>(record) + REFERENCES_AT + index * REFERENCE_SIZE);
}

/** Forgets records below the first outstanding one, and the whole flight when none is left. */
export function settleFlight(c: Connection): void {
  if (!c.flight) return;
  const flight = flightOf(c);
  let base = flight.base;
  while (base < c.nextNumber) {
    const record = recordOf(c, base);
    if (changetype<usize>(record) && (record.state == OUTSTANDING || isTrap(c, record, base))) break;
    base++;
  }
  releaseBelow(map(c), flight.base * RECORD_SIZE, base * RECORD_SIZE, BOOKKEEPING);
  flight.base = base;
  if (base < c.nextNumber) return;
  releaseRest(map(c), base * RECORD_SIZE, BOOKKEEPING);
  if (flight.probes == 0) endFlight(c);
}

/**
 * A skipped number stays known until something above it was acknowledged: a peer that acknowledges it does so earlier.
 */
function isTrap(c: Connection, record: SentPacket, number: u64): bool {
  return record.state == SKIPPED && <i64>number > c.largestAcked;
}

/** Frees everything, outstanding packets included. */
export function endFlight(c: Connection): void {
  if (!c.flight) return;
  releaseAll(map(c), BOOKKEEPING);
  releaseChunk(c.flight, BOOKKEEPING);
  c.flight = 0;
}

function map(c: Connection): usize {
  return c.flight + MAP_AT;
}
