/** Records of sent packets, made from staged content (packet/staging.ts). settle.ts acts on their outcome. */
import { onCongestionSent } from '../congestion/congestion';
import { copyStaged } from '../packet/staging';
import { Connection } from '../records/connection';
import { flightOf, newRecord, OUTSTANDING, SKIPPED } from '../records/flight';
import { onTailSent } from './early-copy';

/** The staged packet went out as `number`. Its record (`newRecord`) and the flight exist already. */
export function commitSent(c: Connection, number: u64, size: u32, now: f64): void {
  const record = newRecord(c, number);
  copyStaged(record);
  record.time = now;
  record.size = <u16>size;
  record.state = OUTSTANDING;
  record.path = c.activePath;
  const flight = flightOf(c);
  flight.outstanding++;
  flight.lastEliciting = now;
  onTailSent(flight);
  c.bytesInFlight += size;
  onCongestionSent(c, record, now);
}

/** Skips `number`: a peer that acknowledges it has not received what it acknowledges. */
export function commitSkipped(c: Connection, number: u64): void {
  const record = newRecord(c, number);
  if (changetype<usize>(record)) record.state = SKIPPED;
}
