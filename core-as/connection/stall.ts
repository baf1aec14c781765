/**
 * A receiver whose incoming bytes have stopped sends one PING (docs/transport.md §6).
 *
 * An end that only receives has nothing in flight, so no probe timeout of its own shows that packets no longer arrive.
 * When its NAT rebinds it while it owes no acknowledgement, the peer sends to an address that no longer leads anywhere,
 * and only a packet from here can carry the new one. The probe timeout repeats the PING like any other frame, which
 * also detects a dead path or route (paths/failover.ts). RFC 9000 §10.1.2 leaves it to an endpoint to test the path
 * with a PING; Chromium's QUIC does so after 200 ms of an open stream.
 *
 * A peer that merely has nothing to send for the moment costs two small packets, at most once in MIN_BYTES.
 */
import { datagramBytes, forgetDatagramBytes } from '../datagrams/queue';
import { next } from '../memory/list';
import { Connection, SEND_PING } from '../records/connection';
import { flightOf } from '../records/flight';
import { probeTimeout } from '../records/rtt';
import { ALL_LINK, canReceive, has, PEER_RESET, RECEIVE_DONE, Stream } from '../records/stream';

/** Our constant: bytes that must have arrived since the last such PING. PING and ACK are some 150 bytes: 1 % of it. */
const MIN_BYTES: u32 = 16_384;

/**
 * Our constant: time after the last packet, in probe timeouts. The peer's own probe, and its repetition, would have
 * arrived by then.
 */
const TIMEOUTS: f64 = 3;

/** Returns when the PING is due, Infinity when nothing is expected or a probe timeout is armed anyway. */
export function stallTime(c: Connection): f64 {
  if (streamBytes(c) < MIN_BYTES && datagramBytes(c) < MIN_BYTES) return Infinity;
  if (c.flight && flightOf(c).outstanding > 0) return Infinity;
  return c.idleSince + TIMEOUTS * probeTimeout(c);
}

/** Queues the PING. */
export function onStall(c: Connection): void {
  if (datagramBytes(c) >= MIN_BYTES || isInTheMiddle(c)) c.pending |= SEND_PING;
  c.askedAt = kibibytes(c);
  forgetDatagramBytes(c);
}

/**
 * Bytes of streams and messages received since then, in units of 1 KiB; beyond 64 MiB it wraps to 0, which only delays
 * the PING.
 */
function streamBytes(c: Connection): u32 {
  return (<u32>(kibibytes(c) - c.askedAt)) << 10;
}

function kibibytes(c: Connection): u16 {
  return <u16>(c.dataReceived >> 10);
}

/** Returns whether a stream or message has begun to arrive but has not ended. */
function isInTheMiddle(c: Connection): bool {
  for (let item = c.allHead; item; item = next(item, ALL_LINK)) {
    const s = changetype<Stream>(item);
    if (canReceive(s) && s.highest > 0 && s.contiguous < s.finalSize && !has(s, PEER_RESET | RECEIVE_DONE)) return true;
  }
  return false;
}
