/**
 * Decides how late a packet may be before it counts as lost (RFC 9002 §6.1), and handles one that arrives after it was
 * given up.
 *
 *   isLost         three packets or an eighth of a round trip behind acknowledged ones; where a path reorders further,
 *                  time alone
 *   rememberLost   keeps the most recent packets that were declared lost, 16 bytes each
 *   findSpurious   an ACK names one of them: the time window grows to that packet's delay, at most one round trip. Once
 *                  all losses of an episode have arrived, the congestion controller takes back its response (RFC 9438
 *                  §4.9.2)
 *
 * The window halves after 16 episodes without such a packet (that of RFC 8985 §6.2 returns to its minimum at once);
 * below its minimum the thresholds of RFC 9002 apply again. A number skipped on purpose, one in some 540, counts for
 * the packet threshold (RFC 9002 §A.10 assumes that there are none). The packet's content goes out a second time: its
 * record is gone.
 */
import { onLossUndone, onSpuriousLoss } from '../congestion/congestion';
import { Connection } from '../records/connection';
import { flightOf, lostPacketOf, MAX_LOST, SentPacket } from '../records/flight';
import { GRANULARITY } from '../records/rtt';
import { takeBackLoss } from './path-loss';

// RFC 9002 §6.1.1, §6.1.2
const PACKET_THRESHOLD: i64 = 3;
const TIME_THRESHOLD: f64 = 9.0 / 8.0;

/** RFC 8985 §6.2, step 4: episodes for which a wider window is kept. */
const REORDERING_EPISODES: u8 = 16;

/**
 * Our constants: `reorderWindow` counts in these parts of a round trip; its minimum is what TIME_THRESHOLD allows
 * anyway.
 */
const PARTS: f64 = 64;
const MIN_PARTS: f64 = (TIME_THRESHOLD - 1) * PARTS;
/** Our constant: the next packet may be later than the measured one. */
const MARGIN: f64 = 1.25;

/** Time from sending after which a packet is lost, once a later one is acknowledged; ms. */
export function lossDelay(c: Connection): f64 {
  const parts = max(<f64>c.reorderWindow, MIN_PARTS);
  return max(roundTrip(c) * (1 + parts / PARTS), <f64>GRANULARITY);
}

/** Returns whether packet `number`, not above the largest acknowledged, counts as lost; `delay` from `lossDelay`. */
export function isLost(c: Connection, record: SentPacket, number: u64, delay: f64, now: f64): bool {
  if (c.reorderWindow == 0 && c.largestAcked - <i64>number >= PACKET_THRESHOLD) return true;
  return now - record.time >= delay - 0.001;
}

/** Begins an episode of loss: packets sent before it belong to it. */
export function beginEpisode(c: Connection, now: f64): void {
  const flight = flightOf(c);
  flight.episodeStart = now;
  flight.episode++;
  flight.unconfirmed = 0;
  if (c.reorderWindow == 0) return;
  if (c.reorderEpisodes > 1) {
    c.reorderEpisodes--;
    return;
  }
  c.reorderEpisodes = REORDERING_EPISODES;
  c.reorderWindow = <f64>c.reorderWindow > MIN_PARTS ? <u8>max(<f64>c.reorderWindow / 2, MIN_PARTS) : 0;
}

/** Records packet `number`, declared lost in the current episode. */
export function rememberLost(c: Connection, number: u64, time: f64, size: u32): void {
  const flight = flightOf(c);
  const lost = lostPacketOf(flight, flight.lostNext++ % MAX_LOST);
  lost.time = time;
  lost.number = <u32>number;
  lost.size = <u16>size;
  lost.episode = flight.episode;
  lost.isKept = 1;
  flight.unconfirmed++;
}

/** Finds the lost packets among the numbers from `low` to `high` of an ACK frame. */
export function findSpurious(c: Connection, low: u64, high: u64, now: f64): void {
  const flight = flightOf(c);
  const count = min(flight.lostNext, MAX_LOST);
  for (let i: u32 = 0; i < count; i++) {
    const lost = lostPacketOf(flight, i);
    if (!lost.isKept || <u64>(lost.number - <u32>low) > high - low) continue;
    lost.isKept = 0;
    c.packetsLost--;
    widen(c, now - lost.time);
    takeBackLoss(c);
    onSpuriousLoss(c, lost.size);
    if (lost.episode == flight.episode && flight.unconfirmed > 0 && --flight.unconfirmed == 0) onLossUndone(c);
  }
}

/** Widens the window for a packet that took `time` to be acknowledged. */
function widen(c: Connection, time: f64): void {
  const rtt = max(roundTrip(c), 0.01);
  const parts = max((MARGIN * (time - rtt) * PARTS) / rtt, MIN_PARTS);
  c.reorderWindow = <u8>max(<f64>c.reorderWindow, min(Math.ceil(parts), PARTS));
  c.reorderEpisodes = REORDERING_EPISODES;
}

function roundTrip(c: Connection): f64 {
  return <f64>max(flightOf(c).latestRtt, c.smoothedRtt);
}
