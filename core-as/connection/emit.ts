/**
 * The packets written by the current transmit call: their entries in the tables of memory/layout.ts, and their bytes.
 */
import { packetLengths, packetOffsets } from '../memory/layout';
import { ROUTE_HEADER, writeRoute } from '../packet/header';
import { countSent } from '../paths/amplification';
import { Connection, flagged, ROUTED } from '../records/connection';

export let written: u32 = 0;
export let writtenBytes: u32 = 0;

/** Begins a transmit call. */
export function beginBatch(): void {
  written = 0;
  writtenBytes = 0;
}

/** Enters a finished packet, with its Route header, into the tables; returns its size on the wire. */
export function emit(c: Connection, packet: usize, length: u32): u32 {
  let start = packet;
  let size = length;
  if (flagged(c, ROUTED)) {
    start = writeRoute(packet, c.route);
    size += ROUTE_HEADER;
  }
  store<u32>(packetOffsets + (written << 2), <u32>start);
  store<u32>(packetLengths + (written << 2), size);
  written++;
  writtenBytes += size;
  c.packetsSent++;
  c.bytesSent += <f64>size;
  if (c.paths) countSent(c, size);
  return size;
}
