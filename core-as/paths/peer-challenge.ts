/**
 * PATH_CHALLENGE of the peer (RFC 9000 §8.2.2): answered once, on the path it arrived on, in a full-size datagram if
 * its own was one: the answer then shows that such datagrams pass in this direction, too. A small one keeps a path
 * warm, and its answer costs as little. A path that the peer tries is validated in this direction, too, so that it can
 * be used immediately. An initiator reports one on its active path to its caller: the peer may see it elsewhere, as
 * after its NAT has forgotten the mapping.
 */
import { ROUTE_HEADER } from '../packet/header';
import { CHALLENGED, Connection, flagged, INITIATOR, SEND_PING } from '../records/connection';
import { CHALLENGING, FULL_SIZE, is, NO_PATH, pathAt } from '../records/path';
import { challenge, FULL_DATAGRAM, validationTime } from './challenges';
import { reachedOnStandby } from './failover';
import { queueResponse } from './responses';
import { ensurePaths } from './table';

/** Processes a challenge with `data` on the path of that index, in a packet of `size` bytes. */
export function onChallenge(c: Connection, data: u64, index: u8, size: u32, now: f64): void {
  if (index == NO_PATH || !ensurePaths(c)) return;
  // A Route header may have preceded it.
  const isFull = size >= FULL_DATAGRAM - ROUTE_HEADER;
  queueResponse(c, data, index, isFull);
  // §9.3.3: a non-probing packet shows the peer that we still use this path, in case it was misled.
  const p = pathAt(c, index);
  if (index == c.activePath) {
    c.pending |= SEND_PING;
    if (flagged(c, INITIATOR)) c.flags |= CHALLENGED;
  } else if (!is(p, FULL_SIZE | CHALLENGING)) challenge(c, index, now + validationTime(c, index), now);
  else if (flagged(c, INITIATOR) && p.answeredAt != now) reachedOnStandby(c, index, isFull, now);
}
