/** Path and id events for the caller (connection/events.ts calls this): derived from fields, nothing is queued. */
import { EVENT_IDS, EVENT_NONE, EVENT_PATH_CHANGED, EVENT_PATH_FAILED, EVENT_PATH_VALIDATED } from '../codes.generated';
import { Connection } from '../records/connection';
import { idsOf } from '../records/connection-ids';
import { MAX_PATHS, NEWS_FAILED, NEWS_GONE, NEWS_VALIDATED, pathAt, pathsOf } from '../records/path';
import { maybeReleasePaths } from './table';

/** Path index and value of the event that `nextPathEvent` returned. */
export let outEventPath: u32 = 0;
export let outEventValue: u32 = 0;

export function nextPathEvent(c: Connection): u32 {
  if (c.ids && idsOf(c).news) {
    idsOf(c).news = 0;
    return report(EVENT_IDS, 0, 0);
  }
  if (!c.paths) return EVENT_NONE;
  const reason = pathsOf(c).reason;
  if (reason) {
    pathsOf(c).reason = 0;
    return report(EVENT_PATH_CHANGED, c.activePath, reason);
  }
  for (let i: u32 = 0; i < MAX_PATHS; i++) {
    if (take(c, i, NEWS_VALIDATED)) return report(EVENT_PATH_VALIDATED, i, 0);
    if (take(c, i, NEWS_FAILED)) return report(EVENT_PATH_FAILED, i, 0);
    if (take(c, i, NEWS_GONE)) return report(EVENT_PATH_FAILED, i, 1);
  }
  maybeReleasePaths(c);
  return EVENT_NONE;
}

function take(c: Connection, index: u32, news: u8): bool {
  const p = pathAt(c, index);
  const raised = (p.news & news) != 0;
  p.news &= ~news;
  return raised;
}

function report(kind: u32, path: u32, value: u32): u32 {
  outEventPath = path;
  outEventValue = value;
  return kind;
}
