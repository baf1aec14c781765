/**
 * Delivery-rate samples (draft-ietf-ccwg-bbr §4.1): the bytes delivered between the sending of a packet and its
 * acknowledgement, divided by the longer of the times for sending and acknowledging it.
 *
 * `rs…` is the sample of the current ACK frame (RS of the draft).
 */
import { Connection } from '../../records/connection';
import { SentPacket } from '../../records/flight';
import { Bbr, bbrOf } from './record';

/** Of the newest packet acknowledged by this frame. */
export let rsHasData: bool = false;
export let rsPriorDelivered: u64 = 0;
export let rsAppLimited: bool = false;
export let rsTxInFlight: f64 = 0;
/** RS.delivered and RS.lost: since that packet was sent. RS.delivery_rate: bytes per ms, 0 = no sample. */
export let rsDelivered: f64 = 0;
export let rsLost: f64 = 0;
export let rsDeliveryRate: f64 = 0;

let sendElapsed: f64 = 0;
let ackElapsed: f64 = 0;
let priorLost: u64 = 0;
let newest: u64 = 0;

/** InitRateSample: an ACK frame begins. */
export function initRateSample(): void {
  rsHasData = false;
  rsPriorDelivered = 0;
  rsAppLimited = false;
  rsTxInFlight = 0;
  rsDelivered = 0;
  rsLost = 0;
  rsDeliveryRate = 0;
}

/** OnPacketSent (§4.1.2.2); the bytes in flight already include the packet. */
export function rateSent(c: Connection, b: Bbr, record: SentPacket, now: f64): void {
  if (c.bytesInFlight == record.size) {
    b.firstSendTime = now;
    b.deliveredTime = now;
  }
  record.sinceFirstSend = <f32>(now - b.firstSendTime);
  record.sinceDelivered = <f32>(now - b.deliveredTime);
  record.delivered = <u32>b.delivered;
  record.lost = <u32>b.lost;
  record.txInFlight = c.bytesInFlight;
  record.appLimited = b.appLimited ? 1 : 0;
}

/** UpdateRateSample (§4.1.2.3): the packet of `record` was acknowledged. */
export function rateAcked(b: Bbr, record: SentPacket, number: u64, now: f64): void {
  b.delivered += record.size;
  b.deliveredTime = now;
  // A Complete packet that went out again keeps its record: the acknowledged copy is unknown.
  if (record.complete > 1) return;
  const isNewest = record.time > b.firstSendTime || (record.time == b.firstSendTime && number > newest);
  if (rsHasData && !isNewest) return;
  rsHasData = true;
  newest = number;
  rsPriorDelivered = whole(b.delivered, record.delivered);
  priorLost = whole(b.lost, record.lost);
  rsAppLimited = record.appLimited != 0;
  rsTxInFlight = <f64>record.txInFlight;
  sendElapsed = <f64>record.sinceFirstSend;
  ackElapsed = now - (record.time - <f64>record.sinceDelivered);
  b.firstSendTime = record.time;
}

/** GenerateRateSample (§4.1.2.3): call when all packets of the frame, and the losses it revealed, are counted. */
export function generateRateSample(c: Connection, b: Bbr): void {
  if (b.appLimited && b.delivered > b.appLimited) b.appLimited = 0;
  if (!rsHasData) return;
  const interval = max(sendElapsed, ackElapsed);
  rsDelivered = <f64>(b.delivered - rsPriorDelivered);
  rsLost = <f64>(b.lost - priorLost);
  if (interval > 0 && interval >= <f64>c.minimumRtt - ROUNDING) rsDeliveryRate = rsDelivered / interval;
}

/** MarkConnectionAppLimited (§4.1.2.4). */
export function markAppLimited(c: Connection): void {
  const b = bbrOf(c);
  b.appLimited = max<u64>(b.delivered + c.bytesInFlight, 1);
}

/** Bytes lost since the packet of `record` was sent. */
export function lostSince(b: Bbr, record: SentPacket): f64 {
  return <f64>(b.lost - whole(b.lost, record.lost));
}

/** The minimum RTT and the times in records are f32. */
const ROUNDING: f64 = 0.001;

/** Restores a counter from its low 32 bits, at most 4 GiB old. */
function whole(counter: u64, low: u32): u64 {
  return counter - <u64>(<u32>counter - low);
}
