/**
 * PATH_CHALLENGE of the peer (RFC 9000 §8.2.2): answered once, on the path it came in on. At most four answers wait; a peer that asks
 * faster is not answered. A path that the peer tries is validated in this direction, too: then it can be used at once.
 */
import { Connection, flagged, INITIATOR, SEND_PING } from "../records/connection";
import { CHALLENGING, FULL_SIZE, is, MOST_RESPONSES, NO_PATH, pathAt, pathsOf, responseOf } from "../records/path";
import { suspect } from "./failover";
import { ensurePaths } from "./table";
import { challenge, validationTime } from "./validation";

/** A challenge with `data` came in on the path of that index. */
export function onChallenge(c: Connection, data: u64, index: u8, now: f64): void {
  if (index == NO_PATH || !ensurePaths(c)) return;
  const all = pathsOf(c);
  if (<u32>all.responses < MOST_RESPONSES) {
    const place = responseOf(c, all.responses++);
    store<u64>(place, data);
    store<u8>(place, index, 8);
  }
  // §9.3.3: what is no probe shows the peer that this path is still ours, should it have been led away from it.
  const p = pathAt(c, index);
  if (index == c.activePath) c.pending |= SEND_PING;
  else if (!is(p, FULL_SIZE | CHALLENGING)) challenge(c, index, now + validationTime(c, index), now);
  else if (flagged(c, INITIATOR) && p.answeredAt != now) suspect(c, now);
}

/** Path of the oldest answer that waits, NO_PATH = none. */
export function nextResponsePath(c: Connection): u8 {
  return pathsOf(c).responses > 0 ? load<u8>(responseOf(c, 0), 8) : NO_PATH;
}

/** Takes the oldest answer for that path out: true when there was one; its data is `takenData`. */
export let takenData: u64 = 0;
export function takeResponse(c: Connection, index: u8): bool {
  const all = pathsOf(c);
  for (let n: u32 = 0; n < <u32>all.responses; n++) {
    const place = responseOf(c, n);
    if (load<u8>(place, 8) != index) continue;
    takenData = load<u64>(place);
    all.responses--;
    memory.copy(place, responseOf(c, n + 1), responseOf(c, all.responses) - place);
    return true;
  }
  return false;
}

/** Answers for a path that is gone are not given. */
export function forgetResponses(c: Connection, index: u8): void {
  while (takeResponse(c, index));
}
