/**
 * The paths of a connection, at most four, by small indices that the caller maps to addresses (RFC 9000 §9, PROTOCOL.md
 * §6): fields and flags, no behaviour. paths/table.ts adds and drops entries.
 *
 * `Connection` holds the recovery state and addressing of the active path, where the hot path reads them; the entries
 * hold those of the others.
 */
import { Connection } from './connection';
import { RecoveryState } from './recovery-state';

export const MAX_PATHS: u32 = 4;
export const NO_PATH: u8 = 255;
/**
 * Passed by the caller for an address without an index; the second constant: it differs from the active path's by the
 * port only.
 */
export const UNKNOWN: u32 = 4;
export const UNKNOWN_PORT: u32 = 5;

/** RFC 9000 §8.2.1 allows several; a response to any of the last three counts. */
export const CHALLENGES: u32 = 3;
/** PROTOCOL.md §6.2 */
export const MAX_RESPONSES: u32 = 4;

// States of an entry.
export const FREE: u8 = 0;
/** Not validated: the anti-amplification limit holds (RFC 9000 §8.1). */
export const UNVALIDATED: u8 = 1;
export const VALIDATED: u8 = 2;

// Flags of an entry.
/** A challenge is outstanding, until `deadline`. */
export const CHALLENGING: u16 = 1 << 0;
/** It has answered a challenge in a full-size datagram: it may be chosen. */
export const FULL_SIZE: u16 = 1 << 1;
/** The caller wants it kept warm. */
export const KEPT: u16 = 1 << 2;
/** It becomes active as soon as it may be chosen. */
export const CHOSEN: u16 = 1 << 3;
/** Its window and RTT were never used. */
export const FRESH: u16 = 1 << 4;
/** The outstanding challenge keeps the path warm, in a small datagram. */
export const SMALL: u16 = 1 << 5;
/** Left on purpose for another path: forgotten at `deadline`. */
export const LEAVING: u16 = 1 << 6;
/** Its packets carry a Route header. */
export const ON_ROUTE: u16 = 1 << 7;
/** It must not be used before the peer has supplied an id for it. */
export const NEEDS_ID: u16 = 1 << 8;
/** Added by our own caller: no attacker can direct us there, so the anti-amplification limit does not apply. */
export const OURS: u16 = 1 << 9;
/** The caller asked: the outcome is reported even if it changes nothing. */
export const ASKED: u16 = 1 << 10;

// News of an entry for the caller.
export const NEWS_VALIDATED: u8 = 1 << 0;
/** It did not answer, and is being retried. */
export const NEWS_FAILED: u8 = 1 << 1;
export const NEWS_GONE: u8 = 1 << 2;

/** State that all paths share; the entries follow. */
@unmanaged
export class Paths {
  /** When the check before a failover began; -1 = none. */
  checkStart: f64;
  /** Until then, packets from another address do not cause a check of the active path, which has just answered. */
  contestAfter: f64;
  /** The path that was active before an unannounced migration: it is restored if it still answers. NO_PATH = none. */
  former: u8;
  /** The path that takes over if the active one does not answer. NO_PATH = none. */
  rival: u8;
  /** Why the active path changed, PATH_REASON_… of codes.json; 0 = reported. */
  reason: u8;
  /** The active path did not answer its check: the next path that answers takes over. */
  activeDead: u8;
  /** Number of waiting responses. */
  responses: u8;
}

/** One path; its recovery state is up to date while it is not the active one. */
@unmanaged
export class Path extends RecoveryState {
  flags: u16;
  state: u8;
  news: u8;
  /** A bit for each of the last challenges, set if it went out in a full-size datagram. */
  fullSize: u8;
  /** Challenges since validation began. */
  challengesSent: u8;
  /** Slot of the id we send to on this path, NO_ID while none are listed. */
  remoteSlot: u8;
  /** The path that differs from this one by the port only, NO_PATH = none. */
  sibling: u8;
  sendMask: u32;
  /** Keep-warm challenges since the last full-size one. */
  keeps: u8;
  remoteId: u64;
  /** The one of our ids that the peer used last here. */
  localId: u64;
  route: u64;
  /** Next challenge; end of validation, or of a path that is being left. Infinity = not armed. */
  challengeAt: f64;
  deadline: f64;
  /** When it answered last, -1 = never. */
  answeredAt: f64;
  bytesSent: f64;
  bytesReceived: f64;
  packetsSent: u32;
  packetsReceived: u32;
  /** ms between keep-warm challenges, 0 = none. */
  keepInterval: u32;
}

/** Size of a challenge or response in the areas after the fields. */
const QUEUED: usize = 16;
const RESPONSES_AT: usize = 32;
const ENTRIES_AT: usize = RESPONSES_AT + <usize>MAX_RESPONSES * QUEUED;
const CHALLENGES_AT: usize = offsetof<Path>();
const ENTRY_SIZE: usize = CHALLENGES_AT + <usize>CHALLENGES * QUEUED;
/** Bytes of the chunk in use. */
export const PATHS_USED: usize = ENTRIES_AT + <usize>MAX_PATHS * ENTRY_SIZE;

export function pathsOf(c: Connection): Paths {
  return changetype<Paths>(c.paths);
}

export function pathAt(c: Connection, index: u32): Path {
  return changetype<Path>(c.paths + ENTRIES_AT + ENTRY_SIZE * index);
}

/** Address of the n-th challenge of a path: its data (u64) and when it went out (f64). */
export function challengeOf(p: Path, n: u32): usize {
  return changetype<usize>(p) + CHALLENGES_AT + QUEUED * (n % CHALLENGES);
}

/** Address of a waiting response: its data (u64), the path (u8), and whether it must have full size (u8). */
export function responseOf(c: Connection, n: u32): usize {
  return c.paths + RESPONSES_AT + QUEUED * n;
}

/** Clears an entry and its challenges: FREE. */
export function clearPath(p: Path): void {
  memory.fill(changetype<usize>(p), 0, ENTRY_SIZE);
}

export function is(p: Path, flag: u16): bool {
  return (p.flags & flag) != 0;
}
