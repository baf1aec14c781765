/** The module's exports for these bindings (core-as/index.ts), except cipher and hash (aead.ts, hash.ts). */
import type { AeadExports } from './aead.ts';
import type { HashExports } from './hash.ts';

/** u32 and f64 only: an i64 would cost a BigInt per call. bool arrives as 0 or 1. */
export interface CoreExports extends AeadExports, HashExports, Record<string, unknown> {
  readonly memory: WebAssembly.Memory;
  readonly abortLine: WebAssembly.Global;
  readonly abortColumn: WebAssembly.Global;

  abiVersion(): number;
  init(connections: number, streams: number, size: number, streamSegments: number, maxPacketSize: number, connectionWindow: number): number;
  transferAt(): number;
  transferSize(): number;
  receiveAt(): number;
  receiveSize(): number;
  packetOffsetsAt(): number;
  packetLengthsAt(): number;
  resultsAt(): number;
  maxPeerStreams(): number;
  maxPeerMessages(): number;
  maxFirstData(): number;
  limitStreamSegments(segments: number): void;
  releasePacket(offset: number): number;
  moduleStats(): void;
  trap(): void;

  connectionOpen(): number;
  connectionHandle(): number;
  connectionFree(handle: number): void;
  connectionReceive(handle: number, start: number, size: number, path: number, now: number): number;
  connectionTransmit(handle: number, now: number, max: number): number;
  connectionNextTimeout(handle: number): number;
  connectionHandleTimeout(handle: number, now: number): void;
  connectionNextEvent(handle: number): number;
  connectionSetRoute(handle: number, present: number): void;
  connectionResetSize(handle: number, ceiling: number): void;
  connectionAllowSize(handle: number, ceiling: number): void;
  connectionSetKeepAlive(handle: number, interval: number, retryInterval: number, maxRetries: number, now: number): void;
  connectionCompleteReceived(handle: number, now: number): void;
  connectionPing(handle: number): void;
  connectionUpdateKey(handle: number): number;
  connectionClose(handle: number, code: number, length: number, now: number): void;
  connectionCloseReason(handle: number): number;
  connectionSendDatagram(handle: number, length: number): number;
  connectionDatagramSize(handle: number): number;
  connectionDatagramRoom(handle: number): number;
  connectionReadDatagram(handle: number): number;
  connectionStats(handle: number): void;

  connectionAddPath(handle: number, routed: number, portOnly: number, keepInterval: number, now: number): number;
  connectionKeepPath(handle: number, path: number, interval: number, now: number): number;
  connectionProbePath(handle: number, path: number, now: number): number;
  connectionMigrate(handle: number, path: number, now: number): number;
  connectionSetPathRoute(handle: number, path: number): void;
  connectionRemovePath(handle: number, path: number): number;
  connectionEnableIds(handle: number): number;
  connectionIssueId(handle: number): number;
  connectionIds(handle: number): number;
  connectionPathStats(handle: number, path: number): number;
  connectionRest(handle: number): void;
  connectionAllowRest(handle: number, allow: number): void;
  connectionReplacePath(handle: number, routed: number, now: number): number;
  connectionRemoteId(handle: number): void;
  connectionIsThere(handle: number, path: number): number;

  streamOpen(handle: number): number;
  streamWrite(handle: number, id: number, length: number): number;
  streamFinish(handle: number, id: number): void;
  streamReset(handle: number, id: number, code: number): void;
  streamStop(handle: number, id: number, code: number): void;
  streamRead(handle: number, id: number, max: number): number;
  streamRaiseWindow(handle: number, id: number, bytes: number): void;
  streamSetWeight(handle: number, id: number, weight: number): void;
  streamStats(handle: number, id: number): number;
  connectionStreamStats(handle: number): void;
  messageSend(handle: number, length: number): number;
  messageRead(handle: number, id: number): number;
}
