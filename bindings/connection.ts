/**
 * One connection of a core: the data plane behind four verbs. The handshake precedes it, in `protocol/`.
 *
 *   receive        a packet arrived
 *   transmit       writes what to send next; call again until 0
 *   nextTimeout / handleTimeout
 *   nextEvent      call again until NONE
 *
 * Re-poll rules: after `receive`, `handleTimeout` and any call of the application, call `nextEvent` until NONE, then
 * `transmit` until 0, then `nextTimeout`. After packet slots were released, call `transmit` again if it returned 0
 * while slots were short.
 *
 * Every method throws LocalError CORE_FAILED once the core has trapped, and INVALID_STATE after `free`.
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
/** Up to this many bytes, a loop copies faster than making a view and copying from it. */
const SHORT = 96;
const NOTHING = new Uint8Array(0);

/** For `receive`: an address without an index; the second one differs from the active path's by the port only. */
export const UNKNOWN_PATH = 4;
export const UNKNOWN_PORT = 5;

/** One connection of a core; the top of this file says which call follows which. */
export class CoreConnection {
  /** Stream and value (a code or a length) of the last event that `nextEvent` returned. */
  eventStream = 0;
  eventValue = 0;
  /** Path of the last received packet, UNKNOWN_PATH when there was no room for it; of the last transmitted packets. */
  receivedPath = 0;
  transmitPath = 0;
  private readonly core: CoreInternals;
  private readonly handle: number;
  /** The peer's MaxUdpPayload. */
  private readonly maxUdpPayload: number;
  private freed = false;

  /** `Core.open` makes connections. */
  constructor(core: CoreInternals, handle: number, maxUdpPayload: number) {
    this.core = core;
    this.handle = handle;
    this.maxUdpPayload = maxUdpPayload;
  }

  /**
   * Processes a Data packet that lies in `datagram` from `start` on and arrived on the path of index `path`,
   * UNKNOWN_PATH or UNKNOWN_PORT. The bytes are copied. Returns true if the packet is authentic and new: then
   * `receivedPath` is the index of its path. Any other packet is dropped and counted.
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
   * Writes up to `max` packets (32) into slots; returns how many. Until the next call on any connection,
   * `Core.packetOffsets` and `packetLengths` say where they are, and `transmitPath` which path all of them go to; each
   * slot is the caller's until `Core.release`. Returns 0 when there is nothing to send now, or no slot is free.
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

  /** When to call `handleTimeout` (or, for pacing, `transmit`) next, ms; Infinity = no need. */
  nextTimeout(): number {
    const { exports } = this.check();
    try {
      return exports.connectionNextTimeout(this.handle);
    } catch (error) {
      throw this.core.trap.caught(error);
    }
  }

  /** Fires due timers. */
  handleTimeout(now: number): void {
    const { exports } = this.check();
    try {
      exports.connectionHandleTimeout(this.handle, now);
    } catch (error) {
      throw this.core.trap.caught(error);
    }
  }

  /** Returns the next event, NONE when there is none; `eventStream` and `eventValue` hold its fields. */
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

  /** Puts a Route header with this 8-byte id before every packet; null = none. */
  setRoute(route: Uint8Array | null): void {
    const { transfer } = this.check();
    if (route !== null) transfer.set(exactRoute(route));
    this.call((exports) => exports.connectionSetRoute(this.handle, route === null ? 0 : 1));
  }

  /** Restarts small on another path, whose packets may have up to `ceiling` bytes (RFC 8899 §5.3.3). */
  resetPacketSize(ceiling: number): void {
    this.call((exports) => exports.connectionResetSize(this.handle, Math.min(ceiling, this.maxUdpPayload)));
  }

  /** After PATH_CHANGED: allows packets of up to `ceiling` bytes there. Earlier findings about that path stay. */
  allowPacketSize(ceiling: number): void {
    this.call((exports) => exports.connectionAllowSize(this.handle, Math.min(ceiling, this.maxUdpPayload)));
  }

  /** Adds and challenges a path: PATH_VALIDATED or PATH_FAILED follows. Returns its index, -1 without room. */
  addPath(options: PathOptions, now: number): number {
    const { transfer } = this.check();
    const { route, portOnly = false, keepInterval = 0 } = options;
    if (route !== undefined) transfer.set(exactRoute(route));
    return this.call((exports) => exports.connectionAddPath(this.handle, route === undefined ? 0 : 1, portOnly ? 1 : 0, keepInterval, now));
  }

  /** Keeps a path while another is active, challenged every `interval` ms (0 = never). False without such a path. */
  keepPath(path: number, interval: number, now: number): boolean {
    return this.call((exports) => exports.connectionKeepPath(this.handle, path, interval, now)) === Status.OK;
  }

  /** Challenges a path. False when there is no path of that index. */
  probePath(path: number, now: number): boolean {
    return this.call((exports) => exports.connectionProbePath(this.handle, path, now)) === Status.OK;
  }

  /**
   * Initiator: makes a path active once it has answered a challenge. False at the responder, or without such a path.
   */
  migrate(path: number, now: number): boolean {
    return this.call((exports) => exports.connectionMigrate(this.handle, path, now)) === Status.OK;
  }

  /** Makes a path that the peer arrived on a route: its packets get a Route header with this 8-byte id. */
  setPathRoute(path: number, route: Uint8Array): void {
    const { transfer } = this.check();
    transfer.set(exactRoute(route));
    this.call((exports) => exports.connectionSetPathRoute(this.handle, path));
  }

  /** Forgets a path other than the active one. */
  removePath(path: number): boolean {
    return this.call((exports) => exports.connectionRemovePath(this.handle, path)) === Status.OK;
  }

  /** Enables the exchange of connection ids: IDS follows. False when there is no memory for them. */
  enableIds(): boolean {
    const { transfer } = this.check();
    transfer.set(this.keysOfMasks());
    return this.call((exports) => exports.connectionEnableIds(this.handle)) === Status.OK;
  }

  /** Gives the peer another one of our ids (8 bytes) with its reset token (16). False when the peer has its maximum. */
  issueId(id: Uint8Array, resetToken: Uint8Array): boolean {
    const { transfer } = this.check();
    transfer.set(id);
    transfer.set(resetToken, ID_LENGTH);
    return this.call((exports) => exports.connectionIssueId(this.handle)) === Status.OK;
  }

  /** Returns the ids in force, null while there are only the first two. */
  ids(): ConnectionIds | null {
    if (this.call((exports) => exports.connectionIds(this.handle)) !== Status.OK) return null;
    return readIds(this.core.results, (length) => this.copyOut(length));
  }

  /** Returns the statistics of one path, null when there is no path of that index. */
  pathStats(path: number): CorePathStats | null {
    return this.call((exports) => exports.connectionPathStats(this.handle, path)) === 0 ? null : readPathStats(this.core.results);
  }

  /** Whether that path is active and validated, and the peer's newest packets arrive on it. */
  isThere(path: number): boolean {
    return this.call((exports) => exports.connectionIsThere(this.handle, path)) !== 0;
  }

  /** Begins a rest: no path carries anything. An authentic packet ends it; RESUMED follows. */
  rest(): void {
    this.call((exports) => exports.connectionRest(this.handle));
  }

  /** Sets whether it rests (RESTED) instead of ending when keep-alive finds no answer. Default false. */
  allowRest(allow: boolean): void {
    this.call((exports) => exports.connectionAllowRest(this.handle, allow ? 1 : 0));
  }

  /**
   * At rest: redirects the active path, which keeps its ids. It is challenged; RESUMED follows, or PATH_FAILED.
   * @param route 8 bytes, for a path behind a Route header
   * @param ceiling largest packet there
   * @returns false when the connection does not rest
   */
  replacePath(route: Uint8Array | undefined, ceiling: number, now: number): boolean {
    const { transfer } = this.check();
    if (route !== undefined) transfer.set(exactRoute(route));
    if (this.call((exports) => exports.connectionReplacePath(this.handle, route === undefined ? 0 : 1, now)) !== Status.OK) return false;
    this.resetPacketSize(ceiling);
    return true;
  }

  /** Returns the peer's id that our packets on the active path carry. */
  remoteId(): Uint8Array {
    this.call((exports) => exports.connectionRemoteId(this.handle));
    return this.copyOut(ID_LENGTH);
  }

  /** Sets keep-alive; null = none. */
  setKeepAlive(keepAlive: KeepAlive | null, now: number): void {
    const { interval, retryInterval, maxRetries } = keepAlive ?? { interval: 0, retryInterval: 0, maxRetries: 0 };
    this.call((exports) => exports.connectionSetKeepAlive(this.handle, interval, retryInterval, maxRetries, now));
  }

  /** Responder: the Complete packet was verified, or its repetition arrived. It is acknowledged immediately. */
  completeReceived(now: number): void {
    this.call((exports) => exports.connectionCompleteReceived(this.handle, now));
  }

  /** Opens a byte stream; returns its id, -1 at the peer's limit (then STREAMS_AVAILABLE follows) or after a close. */
  openStream(): number {
    return this.call((exports) => exports.streamOpen(this.handle));
  }

  /** Returns how many bytes of `data` were taken, 0 after the stream's end; if too few, wait for STREAM_WRITABLE. */
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

  /** Ends our direction after the written bytes; STREAM_FINISHED when all of them are acknowledged. */
  finishStream(id: number): void {
    this.call((exports) => exports.streamFinish(this.handle, id));
  }

  /** Ends our direction at once and discards what was not sent. Code below 2^53. */
  resetStream(id: number, code: number): void {
    this.call((exports) => exports.streamReset(this.handle, id, code));
  }

  /** Asks the peer to stop sending; later data is discarded, and no further event reports that direction. */
  stopSending(id: number, code: number): void {
    this.call((exports) => exports.streamStop(this.handle, id, code));
  }

  /** Copies bytes to `target`; returns how many, 0 = none yet, -1 = the end was reached (or the stream is gone). */
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

  /**
   * Returns at most `max` bytes as a new array: empty = none yet, null = the end was reached (or the stream is gone).
   */
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

  /** Raises our receive window of the stream to at least `bytes`; from there it grows automatically, up to 3.75 MiB. */
  raiseStreamWindow(id: number, bytes: number): void {
    this.call((exports) => exports.streamRaiseWindow(this.handle, id, bytes));
  }

  /**
   * Sets the weight of our direction among byte streams with something to send, 1 to 256 (default 16): bytes are shared
   * in proportion.
   *
   * @throws LocalError INVALID_ARGUMENT for another number
   */
  setStreamWeight(id: number, weight: number): void {
    this.check();
    if (!Number.isInteger(weight) || weight < 1 || weight > MAX_WEIGHT)
      throw new LocalError('INVALID_ARGUMENT', `a stream's weight is 1 to ${MAX_WEIGHT}, not ${weight}`);
    this.call((exports) => exports.streamSetWeight(this.handle, id, weight));
  }

  /**
   * Queues a message; returns its stream id, -1 when there is no room yet: wait for MESSAGES_WRITABLE.
   *
   * @throws LocalError INVALID_ARGUMENT above 66,560 bytes
   */
  sendMessage(data: Uint8Array): number {
    const { transfer } = this.check();
    if (data.length > MESSAGE_LIMIT)
      throw new LocalError('INVALID_ARGUMENT', `a message has at most ${MESSAGE_LIMIT} bytes, not ${data.length}`);
    transfer.set(data);
    return this.call((exports) => exports.messageSend(this.handle, data.length));
  }

  /**
   * Returns the complete message that a MESSAGE event named; its credit returns to the peer.
   *
   * @throws LocalError INVALID_ARGUMENT when there is no message of that id
   */
  readMessage(id: number): Uint8Array {
    const length = this.call((exports) => exports.messageRead(this.handle, id));
    if (length < 0) throw new LocalError('INVALID_ARGUMENT', `there is no message ${id} to read`);
    return this.copyOut(length);
  }

  /**
   * Queues a datagram; false when it is larger than `datagramSize`, or has no room: the queue is full, memory is short,
   * or the connection rests.
   */
  sendDatagram(data: Uint8Array): boolean {
    const { transfer } = this.check();
    if (data.length > transfer.length) return false;
    transfer.set(data);
    return this.call((exports) => exports.connectionSendDatagram(this.handle, data.length)) !== 0;
  }

  /** Bytes of the largest datagram that a packet carries now and the peer accepts; -1: none. */
  get datagramSize(): number {
    return this.call((exports) => exports.connectionDatagramSize(this.handle));
  }

  /** Number of datagrams that the queue takes now, as far as there is memory. */
  get datagramRoom(): number {
    return this.call((exports) => exports.connectionDatagramRoom(this.handle));
  }

  /**
   * Returns the oldest received datagram.
   *
   * @throws LocalError INVALID_STATE when there is none
   */
  readDatagram(): Uint8Array {
    const length = this.call((exports) => exports.connectionReadDatagram(this.handle)) - 1;
    if (length < 0) throw new LocalError('INVALID_STATE', 'no datagram is waiting');
    return this.copyOut(length);
  }

  /** Sends a PING, which the peer acknowledges. */
  ping(): void {
    this.call((exports) => exports.connectionPing(this.handle));
  }

  /** Requests our next sending key; false until the peer has confirmed the current one. KEY_UPDATED reports it. */
  updateKey(): boolean {
    return this.call((exports) => exports.connectionUpdateKey(this.handle)) !== 0;
  }

  /**
   * Closes with an application code (below 2^53) and up to 512 bytes of reason. After the closing period: CLOSED, then
   * DRAINED.
   */
  close(code: number, reason: Uint8Array, now: number): void {
    const { transfer } = this.check();
    const kept = reason.length > MAX_REASON ? reason.subarray(0, MAX_REASON) : reason;
    transfer.set(kept);
    this.call((exports) => exports.connectionClose(this.handle, code, kept.length, now));
  }

  /** Returns the close reason of the end that closed. */
  closeReason(): Uint8Array {
    return this.copyOut(this.call((exports) => exports.connectionCloseReason(this.handle)));
  }

  stats(): CoreConnectionStats & CoreStreamTotals {
    this.call((exports) => exports.connectionStats(this.handle));
    const stats = readStats(this.core.results);
    this.call((exports) => exports.connectionStreamStats(this.handle));
    return Object.assign(stats, readStreamTotals(this.core.results));
  }

  /** Returns the statistics of a byte stream; null once both directions have ended and their events were fetched. */
  streamStats(id: number): CoreStreamStats | null {
    return this.call((exports) => exports.streamStats(this.handle, id)) === 0 ? null : readStreamStats(this.core.results);
  }

  /** Wipes the keys and frees everything, in any state. Safe to call twice, and after a trap. */
  free(): void {
    if (this.freed) return;
    this.keysOfMasks().fill(0);
    if (this.core.trap.failure === null) this.call((exports) => exports.connectionFree(this.handle));
    this.freed = true;
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

  /** Returns the length, 0 or -1. */
  private readToTransfer(id: number, most: number): number {
    try {
      return this.core.exports.streamRead(this.handle, id, most);
    } catch (error) {
      throw this.core.trap.caught(error);
    }
  }

  private call<T>(action: (exports: CoreInternals['exports']) => T): T {
    const { exports } = this.check();
    try {
      return action(exports);
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
