/** Exports about the module as a whole: set-up, addresses in memory, packet slots, statistics. */
import { ABI_VERSION, STATUS_OK } from '../codes.generated';
import { freeChunks, poolTop } from '../memory/chunks';
import { layOut, packetLengths, packetOffsets, receiveSlot, receiveSlotSize, results, transfer } from '../memory/layout';
import { freeSlots, packetSlotsInit } from '../memory/packet-slots';
import { connectionsInit, connectionsOpen } from '../records/slab';
import { byteStreams, ownMessages, peerMessages, tableInit } from '../streams/table';
import { windowsInit } from '../streams/window';

export { limitStreamSegments } from '../memory/chunks';
export { transferSize } from '../memory/layout';
export { releaseSlot as releasePacket } from '../memory/packet-slots';
export { maxPeerMessages, maxPeerStreams } from '../streams/table';
export { maxFirstData } from '../streams/window';

/** Incremented whenever an export, a status code, an event kind or a memory layout changes. */
export function abiVersion(): u32 {
  return ABI_VERSION;
}

/** Lays out memory, once, after the caller has grown it to `size` bytes. Returns a Status. */
export function init(connections: u32, streams: u32, size: u32, streamSegments: u32, maxPacketSize: u32, connectionWindow: u32): u32 {
  const status = layOut(connections, streams, size, streamSegments, maxPacketSize);
  if (status != STATUS_OK) return status;
  packetSlotsInit();
  connectionsInit();
  tableInit();
  windowsInit(connectionWindow);
  return STATUS_OK;
}

export function transferAt(): u32 {
  return <u32>transfer;
}

export function receiveAt(): u32 {
  return <u32>receiveSlot;
}

export function receiveSize(): u32 {
  return <u32>receiveSlotSize;
}

export function packetOffsetsAt(): u32 {
  return <u32>packetOffsets;
}

export function packetLengthsAt(): u32 {
  return <u32>packetLengths;
}

export function resultsAt(): u32 {
  return <u32>results;
}

/** Fills the results: first untouched address; free chunks, slots; connections; byte streams; messages out, in. */
export function moduleStats(): void {
  store<f64>(results, <f64>poolTop());
  store<f64>(results, <f64>freeChunks, 8);
  store<f64>(results, <f64>freeSlots, 16);
  store<f64>(results, <f64>connectionsOpen, 24);
  store<f64>(results, <f64>byteStreams, 32);
  store<f64>(results, <f64>ownMessages, 40);
  store<f64>(results, <f64>peerMessages, 48);
}

/** Traps as a broken invariant would, so that a caller can test its reaction. */
export function trap(): void {
  throw new Error('trap');
}
