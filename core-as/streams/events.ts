/** Stream events for the caller. */
import { push } from '../memory/list';
import { at, Connection, EVENTS_LIST } from '../records/connection';
import { address, EVENT_LINK, Stream } from '../records/stream';

/** Raises one of the `ON_…` of records/stream.ts. */
export function raiseEvent(c: Connection, s: Stream, event: u32): void {
  s.events |= event;
  push(at(c) + EVENTS_LIST, address(s), EVENT_LINK);
}
