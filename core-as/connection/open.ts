/**
 * Opens and frees a connection. A handle is the index of its slot.
 *
 * The caller's parameters lie at the start of the transfer area:
 *
 *   0    send key, receive key, send mask key, receive mask key (32 bytes each)
 *   128  our id, the peer's id (8 bytes each)
 *   144  f64 fields, in the order of `P_…` below
 *   480  32 random bytes, for path challenges
 *   512  the Complete packet
 */
import { maskOf } from '../aead/chacha';
import { STATUS_INVALID_ARGUMENT, STATUS_OK, STATUS_OUT_OF_MEMORY } from '../codes.generated';
import { congestionInit } from '../congestion/congestion';
import { releaseModel } from '../congestion/model';
import { releaseDatagrams } from '../datagrams/queue';
import { BOOKKEEPING, CHUNK, releaseChunk, takeChunk } from '../memory/chunks';
import { transfer } from '../memory/layout';
import { discardPreviousKey } from '../packet/key-update';
import { initSize } from '../packet/size';
import { seedChallenges } from '../paths/challenge-data';
import { releasePaths } from '../paths/table';
import { Connection, INITIATOR, receiveKey, SEND_COMPLETE, sendKey, slotOf, ticksOf } from '../records/connection';
import { releaseIds } from '../records/connection-ids';
import { endFlight } from '../records/flight';
import { rttInit } from '../records/rtt';
import { giveBack, takeConnection } from '../records/slab';
import { Stream } from '../records/stream';
import { MIN_DATA_WINDOW } from '../streams/credit';
import { freeStream } from '../streams/lifecycle';
import { MAX_WINDOW, releaseWindow } from '../streams/window';
import { releaseClosing } from './close';
import { drawSkip } from './skip';

const KEYS: usize = 0;
const IDS: usize = 128;
const FIELDS: usize = 144;
const CHALLENGE_SEED: usize = 480;
const COMPLETE: usize = 512;

// Order of the f64 fields, the same as in bindings/parameters.ts.
const P_INITIATOR = 0;
const P_NOW = 1;
const P_SEED = 2;
const P_SIZE = 3;
const P_COMPLETE = 4;
const P_KEEP_INTERVAL = 5;
const P_KEEP_RETRY = 6;
const P_KEEP_MOST = 7;
const P_LOCAL = 8;
const P_REMOTE = 16;
const P_CONGESTION = 24;
const P_CEILING = 25;
const P_RTT = 26;
// … of one end:
const P_IDLE = 0;
const P_UDP = 1;
const P_DATA = 2;
const P_STREAM_DATA = 3;
const P_STREAMS = 4;
const P_MESSAGES = 5;
const P_ACK_DELAY = 6;
const P_DATAGRAM = 7;

/** Handle of the connection that `open` made last. */
export let openedHandle: u32 = 0;

/** Opens a connection from the transfer area, and wipes the keys there. Returns a Status; sets `openedHandle`. */
export function open(): u32 {
  const completeLength = <u32>field(P_COMPLETE);
  seedChallenges(transfer + CHALLENGE_SEED);
  if (completeLength > <u32>CHUNK - 4) return STATUS_INVALID_ARGUMENT;
  const c = takeConnection();
  if (!changetype<usize>(c)) return STATUS_OUT_OF_MEMORY;
  openedHandle = <u32>slotOf(c);
  if (completeLength > 0 && !keepComplete(c, completeLength)) {
    giveBack(c);
    return STATUS_OUT_OF_MEMORY;
  }
  installKeys(c);
  if (field(P_INITIATOR) != 0) c.flags |= INITIATOR;
  // The Complete packet is number 0 of the initiator.
  if (field(P_INITIATOR) != 0) c.nextNumber = 1;
  c.largestAcked = -1;
  c.largestReceived = -1;
  c.random = <u32>field(P_SEED);
  drawSkip(c);
  initSize(c, <u32>field(P_SIZE), <u32>field(P_CEILING), <u32>field(P_REMOTE + P_UDP));
  setTimes(c, field(P_NOW));
  setCredit(c);
  rttInit(c, <f32>field(P_RTT));
  congestionInit(c, <u8>field(P_CONGESTION));
  return STATUS_OK;
}

/** Wipes the keys and gives everything back. */
export function free(c: Connection): void {
  while (c.allHead) freeStream(c, changetype<Stream>(c.allHead));
  endFlight(c);
  releaseModel(c);
  releaseDatagrams(c);
  releasePaths(c);
  releaseIds(c);
  discardPreviousKey(c);
  releaseClosing(c);
  releaseWindow(c);
  if (c.complete) releaseChunk(c.complete, BOOKKEEPING);
  giveBack(c);
}

function installKeys(c: Connection): void {
  const keys = transfer + KEYS;
  memory.copy(sendKey(c), keys, 32);
  memory.copy(receiveKey(c), keys + 32, 32);
  c.localId = load<u64>(transfer + IDS);
  c.remoteId = load<u64>(transfer + IDS + 8);
  c.sendMask = maskOf(keys + 64, c.remoteId);
  c.receiveMask = maskOf(keys + 96, c.localId);
  memory.fill(keys, 0, 128);
}

function keepComplete(c: Connection, length: u32): bool {
  c.complete = takeChunk(BOOKKEEPING);
  if (!c.complete) return false;
  store<u32>(c.complete, length);
  memory.copy(c.complete + 4, transfer + COMPLETE, length);
  c.flags |= SEND_COMPLETE;
  return true;
}

function setTimes(c: Connection, now: f64): void {
  c.ackTime = Infinity;
  c.stateTime = Infinity;
  c.idleSince = now;
  c.keepAliveSince = now;
  c.phaseStart = ticksOf(now);
  const ours = field(P_LOCAL + P_IDLE);
  const theirs = field(P_REMOTE + P_IDLE);
  c.idleTimeout = <u32>(ours == 0 ? theirs : theirs == 0 ? ours : min(ours, theirs));
  c.keepAliveInterval = <u32>field(P_KEEP_INTERVAL);
  c.keepAliveRetry = <u32>field(P_KEEP_RETRY);
  c.keepAliveMost = <u16>field(P_KEEP_MOST);
  c.maxAckDelay = <u16>field(P_LOCAL + P_ACK_DELAY);
  c.peerMaxAckDelay = <u16>field(P_REMOTE + P_ACK_DELAY);
}

function setCredit(c: Connection): void {
  c.dataWindow = max(MIN_DATA_WINDOW, <u32>field(P_LOCAL + P_DATA));
  c.dataReceiveLimit = c.dataWindow;
  c.dataSendLimit = max(<u64>MIN_DATA_WINDOW, <u64>field(P_REMOTE + P_DATA));
  c.initialStreamWindow = min(<u32>field(P_LOCAL + P_STREAM_DATA), MAX_WINDOW);
  c.peerStreamWindow = min(<u32>field(P_REMOTE + P_STREAM_DATA), MAX_WINDOW);
  c.maxStreams = <u16>field(P_LOCAL + P_STREAMS);
  c.maxMessages = <u16>field(P_LOCAL + P_MESSAGES);
  c.peerStreamLimit = c.maxStreams;
  c.peerMessageLimit = c.maxMessages;
  c.streamLimit = <u32>field(P_REMOTE + P_STREAMS);
  c.messageLimit = <u32>field(P_REMOTE + P_MESSAGES);
  c.maxDatagram = <u16>field(P_LOCAL + P_DATAGRAM);
  c.peerMaxDatagram = <u16>field(P_REMOTE + P_DATAGRAM);
}

function field(index: i32): f64 {
  return load<f64>(transfer + FIELDS + ((<usize>index) << 3));
}
