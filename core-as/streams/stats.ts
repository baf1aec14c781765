/** Statistics of streams, computed on demand: from one record, and over all records of a connection. */
import { put } from '../memory/layout';
import { next } from '../memory/list';
import { covered } from '../memory/range-set';
import { Connection } from '../records/connection';
import { ALL_LINK, ackedSet, canReceive, canSend, gapSet, has, isMessage, RESET, Stream } from '../records/stream';
import { bufferedOf } from './buffers';

/** Fills the results with the statistics of one stream; bindings/stats.ts names them in this order. */
export function streamFigures(s: Stream): void {
  put(0, <f64>s.sentHighest);
  put(1, <f64>acknowledged(s));
  put(2, <f64>s.repeated);
  put(3, bufferedOf(s));
  put(4, <f64>left(s.sendLimit, s.sentHighest));
  put(5, s.blocked);
  put(6, <f64>arrived(s));
  put(7, <f64>(s.contiguous - s.readBase));
  put(8, s.window);
  put(9, <f64>s.weight + 1);
}

/**
 * Fills the results with the sums over all streams and messages of a connection; bindings/stats.ts names them in
 * this order.
 */
export function connectionFigures(c: Connection): void {
  let unacknowledged: u64 = 0;
  let missing: u64 = 0;
  let streams: u32 = 0;
  let messages: u32 = 0;
  for (let item = c.allHead; item; item = next(item, ALL_LINK)) {
    const s = changetype<Stream>(item);
    if (isMessage(s)) messages++;
    else streams++;
    if (canSend(s) && !has(s, RESET)) unacknowledged += s.sentHighest - acknowledged(s);
    if (canReceive(s)) missing += s.highest - arrived(s);
  }
  put(0, <f64>c.dataSent);
  put(1, <f64>left(c.dataSent, unacknowledged));
  put(2, c.bytesRepeated);
  put(3, c.buffered);
  put(4, <f64>left(c.dataSendLimit, c.dataSent));
  put(5, <f64>(c.dataReceived - missing));
  put(6, <f64>left(c.dataReceived - missing, c.dataConsumed));
  put(7, c.dataWindow + c.dataLent);
  put(8, streams);
  put(9, messages);
}

/** Bytes of our direction that are acknowledged. */
function acknowledged(s: Stream): u64 {
  return min(s.sendBase, s.sentHighest) + covered(ackedSet(s));
}

/** Bytes of the peer's direction that have arrived, excluding gaps. */
function arrived(s: Stream): u64 {
  return min(s.contiguous + covered(gapSet(s)), s.highest);
}

function left(all: u64, used: u64): u64 {
  return all > used ? all - used : 0;
}
