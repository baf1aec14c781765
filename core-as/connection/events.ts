/**
 * Events for the caller, derived from flags: nothing is queued, so nothing can grow. `nextEvent` clears one flag and
 * fills the two result fields (stream id, value).
 *
 * Order: connection-wide news, paths and ids, streams in the order of their news, datagrams, the end.
 */
import {
  EVENT_CLOSED,
  EVENT_COMPLETED,
  EVENT_CRAMPED,
  EVENT_DATAGRAM,
  EVENT_DRAINED,
  EVENT_KEY_UPDATED,
  EVENT_MESSAGE,
  EVENT_MESSAGES_WRITABLE,
  EVENT_NONE,
  EVENT_PATH_CHALLENGED,
  EVENT_PATH_SUSPECTED,
  EVENT_RESTED,
  EVENT_RESUMED,
  EVENT_STREAM_FINISHED,
  EVENT_STREAM_OPENED,
  EVENT_STREAM_READABLE,
  EVENT_STREAM_RESET,
  EVENT_STREAM_STOPPED,
  EVENT_STREAM_WRITABLE,
  EVENT_STREAMS_AVAILABLE,
  EVENT_TIMED_OUT,
} from '../codes.generated';
import { headLength, queueOf } from '../datagrams/queue';
import { results } from '../memory/layout';
import { head, remove } from '../memory/list';
import { nextPathEvent, outEventPath, outEventValue } from '../paths/events';
import {
  at,
  CHALLENGED,
  Connection,
  CRAMPED,
  CRAMPED_NEWS,
  EVENTS_LIST,
  flagged,
  ON_CLOSED,
  ON_COMPLETED,
  ON_DRAINED,
  ON_MESSAGES,
  ON_RECEIVE_KEY,
  ON_SEND_KEY,
  ON_STREAMS,
  ON_TIMED_OUT,
  RESTED,
  RESUMED,
  SUSPECTED,
} from '../records/connection';
import {
  address,
  EVENT_LINK,
  ON_FINISHED,
  ON_MESSAGE,
  ON_OPENED,
  ON_READABLE,
  ON_RESET,
  ON_STOPPED,
  ON_WRITABLE,
  RECEIVE_DONE,
  Stream,
} from '../records/stream';
import { maybeFree } from '../streams/lifecycle';
import { closeCode } from './close';

/** Returns the kind of the next event, NONE when there is none. */
export function nextEvent(c: Connection): u32 {
  // A peer that refuses the connection acknowledges the Complete in the same packet.
  if (take(c, ON_COMPLETED) && !(c.events & ON_CLOSED)) return report(EVENT_COMPLETED, 0, 0);
  if (take(c, ON_SEND_KEY)) return report(EVENT_KEY_UPDATED, 0, 0);
  if (take(c, ON_RECEIVE_KEY)) return report(EVENT_KEY_UPDATED, 0, 1);
  if (take(c, ON_STREAMS)) return report(EVENT_STREAMS_AVAILABLE, 0, 0);
  if (take(c, ON_MESSAGES)) return report(EVENT_MESSAGES_WRITABLE, 0, 0);
  if (takeFlag(c, SUSPECTED)) return report(EVENT_PATH_SUSPECTED, <f64>c.activePath, 0);
  if (takeFlag(c, CHALLENGED)) return report(EVENT_PATH_CHALLENGED, <f64>c.activePath, 0);
  if (c.paths != 0 || c.ids != 0) {
    const ofPath = nextPathEvent(c);
    if (ofPath) return report(ofPath, <f64>outEventPath, <f64>outEventValue);
  }
  if (takeFlag(c, RESTED)) return report(EVENT_RESTED, 0, 0);
  if (takeFlag(c, RESUMED)) return report(EVENT_RESUMED, 0, 0);
  if (takeFlag(c, CRAMPED_NEWS)) return report(EVENT_CRAMPED, 0, flagged(c, CRAMPED) ? 1 : 0);
  const ofStream = nextStreamEvent(c);
  if (ofStream) return ofStream;
  if (takeUnreportedDatagram(c)) return report(EVENT_DATAGRAM, 0, <f64>headLength(c, false));
  if (take(c, ON_CLOSED)) return report(EVENT_CLOSED, 0, <f64>closeCode(c));
  if (take(c, ON_TIMED_OUT)) return report(EVENT_TIMED_OUT, 0, 0);
  if (take(c, ON_DRAINED)) return report(EVENT_DRAINED, 0, 0);
  return EVENT_NONE;
}

function nextStreamEvent(c: Connection): u32 {
  const list = at(c) + EVENTS_LIST;
  while (head(list)) {
    const s = changetype<Stream>(head(list));
    const kind = streamEvent(s);
    if (s.events == 0) {
      remove(list, address(s), EVENT_LINK);
      maybeFree(c, s);
    }
    if (kind) return kind;
  }
  return EVENT_NONE;
}

function streamEvent(s: Stream): u32 {
  const id = <f64>s.id;
  if (drop(s, ON_OPENED)) return report(EVENT_STREAM_OPENED, id, 0);
  if (drop(s, ON_READABLE)) return report(EVENT_STREAM_READABLE, id, 0);
  if (drop(s, ON_MESSAGE)) return report(EVENT_MESSAGE, id, <f64>s.finalSize);
  if (drop(s, ON_RESET)) {
    s.flags |= RECEIVE_DONE;
    return report(EVENT_STREAM_RESET, id, <f64>s.peerResetCode);
  }
  if (drop(s, ON_STOPPED)) return report(EVENT_STREAM_STOPPED, id, <f64>s.peerStopCode);
  if (drop(s, ON_WRITABLE)) return report(EVENT_STREAM_WRITABLE, id, 0);
  if (drop(s, ON_FINISHED)) return report(EVENT_STREAM_FINISHED, id, 0);
  return EVENT_NONE;
}

function takeUnreportedDatagram(c: Connection): bool {
  if (!c.datagrams) return false;
  const queue = queueOf(c, false);
  if (queue.unreported == 0) return false;
  queue.unreported--;
  return true;
}

function take(c: Connection, event: u8): bool {
  const raised = (c.events & event) != 0;
  c.events &= ~event;
  return raised;
}

function takeFlag(c: Connection, flag: u32): bool {
  if (!flagged(c, flag)) return false;
  c.flags &= ~flag;
  return true;
}

function drop(s: Stream, event: u32): bool {
  const raised = (s.events & event) != 0;
  s.events &= ~event;
  return raised;
}

function report(kind: u32, stream: f64, value: f64): u32 {
  store<f64>(results, stream);
  store<f64>(results, value, 8);
  return kind;
}
