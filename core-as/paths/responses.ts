/** Waiting responses to PATH_CHALLENGE, at most four; a peer that sends challenges faster is not answered. */
import { Connection } from '../records/connection';
import { MAX_RESPONSES, NO_PATH, pathsOf, responseOf } from '../records/path';

/** Queues a response with `data` for the path of that index, in a full-size datagram or not; dropped when four wait. */
export function queueResponse(c: Connection, data: u64, index: u8, fullSize: bool): void {
  const all = pathsOf(c);
  if (<u32>all.responses >= MAX_RESPONSES) return;
  const place = responseOf(c, all.responses++);
  store<u64>(place, data);
  store<u8>(place, index, 8);
  store<u8>(place, <u8>fullSize, 9);
}

/** Path of the oldest waiting response, NO_PATH = none. */
export function nextResponsePath(c: Connection): u8 {
  return pathsOf(c).responses > 0 ? load<u8>(responseOf(c, 0), 8) : NO_PATH;
}

/** Data and size of the response that `takeResponse` took. */
export let outResponseData: u64 = 0;
export let outResponseFull: bool = false;

/** Takes the oldest response for that path; true when there was one. */
export function takeResponse(c: Connection, index: u8): bool {
  const all = pathsOf(c);
  for (let n: u32 = 0; n < <u32>all.responses; n++) {
    const place = responseOf(c, n);
    if (load<u8>(place, 8) != index) continue;
    outResponseData = load<u64>(place);
    outResponseFull = load<u8>(place, 9) != 0;
    all.responses--;
    memory.copy(place, responseOf(c, n + 1), responseOf(c, all.responses) - place);
    return true;
  }
  return false;
}

/** Drops the responses of a path that is gone. */
export function forgetResponses(c: Connection, index: u8): void {
  while (takeResponse(c, index));
}
