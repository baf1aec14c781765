/**
 * One connection: fields and flags, no behaviour. At most 528 bytes of fields and keys in the connection slab
 * (memory/layout.ts); the replay window (1,024) lies in its own area.
 *
 * State that only a busy connection needs lies in chunks that an idle one does not own: the packets in flight
 * (records/flight.ts), the model of the path (congestion/model.ts), stream buffers, datagram queues, the Complete
 * packet, the previous receive key, the closing frame. Neither the next receive key nor mask keys are kept: the former
 * is computed when a packet needs it (packet/key-update.ts), the mask of an id is a constant.
 */
import { CONNECTION_SIZE, connectionSlab } from '../memory/layout';
import { RecoveryState } from './recovery-state';

// States.
export const OPEN: u8 = 0;
/** We closed: CONNECTION_CLOSE is out, answers are rate-limited. */
export const CLOSING: u8 = 1;
/** The peer closed: we send nothing. */
export const DRAINING: u8 = 2;
/** Closed; only events are left. */
export const DRAINED: u8 = 3;

// Flags.
export const INITIATOR: u32 = 1 << 0;
export const ROUTED: u32 = 1 << 1;
/** Key phase bits of what we send and of what we receive. */
export const SEND_PHASE: u32 = 1 << 2;
export const RECEIVE_PHASE: u32 = 1 << 3;
/** A packet of our current key phase was acknowledged, at `phaseAcked`. */
export const PHASE_ACKED: u32 = 1 << 4;
export const UPDATE_WANTED: u32 = 1 << 5;
/** An acknowledgement goes out with the next transmit. */
export const ACK_NOW: u32 = 1 << 6;
/** An ack-eliciting packet arrived that no ACK of this end has reported. */
export const ACK_OWED: u32 = 1 << 7;
export const WANTS_STREAMS: u32 = 1 << 8;
export const WANTS_MESSAGES: u32 = 1 << 9;
/** The last transmit ran out of data, not of window. */
export const APP_LIMITED: u32 = 1 << 10;
/** A writer found no chunk; the retry timer is running. */
export const STARVED: u32 = 1 << 11;
/** A probe must go out whatever the window says. */
export const PROBE: u32 = 1 << 13;
/** The Complete packet must go out. */
export const SEND_COMPLETE: u32 = 1 << 14;
export const CLOSE_DUE: u32 = 1 << 15;
/** The active path's address is not validated: the anti-amplification limit holds. */
export const LIMITED: u32 = 1 << 16;
/** The peer seemed to have migrated while its old path still answered: from now on the old path is challenged first. */
export const DOUBTED: u32 = 1 << 17;
/** The peer's last non-probing packet came in on a path other than the active one, and was not followed. */
export const ELSEWHERE: u32 = 1 << 18;
/** The peer's MAX_DATA is used up and there is more to send; a DATA_BLOCKED frame says so, or is about to. */
export const OUT_OF_CREDIT: u32 = 1 << 19;
/** The active path may be dead, not yet reported to the caller. */
export const SUSPECTED: u32 = 1 << 20;
/** No path carries anything, see connection/resting.ts. */
export const RESTING: u32 = 1 << 21;
/** The connection rests instead of ending when keep-alive finds no answer. */
export const MAY_REST: u32 = 1 << 22;
/** Not yet reported to the caller: a rest began by itself; a rest ended. */
export const RESTED: u32 = 1 << 23;
export const RESUMED: u32 = 1 << 24;
/** Initiator: the peer has challenged the active path, not yet reported to the caller. */
export const CHALLENGED: u32 = 1 << 25;
/** Unread bytes leave so little memory that new streams of the peer get the least window (streams/window.ts). */
export const CRAMPED: u32 = 1 << 26;
/** A change of CRAMPED is not yet reported to the caller. */
export const CRAMPED_NEWS: u32 = 1 << 27;
/** We have sent an ACK since the peer's current key phase began: it may update again. */
export const PHASE_REPORTED: u32 = 1 << 28;

// Pending connection-wide control frames.
export const SEND_PING: u8 = 1 << 0;
export const SEND_MAX_DATA: u8 = 1 << 1;
export const SEND_MAX_STREAMS: u8 = 1 << 2;
export const SEND_MAX_MESSAGES: u8 = 1 << 3;
/** NEW_CONNECTION_ID and RETIRE_CONNECTION_ID that are due. */
export const SEND_IDS: u8 = 1 << 4;
export const SEND_DATA_BLOCKED: u8 = 1 << 5;

// Connection-wide events not fetched yet, in the order of reporting.
export const ON_COMPLETED: u8 = 1 << 0;
export const ON_SEND_KEY: u8 = 1 << 1;
export const ON_RECEIVE_KEY: u8 = 1 << 2;
export const ON_STREAMS: u8 = 1 << 3;
export const ON_MESSAGES: u8 = 1 << 4;
// … events of streams and datagrams …
export const ON_CLOSED: u8 = 1 << 5;
export const ON_TIMED_OUT: u8 = 1 << 6;
export const ON_DRAINED: u8 = 1 << 7;

/** One connection; its recovery state is that of the active path. */
@unmanaged
export class Connection extends RecoveryState {
  /**
   * Index of the path that packets go to. It uses the byte between the recovery state and the next multiple of eight.
   */
  activePath: u8;
  localId: u64;
  remoteId: u64;
  route: u64;
  /** Number of the next packet we send. */
  nextNumber: u64;
  /** Largest number the peer acknowledged, -1 = none; likewise the largest number received. */
  largestAcked: i64;
  largestReceived: i64;
  /** ACK frames no longer report received numbers below this. */
  ackFloor: u64;
  /** Lowest number received in the peer's current key phase. */
  receivePhaseFirst: u64;
  authenticationFailures: u64;
  // Flow control over all streams (RFC 9000 §4), bytes.
  dataSent: u64;
  dataSendLimit: u64;
  dataReceived: u64;
  dataConsumed: u64;
  dataReceiveLimit: u64;
  // Times, ms; Infinity = not armed.
  ackTime: f64;
  /** When the largest number arrived: an ACK frame reports the time since. */
  largestTime: f64;
  idleSince: f64;
  keepAliveSince: f64;
  /** While OPEN: when a starved writer is offered room again. Later: end of the closing or draining period. */
  stateTime: f64;
  bytesSent: f64;
  bytesReceived: f64;
  /** Bytes of streams that were retransmitted. */
  bytesRepeated: f64;
  /** First use of our current sending key, and its first acknowledgement once PHASE_ACKED (`ticksOf`). */
  phaseStart: u32;
  phaseAcked: u32;
  /** First number sent in our current key phase, low half: a phase has 2^28. */
  sendPhaseFirst: u32;
  flags: u32;
  random: u32;
  dataWindow: u32;
  /** Bytes by which `dataWindow` grew; credit beyond it, for bytes that no application reads (streams/window.ts). */
  dataGrown: u32;
  dataLent: u32;
  /** When the window was last tuned (`ticksOf`), 0 = never; low half of `dataConsumed` then. */
  dataTuned: u32;
  dataTunedAt: u32;
  /** Bytes written to byte streams and not yet acknowledged. */
  buffered: u32;
  initialStreamWindow: u32;
  peerStreamWindow: u32;
  // Counts of streams, by opener and kind.
  openedStreams: u32;
  openedMessages: u32;
  streamLimit: u32;
  messageLimit: u32;
  peerStreams: u32;
  peerMessages: u32;
  peerStreamLimit: u32;
  peerMessageLimit: u32;
  finishedPeerStreams: u32;
  finishedPeerMessages: u32;
  idleTimeout: u32;
  keepAliveInterval: u32;
  keepAliveRetry: u32;
  keepAliveMost: u16;
  keepAliveCount: u16;
  maxAckDelay: u16;
  peerMaxAckDelay: u16;
  maxDatagram: u16;
  peerMaxDatagram: u16;
  maxStreams: u16;
  maxMessages: u16;
  /** Packets until the sender skips a number (RFC 9000 §21.4). */
  untilSkip: u16;
  /** KiB of streams received, low half, when we last sent a PING because bytes had stopped arriving (stall.ts). */
  askedAt: u16;
  state: u8;
  pending: u8;
  events: u8;
  /** Ack-eliciting packets received since our last ACK; ACK-only packets sent since our last ack-eliciting one. */
  unacked: u8;
  ackOnly: u8;
  /** Ack-eliciting packets received, up to 255: the first 100 are acknowledged more often. */
  elicitingReceived: u8;
  /** Position in the share of byte streams, which is one packet in four. */
  turn: u8;
  /** The congestion controller: CONGESTION_… of codes.json. */
  congestion: u8;
  // Lists (head, tail), see memory/list.ts.
  allHead: usize;
  allTail: usize;
  messagesHead: usize;
  messagesTail: usize;
  bytesHead: usize;
  bytesTail: usize;
  lostHead: usize;
  lostTail: usize;
  controlHead: usize;
  controlTail: usize;
  eventsHead: usize;
  eventsTail: usize;
  // Chunks, 0 = none.
  flight: usize;
  datagrams: usize;
  complete: usize;
  previousKey: usize;
  closing: usize;
  /** Paths besides the active one (records/path.ts), and ids besides the first two (records/connection-ids.ts). */
  paths: usize;
  ids: usize;
  // Statistics.
  packetsSent: u32;
  packetsReceived: u32;
  packetsLost: u32;
  packetsDropped: u32;
  sendMask: u32;
  receiveMask: u32;
}

const FIELDS: usize = offsetof<Connection>();
const KEY: usize = 32;
/** Bytes of the record in use. */
export const CONNECTION_USED: usize = FIELDS + 2 * KEY;

export const ALL_LIST: usize = offsetof<Connection>('allHead');
export const MESSAGES_LIST: usize = offsetof<Connection>('messagesHead');
export const BYTES_LIST: usize = offsetof<Connection>('bytesHead');
export const LOST_LIST: usize = offsetof<Connection>('lostHead');
export const CONTROL_LIST: usize = offsetof<Connection>('controlHead');
export const EVENTS_LIST: usize = offsetof<Connection>('eventsHead');

export function at(c: Connection): usize {
  return changetype<usize>(c);
}

export function sendKey(c: Connection): usize {
  return changetype<usize>(c) + FIELDS;
}

export function receiveKey(c: Connection): usize {
  return changetype<usize>(c) + FIELDS + KEY;
}

/** Position in the slab. */
export function slotOf(c: Connection): usize {
  return (changetype<usize>(c) - connectionSlab) / CONNECTION_SIZE;
}

export function flagged(c: Connection, flag: u32): bool {
  return (c.flags & flag) != 0;
}

/**
 * Returns a time of which only differences matter: whole milliseconds modulo 2^32 (49 days), half the size of an f64.
 * Subtracting two as u32 gives the time between them.
 */
export function ticksOf(now: f64): u32 {
  return <u32>(<u64>now);
}

/** Returns the next number of the connection's generator (xorshift32), which the caller seeded. */
export function nextRandom(c: Connection): u32 {
  let x = c.random ? c.random : 1;
  x ^= x << 13;
  x ^= x >> 17;
  x ^= x << 5;
  c.random = x;
  return x;
}
