/**
 * Size of receive windows: small until a stream shows that it needs more, then as large as it uses, never more than the
 * pool holds.
 *
 *   1. A byte stream begins with the window of the transport parameters and is raised on acceptance (credit.ts).
 *   2. From then on, each time new credit is announced, its window doubles if half a window was consumed within 2 round
 *      trips: then the sender waits for credit and not for the path (the rule of Chromium and quic-go).
 *   3. The connection's window follows the same rule, and is half as large again as the largest stream window where it
 *      may be.
 *   4. Nothing grows while half of the budget for received bytes is in use, and the growth of all connections together
 *      stays within that budget.
 *   5. Bytes that no application reads do not use up the connection's window: as they arrive, it is lent as much
 *      (`lend`), less as memory runs short. In the end there is enough for the streams that move (RESERVE).
 *
 * A connection's growth is freed when it ends, and what of it is not announced, when others need it. Nothing is
 * announced here (connection/control-frames.ts).
 */
import { MAP_WINDOW } from '../memory/chunk-map';
import { BYTES_IN, budgetBytes, bytesUntilScarce, CHUNK_BITS, fairShare, MESSAGES_IN, roomForUnread, scarce } from '../memory/chunks';
import { connectionCount, MESSAGE_LIMIT } from '../memory/layout';
import { Connection, CRAMPED, CRAMPED_NEWS, flagged, SEND_MAX_DATA, ticksOf } from '../records/connection';
import { ADAPTIVE, has, Stream } from '../records/stream';

/** Largest stream window: the span of a ChunkMap. */
export const MAX_WINDOW: u32 = MAP_WINDOW - 1_024;

/**
 * Our constant: new credit is announced at the latest after this many consumed bytes, so that at the largest window
 * nearly all of it is on its way.
 */
export const MAX_STEP: u32 = 262_144;

/** A whole window consumed in this many round trips is too small: half a window in 2. */
const ROUND_TRIPS: f64 = 4;
/** Our constant: lower bound of that time, ms. Peers may answer this late however near they are. */
const MIN_TIME: f64 = 20;

/** Our constant: sixteenths of the budget for received bytes that one connection's window may grow to. */
const MAX_SHARE: u64 = 11;

/**
 * Our constant: bytes that a byte stream may send before its reader has taken any, whatever memory is left: the window
 * with which streams begin by default.
 */
export const MIN_WINDOW: u32 = 16_384;
/**
 * Our constant: the last bytes of the credit for byte streams, which only streams that move may use: at least two at a
 * time (PROTOCOL.md §5.5).
 */
export const RESERVE: u32 = 2 * MIN_WINDOW;

/** Largest window of a connection (CoreOptions.connectionWindow). */
let maxConnectionWindow: u32 = 0;
/** Growth of the windows of all connections, bytes. */
let grownBytes: u64 = 0;

export function windowsInit(most: u32): void {
  maxConnectionWindow = most;
  grownBytes = 0;
}

/** Room for received bytes of streams and messages: no connection may announce more. At least two messages. */
function maxPeerData(): u32 {
  return <u32>min(max(<u64>2 * MESSAGE_LIMIT, budgetBytes(BYTES_IN) + budgetBytes(MESSAGES_IN)), <u64>i32.MAX_VALUE);
}

/**
 * The same for a connection that is about to open: what one connection's byte streams and a message may hold; the least
 * where unread bytes fill half of their room.
 */
export function maxFirstData(): u32 {
  if (scarce(BYTES_IN)) return 2 * MESSAGE_LIMIT;
  return <u32>min(max(<u64>2 * MESSAGE_LIMIT, maxBytes() + MESSAGE_LIMIT), <u64>i32.MAX_VALUE);
}

/** Bytes consumed before new credit is announced: a quarter of the window. */
export function stepOf(window: u32): u32 {
  return min(window / 4, MAX_STEP);
}

/**
 * The part of `wanted` that a stream may have as its window: at most what the pool could hold, and what the
 * connection's window, which grows for it if it can, leaves for others.
 */
export function windowOf(c: Connection, wanted: u32): u32 {
  const most = <u32>min(<u64>min(wanted, MAX_WINDOW), budgetBytes(BYTES_IN));
  ensureConnection(c, min((most / 2) * 3, maxGrown()));
  return min(most, max((c.dataWindow / 3) * 2, c.dataWindow - 2 * MESSAGE_LIMIT));
}

/** Credit of `s` is about to be announced: enlarges its window if the sender waits for it. */
export function tuneStream(c: Connection, s: Stream, now: f64): void {
  const consumed = s.readBase + s.window - s.receiveLimit;
  if (consumed < stepOf(s.window) / 2) return;
  const ticks = max(ticksOf(now), 1);
  const isFirst = s.tuned == 0;
  const elapsed = ticks - s.tuned;
  s.tuned = ticks;
  if (isFirst || !has(s, ADAPTIVE) || !isFast(c, consumed, s.window, elapsed)) return;
  if (!scarce(BYTES_IN)) s.window = max(s.window, windowOf(c, s.window * 2));
}

/**
 * The same for the connection's credit. A window that is larger than its reader needs gives back what is not announced,
 * where others need it.
 */
export function tuneConnection(c: Connection, now: f64): void {
  const consumed = <u32>c.dataConsumed - c.dataTunedAt;
  if (consumed < stepOf(c.dataWindow) / 2) return;
  const ticks = max(ticksOf(now), 1);
  const isFirst = c.dataTuned == 0;
  const elapsed = ticks - c.dataTuned;
  c.dataTuned = ticks;
  c.dataTunedAt = <u32>c.dataConsumed;
  if (isFirst) return;
  if (isFast(c, consumed, c.dataWindow, elapsed)) grow(c, min(c.dataWindow, max(maxGrown(), c.dataWindow) - c.dataWindow));
  else if (grownBytes > budgetBytes(BYTES_IN) / 2) shrink(c);
}

/**
 * Bytes have arrived, or memory is free again: lends the connection credit for those that wait to be read, so that it
 * has credit for further ones.
 */
export function lend(c: Connection): void {
  const most = max(c.dataWindow, min(maxConnectionWindow, maxPeerData()));
  const wanted = <u32>min(unreadBytes(c) + aheadOf(c), <u64>most);
  if (wanted > c.dataWindow) c.dataLent = max(c.dataLent, wanted - c.dataWindow);
}

/** Bytes were consumed: takes back what was lent for them. Credit that is announced already stays. */
export function takeBack(c: Connection): void {
  c.dataLent = <u32>min(<u64>c.dataLent, unreadBytes(c));
  if (flagged(c, CRAMPED) && !scarce(BYTES_IN)) noteCramped(c, false);
}

/** Notes, for the caller, whether memory is the limit of what the peer's streams get. */
export function noteCramped(c: Connection, isCramped: bool): void {
  if (flagged(c, CRAMPED) == isCramped) return;
  c.flags ^= CRAMPED | CRAMPED_NEWS;
}

/** Bytes, gaps included, that the application has not consumed. */
function unreadBytes(c: Connection): u64 {
  return c.dataReceived - c.dataConsumed;
}

/**
 * Returns whether the peer holds less than its share of the reserved half of `budget`, each open message counted as a
 * chunk.
 */
export function holdsLittle(c: Connection, budget: u32): bool {
  const open = (<u64>(c.peerMessages - c.finishedPeerMessages)) << CHUNK_BITS;
  return unreadBytes(c) + open < fairShare(budget, connectionCount);
}

/** The connection ends: frees its growth for others. */
export function releaseWindow(c: Connection): void {
  grownBytes -= c.dataGrown;
  c.dataGrown = 0;
}

/** Returns whether a window of which `consumed` bytes were used in `elapsed` ms is used up in too few round trips. */
function isFast(c: Connection, consumed: u64, window: u32, elapsed: u32): bool {
  const time = max(<f64>c.smoothedRtt * ROUND_TRIPS, MIN_TIME);
  return <f64>elapsed * <f64>window <= time * <f64>consumed;
}

/** Grows the connection's window to `bytes` if possible. */
function ensureConnection(c: Connection, bytes: u32): void {
  if (c.dataWindow < bytes) grow(c, bytes - c.dataWindow);
}

/**
 * Largest size a connection's window may grow to: unread bytes of streams with large windows leave room for those of
 * others.
 */
function maxGrown(): u32 {
  return min(maxConnectionWindow, <u32>min(maxBytes(), <u64>i32.MAX_VALUE));
}

function maxBytes(): u64 {
  return (budgetBytes(BYTES_IN) / 16) * MAX_SHARE;
}

/**
 * Credit for bytes that have not arrived: a whole window while there is memory, then what streams that move need, and
 * no more for byte streams than there is room for.
 */
function aheadOf(c: Connection): u32 {
  if (scarce(MESSAGES_IN)) return 0;
  const bytes = min(RESERVE + bytesUntilScarce(BYTES_IN) / 2, roomForUnread());
  return <u32>min(<u64>c.dataWindow, MESSAGE_LIMIT + bytes);
}

/** Gives back the growth that is not announced. */
function shrink(c: Connection): void {
  const limit = c.dataConsumed + c.dataWindow;
  const by = limit > c.dataReceiveLimit ? <u32>min(limit - c.dataReceiveLimit, <u64>c.dataGrown) : 0;
  grownBytes -= by;
  c.dataGrown -= by;
  c.dataWindow -= by;
}

function grow(c: Connection, by: u32): bool {
  if (scarce(BYTES_IN) || grownBytes + by > budgetBytes(BYTES_IN)) return false;
  grownBytes += by;
  c.dataGrown += by;
  c.dataWindow += by;
  if (by > 0) c.pending |= SEND_MAX_DATA;
  return true;
}
