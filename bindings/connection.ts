/**
 * One connection of a core: the data plane behind four verbs. The handshake came before, in `protocol/`.
 *
 *   receive        something arrived
 *   transmit       what to send next; ask again until 0
 *   nextTimeout / handleTimeout
 *   nextEvent      ask again until NONE
 *
 * Re-poll rules: after `receive`, `handleTimeout` and any call of the application, ask `nextEvent` until NONE, then `transmit` until
 * 0, then `nextTimeout`. After packet slots were released, ask `transmit` again if it returned 0 while slots were short.
 *
 * Every method throws LocalError CORE_FAILED once the core trapped, and INVALID_STATE after `free`.
 */
import { EventKind, Status } from './codes.generated.ts';
import { type CoreInternals, MASK_KEYS_LENGTH, MAX_BATCH } from './core-internals.ts';
import { LocalError } from './error.ts';
import { type ConnectionIds, ID_LENGTH, readIds } from './ids.ts';
import { type KeepAlive, MESSAGE_LIMIT, type PathOptions } from './options.ts';
import { type CoreConnectionStats, type CorePathStats, readPathStats, readStats } from './stats.ts';
import { type CoreStreamStats, type CoreStreamTotals, readStreamStats, readStreamTotals } from './stream-stats.ts';

/** Bytes of a route id (PROTOCOL.md §2). */
const ROUTE_ID_LENGTH = 8;
/** Largest weight of a byte stream. */
const MAX_WEIGHT = 256;
/** Bytes of a close reason that are kept. */
const MAX_REASON = 512;
/** Up to so many bytes a loop copies faster than a view is made to copy from. */
const SHORT = 96;
const NOTHING = new Uint8Array(0);

/** For `receive`: the packet came from an address that has no index; the second: it differs from the active path's by the port only. */
export const UNKNOWN_PATH = 4;
export const UNKNOWN_PORT = 5;

/** One connection of a core; see the top of this file for when to call what. */
export class CoreConnection {
  /** Stream and value (a code or a length) of the event that `nextEvent` returned last. */
  eventStream = 0;
  eventValue = 0;
  /** Index of the path that the last received packet came in on, UNKNOWN_PATH when there was no room for it; of that transmit's packets. */
  receivedPath = 0;
  transmitPath = 0;
  private readonly core: CoreInternals;
  private readonly handle: number;
  /** Of the peer. */
  private readonly maxUdpPayload: number;
  private freed = false;

  /** Connections come from `Core.open`. */
  constructor(core: CoreInternals, handle: number, maxUdpPayload: number) {
    this.core = core;
    this.handle = handle;
    this.maxUdpPayload = maxUdpPayload;
  }

  /**
   * A Data packet lies in `datagram` from `start` on, which came in on the path of index `path`, UNKNOWN_PATH or UNKNOWN_PORT. Copied in; true
   * if it is authentic and new: then `receivedPath` is the index of its path. Anything else is dropped and counted.
   */
  receive(datagram: Uint8Array, start: number, now: number, path = 0): boolean {
    const { exports, buffer, receiveAt, receiveSize } = this.check();
    if (datagram.length > receiveSize) return false;
    buffer.set(datagram, receiveAt);
    try {
      const received = exports.connectionReceive(this.handle, start, datagram.length - start, path, now);
      this.receivedPath = received - 1;
      return received !== 0;
    } catch (error) {
      throw this.core.trap.caught(error);
    }
  }

  /**
   * Writes up to `max` packets (32) into slots; returns how many. `Core.packetOffsets` and `packetLengths` say where they are until the
   * next call on any connection, `transmitPath` which path all of them go to; each slot is the caller's until `Core.release`. 0: nothing
   * now, or no slot is free.
   */
  transmit(now: number, max = MAX_BATCH): number {
    const { exports } = this.check();
    try {
      const transmitted = exports.connectionTransmit(this.handle, now, max);
      this.transmitPath = transmitted >> 8;
      return transmitted & 0xff;
    } catch (error) {
      throw this.core.trap.caught(error);
    }
  }

  /** When `handleTimeout` (or, for pacing, `transmit`) is to be called next, ms; Infinity = no need. */
  nextTimeout(): number {
    const { exports } = this.check();
    try {
      return exports.connectionNextTimeout(this.handle);
    } catch (error) {
      throw this.core.trap.caught(error);
    }
  }

  /** Fires the timers that are due. */
  handleTimeout(now: number): void {
    const { exports } = this.check();
    try {
      exports.connectionHandleTimeout(this.handle, now);
    } catch (error) {
      throw this.core.trap.caught(error);
    }
  }

  /** The next event, NONE when there is none; its fields are `eventStream` and `eventValue`. */
  nextEvent(): EventKind {
    const { exports, results } = this.check();
    try {
      const kind = exports.connectionNextEvent(this.handle) as EventKind;
      if (kind !== EventKind.NONE) {
        this.eventStream = results[0] ?? 0;
        this.eventValue = results[1] ?? 0;
      }
      return kind;
    } catch (error) {
      throw this.core.trap.caught(error);
    }
  }

  /** Every packet gets a Route header with this 8-byte id in front; null = none. */
  setRoute(route: Uint8Array | null): void {
    const { exports, transfer } = this.check();
    if (route !== null) transfer.set(exactRoute(route));
    this.call(() => exports.connectionSetRoute(this.handle, route === null ? 0 : 1));
  }

  /** The connection is on another path, whose packets may have up to `ceiling` bytes: they begin small again (RFC 8899 §5.3.3). */
  resetPacketSize(ceiling: number): void {
    const { exports } = this.check();
    this.call(() => exports.connectionResetSize(this.handle, Math.min(ceiling, this.maxUdpPayload)));
  }

  /** After PATH_CHANGED: packets may have up to `ceiling` bytes there. What was found out about that path before stays. */
  allowPacketSize(ceiling: number): void {
    const { exports } = this.check();
    this.call(() => exports.connectionAllowSize(this.handle, Math.min(ceiling, this.maxUdpPayload)));
  }

  /** Adds a path, which is challenged at once: PATH_VALIDATED or PATH_FAILED follows. Its index, -1 when there is no room for one. */
  addPath(options: PathOptions, now: number): number {
    const { exports, transfer } = this.check();
    const { route, portOnly = false, keepInterval = 0 } = options;
    if (route !== undefined) transfer.set(exactRoute(route));
    return this.call(() => exports.connectionAddPath(this.handle, route === undefined ? 0 : 1, portOnly ? 1 : 0, keepInterval, now));
  }

  /** Keeps a path also while another one is active, challenged every `interval` ms (0 = never). False when there is none of that index. */
  keepPath(path: number, interval: number, now: number): boolean {
    const { exports } = this.check();
    return this.call(() => exports.connectionKeepPath(this.handle, path, interval, now)) === Status.OK;
  }

  /** Challenges a path. False when there is none of that index. */
  probePath(path: number, now: number): boolean {
    const { exports } = this.check();
    return this.call(() => exports.connectionProbePath(this.handle, path, now)) === Status.OK;
  }

  /** Initiator: that path becomes the active one, as soon as it has answered a challenge. False at the responder, and without such a path. */
  migrate(path: number, now: number): boolean {
    const { exports } = this.check();
    return this.call(() => exports.connectionMigrate(this.handle, path, now)) === Status.OK;
  }

  /** A path that the peer came in on is a route: its packets get a Route header with this 8-byte id. */
  setPathRoute(path: number, route: Uint8Array): void {
    const { exports, transfer } = this.check();
    transfer.set(exactRoute(route));
    this.call(() => exports.connectionSetPathRoute(this.handle, path));
  }

  /** Forgets a path that is not the active one. */
  removePath(path: number): boolean {
    const { exports } = this.check();
    return this.call(() => exports.connectionRemovePath(this.handle, path)) === Status.OK;
  }

  /** Connection ids may be exchanged from now on: IDS follows. False when there is no memory for them. */
  enableIds(): boolean {
    const { exports, transfer } = this.check();
    transfer.set(this.keysOfMasks());
    return this.call(() => exports.connectionEnableIds(this.handle)) === Status.OK;
  }

  /** Gives the peer a further id of ours (8 bytes) with its reset token (16). False when it has as many as it may. */
  issueId(id: Uint8Array, resetToken: Uint8Array): boolean {
    const { exports, transfer } = this.check();
    transfer.set(id);
    transfer.set(resetToken, ID_LENGTH);
    return this.call(() => exports.connectionIssueId(this.handle)) === Status.OK;
  }

  /** The ids in force, null while there are only the first two. */
  ids(): ConnectionIds | null {
    const { exports, results } = this.check();
    if (this.call(() => exports.connectionIds(this.handle)) !== Status.OK) return null;
    return readIds(results, (length) => this.copyOut(length));
  }

  /** Figures of one path, null when there is none of that index. */
  pathStats(path: number): CorePathStats | null {
    const { exports, results } = this.check();
    return this.call(() => exports.connectionPathStats(this.handle, path)) === 0 ? null : readPathStats(results);
  }

  /** Whether that path is the active one, validated, and the one that the peer's newest packets come in on. */
  isThere(path: number): boolean {
    const { exports } = this.check();
    return this.call(() => exports.connectionIsThere(this.handle, path)) !== 0;
  }

  /** No path carries anything: the connection rests until an authentic packet comes in on the active path, or the peer on another one. RESUMED follows then. */
  rest(): void {
    const { exports } = this.check();
    this.call(() => exports.connectionRest(this.handle));
  }

  /** Whether it rests (RESTED) instead of ending when keep-alive finds no answer. Default false. */
  allowRest(allow: boolean): void {
    const { exports } = this.check();
    this.call(() => exports.connectionAllowRest(this.handle, allow ? 1 : 0));
  }

  /**
   * At rest: the active path leads elsewhere, with the same ids. It is challenged; RESUMED follows, or PATH_FAILED.
   * @param route 8 bytes, for one behind a Route header; @param ceiling largest packet there. False when the connection does not rest
   */
  replacePath(route: Uint8Array | undefined, ceiling: number, now: number): boolean {
    const { exports, transfer } = this.check();
    if (route !== undefined) transfer.set(exactRoute(route));
    if (this.call(() => exports.connectionReplacePath(this.handle, route === undefined ? 0 : 1, now)) !== Status.OK) return false;
    this.resetPacketSize(ceiling);
    return true;
  }

  /** The peer's id that our packets on the active path carry. */
  remoteId(): Uint8Array {
    const { exports } = this.check();
    this.call(() => exports.connectionRemoteId(this.handle));
    return this.copyOut(ID_LENGTH);
  }

  /** Keep-alive from now on; null = none. */
  setKeepAlive(keepAlive: KeepAlive | null, now: number): void {
    const { exports } = this.check();
    const { interval, retryInterval, maxRetries } = keepAlive ?? { interval: 0, retryInterval: 0, maxRetries: 0 };
    this.call(() => exports.connectionSetKeepAlive(this.handle, interval, retryInterval, maxRetries, now));
  }

  /** Responder: the Complete packet verified, or its repetition arrived. It is acknowledged at once. */
  completeReceived(now: number): void {
    const { exports } = this.check();
    this.call(() => exports.connectionCompleteReceived(this.handle, now));
  }

  /** Opens a byte stream: its id, -1 at the peer's limit (then STREAMS_AVAILABLE follows) or after a close. */
  openStream(): number {
    const { exports } = this.check();
    return this.call(() => exports.streamOpen(this.handle));
  }

  /** Bytes of `data` taken; fewer than offered: wait for STREAM_WRITABLE. 0 also for a stream that has ended. */
  writeStream(id: number, data: Uint8Array, start = 0, end = data.length): number {
    const { exports, transfer } = this.check();
    let done = start;
    while (done < end) {
      const part = Math.min(end - done, transfer.length);
      transfer.set(part === data.length ? data : data.subarray(done, done + part));
      const taken = this.written(exports, id, part);
      done += taken;
      if (taken < part) break;
    }
    return done - start;
  }

  /** Ends our direction behind what was written; STREAM_FINISHED when all is acknowledged. */
  finishStream(id: number): void {
    const { exports } = this.check();
    this.call(() => exports.streamFinish(this.handle, id));
  }

  /** Ends our direction at once; what was not sent is thrown away. Code below 2^53. */
  resetStream(id: number, code: number): void {
    const { exports } = this.check();
    this.call(() => exports.streamReset(this.handle, id, code));
  }

  /** Asks the peer to stop sending; whatever still arrives is thrown away, and nothing more is told about that direction. */
  stopSending(id: number, code: number): void {
    const { exports } = this.check();
    this.call(() => exports.streamStop(this.handle, id, code));
  }

  /** Copies bytes to `target`: how many, 0 = none yet, -1 = the end was reached (or the stream is gone). */
  readStream(id: number, target: Uint8Array): number {
    const { transfer, buffer, transferAt } = this.check();
    let done = 0;
    while (done < target.length) {
      const length = this.readToTransfer(id, Math.min(target.length - done, transfer.length));
      if (length <= 0) return done > 0 ? done : length;
      target.set(buffer.subarray(transferAt, transferAt + length), done);
      done += length;
    }
    return done;
  }

  /** The bytes that are there, at most `max`, as an array of their own: empty = none yet, null = the end was reached (or the stream is gone). */
  takeStream(id: number, max: number): Uint8Array | null {
    const { transfer, buffer, transferAt } = this.check();
    const length = this.readToTransfer(id, Math.min(max, transfer.length));
    if (length < 0) return null;
    if (length === 0) return NOTHING;
    const bytes = new Uint8Array(length);
    if (length > SHORT) bytes.set(buffer.subarray(transferAt, transferAt + length));
    else for (let index = 0; index < length; index++) bytes[index] = buffer[transferAt + index]!;
    return bytes;
  }

  /** Our receive window of the stream becomes at least `bytes`, and grows by itself from there, up to 3.75 MiB, as the application reads. */
  raiseStreamWindow(id: number, bytes: number): void {
    const { exports } = this.check();
    this.call(() => exports.streamRaiseWindow(this.handle, id, bytes));
  }

  /**
   * Weight of our direction among the byte streams that have something to send, 1 to 256 (default 16): bytes are shared in proportion.
   *
   * @throws LocalError INVALID_ARGUMENT for another number
   */
  setStreamWeight(id: number, weight: number): void {
    const { exports } = this.check();
    if (!Number.isInteger(weight) || weight < 1 || weight > MAX_WEIGHT)
      throw new LocalError('INVALID_ARGUMENT', `a stream's weight is 1 to ${MAX_WEIGHT}, not ${weight}`);
    this.call(() => exports.streamSetWeight(this.handle, id, weight));
  }

  /**
   * Queues a message; its stream id, -1 when there is no room yet: wait for MESSAGES_WRITABLE.
   *
   * @throws LocalError INVALID_ARGUMENT above 66,560 bytes
   */
  sendMessage(data: Uint8Array): number {
    const { exports, transfer } = this.check();
    if (data.length > MESSAGE_LIMIT)
      throw new LocalError('INVALID_ARGUMENT', `a message has at most ${MESSAGE_LIMIT} bytes, not ${data.length}`);
    transfer.set(data);
    return this.call(() => exports.messageSend(this.handle, data.length));
  }

  /**
   * The whole message that a MESSAGE event named; its credit goes back to the peer.
   *
   * @throws LocalError INVALID_ARGUMENT when there is none of that id
   */
  readMessage(id: number): Uint8Array {
    const { exports } = this.check();
    const length = this.call(() => exports.messageRead(this.handle, id));
    if (length < 0) throw new LocalError('INVALID_ARGUMENT', `there is no message ${id} to read`);
    return this.copyOut(length);
  }

  /** Queues a datagram; false when it fits no packet, the peer takes none, or there is no memory. The oldest queued one may be dropped. */
  sendDatagram(data: Uint8Array): boolean {
    const { exports, transfer } = this.check();
    if (data.length > transfer.length) return false;
    transfer.set(data);
    return this.call(() => exports.connectionSendDatagram(this.handle, data.length)) !== 0;
  }

  /**
   * The oldest datagram received.
   *
   * @throws LocalError INVALID_STATE when there is none
   */
  readDatagram(): Uint8Array {
    const { exports } = this.check();
    const length = this.call(() => exports.connectionReadDatagram(this.handle)) - 1;
    if (length < 0) throw new LocalError('INVALID_STATE', 'no datagram is waiting');
    return this.copyOut(length);
  }

  /** Asks the peer for an acknowledgement. */
  ping(): void {
    const { exports } = this.check();
    this.call(() => exports.connectionPing(this.handle));
  }

  /** Asks for our next sending key, soon; false when the peer has not confirmed the current one. KEY_UPDATED tells. */
  updateKey(): boolean {
    const { exports } = this.check();
    return this.call(() => exports.connectionUpdateKey(this.handle)) !== 0;
  }

  /** Closes with an application code (below 2^53) and up to 512 bytes of reason. After the closing period: CLOSED, then DRAINED. */
  close(code: number, reason: Uint8Array, now: number): void {
    const { exports, transfer } = this.check();
    const kept = reason.length > MAX_REASON ? reason.subarray(0, MAX_REASON) : reason;
    transfer.set(kept);
    this.call(() => exports.connectionClose(this.handle, code, kept.length, now));
  }

  /** The reason given with the close, by whichever end. */
  closeReason(): Uint8Array {
    const { exports } = this.check();
    return this.copyOut(this.call(() => exports.connectionCloseReason(this.handle)));
  }

  stats(): CoreConnectionStats & CoreStreamTotals {
    const { exports, results } = this.check();
    this.call(() => exports.connectionStats(this.handle));
    const stats = readStats(results);
    this.call(() => exports.connectionStreamStats(this.handle));
    return Object.assign(stats, readStreamTotals(results));
  }

  /** Figures of a byte stream; null once both directions are over and told. */
  streamStats(id: number): CoreStreamStats | null {
    const { exports, results } = this.check();
    return this.call(() => exports.streamStats(this.handle, id)) === 0 ? null : readStreamStats(results);
  }

  /** Wipes the keys and gives everything back, whatever the state. Safe to call twice, and after a trap. */
  free(): void {
    if (this.freed) return;
    this.freed = true;
    this.keysOfMasks().fill(0);
    if (this.core.trap.failure === null) this.call(() => this.core.exports.connectionFree(this.handle));
  }

  private keysOfMasks(): Uint8Array {
    const at = this.handle * MASK_KEYS_LENGTH;
    return this.core.maskKeys.subarray(at, at + MASK_KEYS_LENGTH);
  }

  private check(): CoreInternals {
    this.core.trap.check();
    if (this.freed) throw new LocalError('INVALID_STATE', 'the connection was freed');
    return this.core;
  }

  // Without a closure, as these run for every piece of data.

  private written(exports: CoreInternals['exports'], id: number, length: number): number {
    try {
      return exports.streamWrite(this.handle, id, length);
    } catch (error) {
      throw this.core.trap.caught(error);
    }
  }

  /** Length, 0 or -1. */
  private readToTransfer(id: number, most: number): number {
    try {
      return this.core.exports.streamRead(this.handle, id, most);
    } catch (error) {
      throw this.core.trap.caught(error);
    }
  }

  private call<T>(action: () => T): T {
    try {
      return action();
    } catch (error) {
      throw this.core.trap.caught(error);
    }
  }

  private copyOut(length: number): Uint8Array {
    const bytes = new Uint8Array(length);
    bytes.set(this.core.transfer.subarray(0, length));
    return bytes;
  }
}

function exactRoute(route: Uint8Array): Uint8Array {
  if (route.length !== ROUTE_ID_LENGTH)
    throw new LocalError('INVALID_ARGUMENT', `a route id has ${ROUTE_ID_LENGTH} bytes, not ${route.length}`);
  return route;
}
