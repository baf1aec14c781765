/**
 * Pacing (RFC 9002 §7.7): a token bucket, filled at the congestion controller's pacing rate.
 *
 * The bucket holds at least 10 packets and at least 2 ms of rate: callers wake us with timers of 1 ms, and a smaller
 * bucket would turn that granularity into a limit. From 60 Mbit/s on that is more than the initial window, the limit
 * for bursts in RFC 9002 §7.7.
 *
 * A sender whose packets waited for the bucket and which was then woken late is credited that time: up to a tenth of
 * the minimum round trip, at most 16 ms, the granularity of the coarsest timers in use. The queue at the bottleneck has
 * shrunk by as much meanwhile. Nothing is credited while packets wait there all the time: the line was not idle, and
 * time that is not made up for drains the queue. Nor is more credited: such machines serve packets and acknowledgements
 * in batches, and larger bursts of them would show more bandwidth than there is.
 */
import { Connection } from '../records/connection';
import { flightOf } from '../records/flight';
import { pacingRate, queueStands } from './congestion';

const BURST_PACKETS: u32 = 10;
/** ms. */
const BURST_TIME: f32 = 2;
/** ms, and as a part of the minimum round trip. */
const LATE_TIME: f32 = 16;
const LATE_PART: f32 = 0.1;

/** Fills the bucket up to `now`; called once before a burst. */
export function refill(c: Connection, now: f64): void {
  if (!c.flight) return;
  const flight = flightOf(c);
  const rate = pacingRate(c);
  const burst = max(<f32>(BURST_PACKETS * <u32>c.packetSize), rate * BURST_TIME);
  const owed = max(burst, rate * min(LATE_TIME, LATE_PART * c.minimumRtt));
  const held = min(owed, flight.pacingTokens);
  const late = flight.pacingTime < now && !queueStands(c);
  flight.pacingTokens = max(held, min(late ? owed : burst, held + <f32>(now - flight.pacedAt) * rate));
  flight.pacedAt = now;
}

/** Returns whether a full packet may go now; if not, `pacingTime` says when. */
export function mayPace(c: Connection, now: f64): bool {
  if (!c.flight) return true;
  const flight = flightOf(c);
  const missing = <f32>c.packetSize - flight.pacingTokens;
  if (missing <= 0) {
    flight.pacingTime = Infinity;
    return true;
  }
  flight.pacingTime = now + <f64>(missing / pacingRate(c)) + 0.01;
  return false;
}

/** A packet of `size` bytes went out. */
export function onPaced(c: Connection, size: u32): void {
  if (c.flight) flightOf(c).pacingTokens -= <f32>size;
}

/** Returns when the next packet may go, Infinity when pacing delays nothing. */
export function pacingTime(c: Connection): f64 {
  return c.flight ? flightOf(c).pacingTime : Infinity;
}

/** Call when nothing waits for the pacer. */
export function pacingIdle(c: Connection): void {
  if (c.flight) flightOf(c).pacingTime = Infinity;
}
