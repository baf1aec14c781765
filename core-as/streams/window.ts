/**
 * Size of receive windows: small until a stream shows that it needs more, then as large as it uses, never more than the
 * pool holds.
 *
 *   1. A byte stream begins with the window of the transport parameters and is raised on acceptance (credit.ts).
 *   2. From then on, each time new credit is announced, its window doubles if half a window was consumed within 2 round
 *      trips: then the sender waits for credit and not for the path (the rule of Chromium and quic-go).
 *   3. The connection's window follows the same rule, and is at least one and a half times the largest stream window.
 *   4. Nothing grows while half of the budget for received bytes is in use, and the growth of all connections together
 *      stays within that budget.
 *
 * Windows never shrink: a connection's growth is freed when it ends. Nothing is announced here
 * (connection/control-frames.ts).
 */
import { MAP_WINDOW } from '../memory/chunk-map';
import { BYTES_IN, budgetBytes, MESSAGES_IN, scarce } from '../memory/chunks';
import { MESSAGE_LIMIT } from '../memory/layout';
import { Connection, SEND_MAX_DATA } from '../records/connection';
import { ADAPTIVE, has, Stream } from '../records/stream';
import { ticksOf } from '../records/ticks';

/** Largest stream window: the span of a ChunkMap. */
export const MOST_WINDOW: u32 = MAP_WINDOW - 1_024;

/**
 * Our constant: new credit is announced at the latest after this many consumed bytes, so that at the largest window
 * nearly all of it is on its way.
 */
export const MOST_STEP: u32 = 262_144;

/** A whole window consumed in this many round trips is too small: half a window in 2. */
const ROUND_TRIPS: f64 = 4;
/** Our constant: lower bound of that time, ms. Peers may answer this late however near they are. */
const LEAST_TIME: f64 = 20;

/** Largest window of a connection (CoreOptions.connectionWindow). */
let mostConnectionWindow: u32 = 0;
/** Growth of the windows of all connections, bytes. */
let grownBytes: u64 = 0;

export function windowsInit(most: u32): void {
  mostConnectionWindow = most;
  grownBytes = 0;
}

/** Room for received bytes of streams and messages: no connection may announce more. At least two messages. */
export function mostPeerData(): u32 {
  return <u32>min(max(<u64>2 * MESSAGE_LIMIT, budgetBytes(BYTES_IN) + budgetBytes(MESSAGES_IN)), <u64>i32.MAX_VALUE);
}

/** Bytes consumed before new credit is announced: a quarter of the window. */
export function stepOf(window: u32): u32 {
  return min(window / 4, MOST_STEP);
}

/**
 * The part of `wanted` that a stream may have as its window: at most what the pool could hold, and two thirds of the
 * connection's window, which grows for it if it can.
 */
export function windowOf(c: Connection, wanted: u32): u32 {
  const most = <u32>min(<u64>min(wanted, MOST_WINDOW), budgetBytes(BYTES_IN));
  return ensureConnection(c, (most / 2) * 3) ? most : min(most, (c.dataWindow / 3) * 2);
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

/** The same for the connection's credit. */
export function tuneConnection(c: Connection, now: f64): void {
  const consumed = c.dataConsumed + c.dataWindow - c.dataReceiveLimit;
  if (consumed < stepOf(c.dataWindow) / 2) return;
  const ticks = max(ticksOf(now), 1);
  const isFirst = c.dataTuned == 0;
  const elapsed = ticks - c.dataTuned;
  c.dataTuned = ticks;
  if (!isFirst && isFast(c, consumed, c.dataWindow, elapsed)) grow(c, min(c.dataWindow, max(mostGrown(), c.dataWindow) - c.dataWindow));
}

/** The connection ends: frees its growth for others. */
export function releaseWindow(c: Connection): void {
  grownBytes -= c.dataGrown;
  c.dataGrown = 0;
}

/** Returns whether a window of which `consumed` bytes were used in `elapsed` ms is used up in too few round trips. */
function isFast(c: Connection, consumed: u64, window: u32, elapsed: u32): bool {
  const time = max(<f64>c.smoothedRtt * ROUND_TRIPS, LEAST_TIME);
  return <f64>elapsed * <f64>window <= time * <f64>consumed;
}

/** Returns whether the connection's window reaches `bytes`, growing it if possible. */
function ensureConnection(c: Connection, bytes: u32): bool {
  return c.dataWindow >= bytes || (bytes <= mostGrown() && grow(c, bytes - c.dataWindow));
}

/** Largest size a connection's window may grow to. */
function mostGrown(): u32 {
  return min(mostConnectionWindow, mostPeerData());
}

function grow(c: Connection, by: u32): bool {
  if (scarce(BYTES_IN) || grownBytes + by > budgetBytes(BYTES_IN)) return false;
  grownBytes += by;
  c.dataGrown += by;
  c.dataWindow += by;
  if (by > 0) c.pending |= SEND_MAX_DATA;
  return true;
}
