/** Exports of a connection's paths and ids, by handle and path index. */
import { STATUS_INVALID_ARGUMENT, STATUS_OK, STATUS_OUT_OF_MEMORY } from '../codes.generated';
import { beginRest, replacePath } from '../connection/resting';
import { put, transfer } from '../memory/layout';
import { addPath, keepPath, migrate, outAddedPath, probePath, removePath, setPathRoute } from '../paths/api';
import { isThere } from '../paths/arrival';
import { issueId, roomForIds } from '../paths/local-ids';
import { assignWaiting } from '../paths/remote-ids';
import { MAY_REST } from '../records/connection';
import { ACTIVE_CONNECTION_ID_LIMIT, ensureIds, giveMaskKeys, ID_FREE, localAt, remoteAt, TOKEN, tokenOf } from '../records/connection-ids';
import { FREE, MAX_PATHS, pathAt, VALIDATED } from '../records/path';
import { the } from '../records/slab';

/**
 * Adds a path; `routed`: its route id is the first 8 bytes of the transfer area. Returns its index, -1 when there is no
 * room.
 */
export function connectionAddPath(handle: u32, routed: bool, portOnly: bool, keepInterval: f64, now: f64): i32 {
  const status = addPath(the(handle), routed, routed ? load<u64>(transfer) : 0, portOnly, <u32>keepInterval, now);
  return status == STATUS_OK ? <i32>outAddedPath : -1;
}

export function connectionKeepPath(handle: u32, path: u32, interval: f64, now: f64): u32 {
  return keepPath(the(handle), path, <u32>interval, now);
}

export function connectionProbePath(handle: u32, path: u32, now: f64): u32 {
  return probePath(the(handle), path, now);
}

export function connectionMigrate(handle: u32, path: u32, now: f64): u32 {
  return migrate(the(handle), path, now);
}

/** Makes the path a route; its id is the first 8 bytes of the transfer area. */
export function connectionSetPathRoute(handle: u32, path: u32): void {
  setPathRoute(the(handle), path, load<u64>(transfer));
}

export function connectionRemovePath(handle: u32, path: u32): u32 {
  return removePath(the(handle), path);
}

/** Begins a rest: no path carries anything (connection/resting.ts). */
export function connectionRest(handle: u32): void {
  beginRest(the(handle), false);
}

/** Sets whether the connection rests instead of ending when keep-alive finds no answer. */
export function connectionAllowRest(handle: u32, allow: bool): void {
  const c = the(handle);
  c.flags = allow ? c.flags | MAY_REST : c.flags & ~MAY_REST;
}

/**
 * Replaces the active path of a resting connection; `routed`: its route id is the first 8 bytes of the transfer area.
 */
export function connectionReplacePath(handle: u32, routed: bool, now: f64): u32 {
  return replacePath(the(handle), routed, routed ? load<u64>(transfer) : 0, now);
}

/** Writes the id that packets on the active path carry to the first 8 bytes of the transfer area. */
export function connectionRemoteId(handle: u32): void {
  store<u64>(transfer, the(handle).remoteId);
}

/**
 * Takes the mask keys, send then receive, 32 bytes each, from the transfer area, and wipes them there. From now on ids
 * may be exchanged.
 */
export function connectionEnableIds(handle: u32): u32 {
  const c = the(handle);
  const enough = ensureIds(c);
  if (enough) {
    giveMaskKeys(c, transfer);
    assignWaiting(c);
  }
  memory.fill(transfer, 0, 64);
  return enough ? STATUS_OK : STATUS_OUT_OF_MEMORY;
}

/** Supplies one of our ids: id and reset token (8 and 16 bytes) lie in the transfer area. */
export function connectionIssueId(handle: u32): u32 {
  return issueId(the(handle), transfer);
}

/**
 * Reports the ids. Results: how many more ids the peer may get, how many of our own are in force, how many of the
 * peer's. Transfer area: ours (8 bytes each), then the peer's with their tokens (24 bytes each).
 */
export function connectionIds(handle: u32): u32 {
  const c = the(handle);
  if (!c.ids) return STATUS_INVALID_ARGUMENT;
  let at = transfer;
  let ours: u32 = 0;
  for (let i: u32 = 0; i < ACTIVE_CONNECTION_ID_LIMIT; i++) {
    if (localAt(c, i).state == ID_FREE) continue;
    store<u64>(at, localAt(c, i).id);
    at += 8;
    ours++;
  }
  let theirs: u32 = 0;
  for (let i: u32 = 0; i < ACTIVE_CONNECTION_ID_LIMIT; i++) {
    const record = remoteAt(c, i);
    if (record.state == ID_FREE) continue;
    store<u64>(at, record.id);
    memory.copy(at + 8, tokenOf(changetype<usize>(record)), TOKEN);
    at += 8 + TOKEN;
    theirs++;
  }
  put(0, roomForIds(c));
  put(1, ours);
  put(2, theirs);
  return STATUS_OK;
}

/**
 * Statistics of one path: smoothed and minimum RTT, window, bytes in flight, packets sent and received, bytes sent and
 * received, packet size, whether it is validated. False when there is no path of that index.
 */
export function connectionPathStats(handle: u32, path: u32): bool {
  const c = the(handle);
  const isActive = path == c.activePath;
  if (!isActive && (!c.paths || path >= MAX_PATHS || pathAt(c, path).state == FREE)) return false;
  if (isActive) putRecovery(c.smoothedRtt, c.minimumRtt, c.congestionWindow, c.bytesInFlight, c.packetSize);
  else {
    const p = pathAt(c, path);
    putRecovery(p.smoothedRtt, p.minimumRtt, p.congestionWindow, p.bytesInFlight, p.packetSize);
  }
  if (c.paths) {
    const p = pathAt(c, path);
    putCounters(p.packetsSent, p.packetsReceived, p.bytesSent, p.bytesReceived, p.state == VALIDATED);
  } else putCounters(c.packetsSent, c.packetsReceived, c.bytesSent, c.bytesReceived, true);
  return true;
}

/** Returns whether the peer receives on that path and sends from there (paths/arrival.ts). */
export function connectionIsThere(handle: u32, path: u32): bool {
  return isThere(the(handle), path);
}

function putRecovery(rtt: f32, minimum: f32, window: u32, inFlight: u32, size: u32): void {
  put(0, rtt);
  put(1, minimum);
  put(2, window);
  put(3, inFlight);
  put(8, size);
}

function putCounters(packetsSent: u32, packetsReceived: u32, bytesSent: f64, bytesReceived: f64, validated: bool): void {
  put(4, packetsSent);
  put(5, packetsReceived);
  put(6, bytesSent);
  put(7, bytesReceived);
  put(9, validated ? 1 : 0);
}
