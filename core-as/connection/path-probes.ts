/**
 * Packets that validate paths: PATH_RESPONSE and PATH_CHALLENGE, each on its path, outside of congestion control,
 * expanded to 1,200 bytes unless the anti-amplification limit forbids that (RFC 9000 §8.2.1, §8.2.2) or they only keep
 * a path warm. Lost ones are not repeated: challenges have their own timer.
 *
 * Each such packet records its path, so that an acknowledgement that arrived over a faster path does not make packets
 * of the active path look late.
 */
import { PATH_CHALLENGE, PATH_RESPONSE } from '../frames/types';
import { writeVarint } from '../frames/varint';
import { releaseSlot, takeSlot } from '../memory/packet-slots';
import { HEADER, OVERHEAD, ROUTE_HEADER } from '../packet/header';
import { protect } from '../packet/protection';
import { allowance } from '../paths/amplification';
import { challengeData } from '../paths/challenge-data';
import { challengeDue, FULL_DATAGRAM, noteChallenge } from '../paths/challenges';
import { forgetResponses, nextResponsePath, outResponseData, outResponseFull, takeResponse } from '../paths/responses';
import { setAddress } from '../paths/switch';
import { maybeReleasePaths } from '../paths/table';
import { Connection } from '../records/connection';
import { flightIsFull, newRecord, UNTRACKED } from '../records/flight';
import { FREE, is, MAX_PATHS, NEEDS_ID, NO_PATH, ON_ROUTE, pathAt, SMALL } from '../records/path';
import { emit } from './emit';

/** Type and data. */
const FRAME: usize = 9;

/** Writes one packet for the path that is due first; returns its index, NO_PATH when none is. */
export function transmitProbe(c: Connection, now: f64): u8 {
  for (;;) {
    const index = nextPath(c, now);
    if (index == NO_PATH) {
      maybeReleasePaths(c);
      return NO_PATH;
    }
    const p = pathAt(c, index);
    if (p.state == FREE || is(p, NEEDS_ID) || allowance(p) < <f64>(OVERHEAD + ROUTE_HEADER + <u32>FRAME)) {
      forgetResponses(c, index);
      continue;
    }
    return !flightIsFull(c) && write(c, index, now) ? index : NO_PATH;
  }
}

function nextPath(c: Connection, now: f64): u8 {
  const owed = nextResponsePath(c);
  if (owed != NO_PATH) return owed;
  for (let i: u8 = 0; i < <u8>MAX_PATHS; i++) if (pathAt(c, i).state != FREE && challengeDue(pathAt(c, i), now)) return i;
  return NO_PATH;
}

function write(c: Connection, index: u8, now: f64): bool {
  const packet = takeSlot();
  if (!packet) return false;
  const p = pathAt(c, index);
  const room = min(allowance(p), <f64>FULL_DATAGRAM);
  const overhead = OVERHEAD + (is(p, ON_ROUTE) ? ROUTE_HEADER : 0);
  const start = packet + HEADER;
  const limit = start + <usize>room - overhead;
  let end = start;
  const mayBeFull = room == <f64>FULL_DATAGRAM;
  let isFull = false;
  while (end + FRAME <= limit && takeResponse(c, index)) {
    isFull = isFull || (mayBeFull && outResponseFull);
    end = writeFrame(end, PATH_RESPONSE, outResponseData);
  }
  if (end + FRAME <= limit && challengeDue(p, now)) {
    const data = challengeData();
    isFull = isFull || (mayBeFull && !is(p, SMALL));
    end = writeFrame(end, PATH_CHALLENGE, data);
    noteChallenge(c, index, data, isFull, now);
  }
  if (end == start) {
    releaseSlot(packet);
    return false;
  }
  if (isFull) {
    memory.fill(end, 0, limit - end);
    end = limit;
  }
  send(c, packet, <u32>(end - start), index);
  return true;
}

/** Sends with the addressing of that path, and restores the active one's. */
function send(c: Connection, packet: usize, length: u32, index: u8): void {
  const number = c.nextNumber++;
  if (c.flight) {
    const record = newRecord(c, number);
    if (changetype<usize>(record)) {
      record.state = UNTRACKED;
      record.path = index;
    }
  }
  const active = c.activePath;
  const flags = c.flags;
  const route = c.route;
  const remoteId = c.remoteId;
  const sendMask = c.sendMask;
  if (index != active) {
    c.activePath = index;
    setAddress(c, pathAt(c, index));
  }
  emit(c, packet, protect(c, packet, length, number));
  c.activePath = active;
  c.flags = flags;
  c.route = route;
  c.remoteId = remoteId;
  c.sendMask = sendMask;
}

function writeFrame(to: usize, type: u64, data: u64): usize {
  const at = writeVarint(to, type);
  store<u64>(at, data);
  return at + 8;
}
