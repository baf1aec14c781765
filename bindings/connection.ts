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
import { EventKind } from './codes.generated.ts';
import { type CoreInternals, MAX_BATCH } from './core-internals.ts';
import { LocalError } from './error.ts';
import { type KeepAlive, MESSAGE_LIMIT } from './options.ts';
import { type CoreConnectionStats, readStats } from './stats.ts';
import { type CoreStreamStats, type CoreStreamTotals, readStreamStats, readStreamTotals } from './stream-stats.ts';

/** Bytes of a route id (PROTOCOL.md §2). */
const ROUTE_ID_LENGTH = 8;
/** Largest weight of a byte stream. */
const MAX_WEIGHT = 256;
/** Bytes of a close reason that are kept. */
const MAX_REASON = 512;

/** One connection of a core; see the top of this file for when to call what. */
export class CoreConnection {
  /** Stream and value (a code or a length) of the event that `nextEvent` returned last. */
  eventStream = 0;
  eventValue = 0;
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
   * A Data packet lies in `datagram` from `start` on. Copied in; true if it is authentic and new. Anything else is dropped and counted.
   */
  receive(datagram: Uint8Array, start: number, now: number): boolean {
    const { exports, buffer, receiveAt, receiveSize } = this.check();
    if (datagram.length > receiveSize) return false;
    buffer.set(datagram, receiveAt);
    try {
      return exports.connectionReceive(this.handle, start, datagram.length - start, now) !== 0;
    } catch (error) {
      throw this.core.trap.caught(error);
    }
  }

  /**
   * Writes up to `max` packets (32) into slots; returns how many. `Core.packetOffsets` and `packetLengths` say where they are until the
   * next call on any connection; each slot is the caller's until `Core.release`. 0: nothing now, or no slot is free.
   */
  transmit(now: number, max = MAX_BATCH): number {
    const { exports } = this.check();
    try {
      return exports.connectionTransmit(this.handle, now, max);
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
    if (route !== null && route.length !== ROUTE_ID_LENGTH)
      throw new LocalError('INVALID_ARGUMENT', `a route id has ${ROUTE_ID_LENGTH} bytes, not ${route.length}`);
    if (route !== null) transfer.set(route);
    this.call(() => exports.connectionSetRoute(this.handle, route === null ? 0 : 1));
  }

  /** The connection is on another path, whose packets may have up to `ceiling` bytes: they begin small again (RFC 8899 §5.3.3). */
  resetPacketSize(ceiling: number): void {
    const { exports } = this.check();
    this.call(() => exports.connectionResetSize(this.handle, Math.min(ceiling, this.maxUdpPayload)));
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
      const taken = this.call(() => exports.streamWrite(this.handle, id, part));
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
    const { exports, transfer, buffer, transferAt } = this.check();
    let done = 0;
    while (done < target.length) {
      const length = this.call(() => exports.streamRead(this.handle, id, Math.min(target.length - done, transfer.length)));
      if (length <= 0) return done > 0 ? done : length;
      target.set(buffer.subarray(transferAt, transferAt + length), done);
      done += length;
    }
    return done;
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
    if (this.core.trap.failure === null) this.call(() => this.core.exports.connectionFree(this.handle));
  }

  private check(): CoreInternals {
    this.core.trap.check();
    if (this.freed) throw new LocalError('INVALID_STATE', 'the connection was freed');
    return this.core;
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
