/**
 * Detects within 3 s a path that carries packets one way only, or not at all (PROTOCOL.md §6).
 *
 * From its second probe timeout on, an end reports that to its caller: a route may be dead on this side of the station,
 * where only its channel can restore it. On the second it challenges the active and all warm paths. An initiator that
 * is challenged on a warm path challenges too: the peer may be the only end with something to send. The consequences of
 * answers and silence: migration.ts.
 */
import { Connection, SUSPECTED } from '../records/connection';
import { flightOf } from '../records/flight';
import { CHALLENGING, FREE, FULL_SIZE, is, LEAVING, MOST_PATHS, pathAt, pathsOf } from '../records/path';
import { challenge } from './challenges';
import { checkTime } from './migration';

/** PROTOCOL.md §6 */
const SUSPICIOUS_TIMEOUTS: u32 = 2;

/** Handles the probe timer. */
export function onProbeTimeout(c: Connection, now: f64): void {
  if (!c.flight || flightOf(c).ptoCount < SUSPICIOUS_TIMEOUTS) return;
  c.flags |= SUSPECTED;
  if (c.paths && flightOf(c).ptoCount == SUSPICIOUS_TIMEOUTS) suspect(c, now);
}

/** Checks the liveness of the active path, and whether warm ones could take over. */
export function suspect(c: Connection, now: f64): void {
  if (is(pathAt(c, c.activePath), CHALLENGING) || !hasWarm(c)) return;
  pathsOf(c).checkStart = now;
  for (let i: u8 = 0; i < <u8>MOST_PATHS; i++) {
    if (i == c.activePath || isWarm(c, i)) challenge(c, i, now + checkTime(c, i), now);
  }
}

function hasWarm(c: Connection): bool {
  for (let i: u8 = 0; i < <u8>MOST_PATHS; i++) if (isWarm(c, i)) return true;
  return false;
}

function isWarm(c: Connection, index: u8): bool {
  const p = pathAt(c, index);
  return index != c.activePath && p.state != FREE && is(p, FULL_SIZE) && !is(p, LEAVING);
}
