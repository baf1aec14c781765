/**
 * When ProbeBW_UP ends because of the queue it builds: our addition to IsTimeToGoDown (draft-ietf-ccwg-bbr §5.3.3.9).
 *
 * The draft stays in UP until three rounds have brought no more bandwidth. On a line that was already full, they leave
 * 190 ms × 0.25 = 47 ms of queue at a round trip of 50 ms, if there is room. But the first acknowledgements of UP's
 * packets already show it: those packets waited longer than earlier ones, and max_bw does not grow. Then we leave, half
 * a round after the first one, with 25 ms.
 *
 * Where the line has become faster, no packet waits. Beside another flow UP takes bandwidth away, max_bw grows, and the
 * draft's three rounds apply: they keep our share.
 */
import { STATE_PROBE_BW_UP } from '../../codes.generated';
import { Connection } from '../../records/connection';
import { PacketsPerAck, QuietRtt, QuietSlack, UpGrowth, UpQueueRounds } from './constants';
import { Bbr, smss } from './record';

/** UP begins. */
export function resetUpQueue(b: Bbr): void {
  b.upBw = b.maxBw;
  b.upRtt = Infinity;
  b.upQueueSince = Infinity;
}

/**
 * Notes whether the packet waited longer than the fastest of this UP. `rtt`: without the peer's delay, ms, negative =
 * no sample.
 */
export function noteUpQueue(c: Connection, b: Bbr, rtt: f64, now: f64): void {
  if (b.state != <u8>STATE_PROBE_BW_UP || rtt < 0) return;
  b.upRtt = min(b.upRtt, rtt);
  const burst = b.maxBw > 0 ? (PacketsPerAck * smss(c)) / b.maxBw : 0;
  const waited = rtt > b.upRtt * QuietRtt + max(QuietSlack, burst / 2);
  b.upQueueSince = waited ? min(b.upQueueSince, now) : Infinity;
}

/** Returns whether UP's additional packets only build a queue. */
export function isUpQueueing(b: Bbr, now: f64): bool {
  return b.maxBw <= b.upBw * UpGrowth && now - b.upQueueSince >= b.upRtt * UpQueueRounds;
}
