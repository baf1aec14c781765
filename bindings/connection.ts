/**
 * One connection of a core: the data plane behind four verbs, and its parts: `paths`, `streams` and `messages`. The
 * handshake precedes it, in `protocol/`.
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
 * Every method, those of the parts included, throws LocalError CORE_FAILED once the core has trapped, and INVALID_STATE
 * after `free`.
 */
import type { EventKind } from './codes.generated.ts';
import { CoreMessages } from './connection-messages.ts';
import { CorePaths } from './connection-paths.ts';
import { CoreStreams } from './connection-streams.ts';
import { type CoreHandle, type CoreInternals, call, copyOut, keysOfMasks, MAX_BATCH } from './core-internals.ts';
import { LocalError } from './error.ts';
import type { KeepAlive } from './options.ts';
import { type CoreConnectionStats, type CoreStreamTotals, readStats, readStreamTotals } from './stats.ts';

/** Bytes of a close reason that are kept. */
const MAX_REASON = 512;

/** One connection of a core; the top of this file says which call follows which. */
export class CoreConnection implements CoreHandle {
  /** For the parts. */
  readonly core: CoreInternals;
  readonly handle: number;
  readonly maxUdpPayload: number;
  private freed = false;
  private madePaths: CorePaths | null = null;
  private madeStreams: CoreStreams | null = null;
  private madeMessages: CoreMessages | null = null;

  /** `Core.open` makes connections. */
  constructor(core: CoreInternals, handle: number, maxUdpPayload: number) {
    this.core = core;
    this.handle = handle;
    this.maxUdpPayload = maxUdpPayload;
  }

  /** The paths of the connection, and its ids. */
  get paths(): CorePaths {
    this.madePaths ??= new CorePaths(this);
    return this.madePaths;
  }

  /** The byte streams of the connection. */
  get streams(): CoreStreams {
    this.madeStreams ??= new CoreStreams(this);
    return this.madeStreams;
  }

  /** The messages and datagrams of the connection. */
  get messages(): CoreMessages {
    this.madeMessages ??= new CoreMessages(this);
    return this.madeMessages;
  }

  /** Stream of the event that `nextEvent` returned; until the next call on any connection. */
  get eventStream(): number {
    return this.core.results[0] ?? 0;
  }

  /** Value (a code or a length) of the event that `nextEvent` returned; until the next call on any connection. */
  get eventValue(): number {
    return this.core.results[1] ?? 0;
  }

  /** Path of the packet that `receive` took, UNKNOWN_PATH when there was no room for it; until the next call. */
  get receivedPath(): number {
    return this.core.lastPath;
  }

  /** Path of the packets that `transmit` wrote; until the next call on any connection. */
  get transmitPath(): number {
    return this.core.lastPath;
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
      this.core.lastPath = received - 1;
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
      this.core.lastPath = transmitted >> 8;
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
    const { exports } = this.check();
    try {
      return exports.connectionNextEvent(this.handle) as EventKind;
    } catch (error) {
      throw this.core.trap.caught(error);
    }
  }

  /** Begins a rest: no path carries anything. An authentic packet ends it; RESUMED follows. */
  rest(): void {
    call(this, (exports) => exports.connectionRest(this.handle));
  }

  /** Sets whether it rests (RESTED) instead of ending when keep-alive finds no answer. Default false. */
  allowRest(allow: boolean): void {
    call(this, (exports) => exports.connectionAllowRest(this.handle, allow ? 1 : 0));
  }

  /** Sets keep-alive; null = none. */
  setKeepAlive(keepAlive: KeepAlive | null, now: number): void {
    const { interval, retryInterval, maxRetries } = keepAlive ?? { interval: 0, retryInterval: 0, maxRetries: 0 };
    call(this, (exports) => exports.connectionSetKeepAlive(this.handle, interval, retryInterval, maxRetries, now));
  }

  /** Responder: the Complete packet was verified, or its repetition arrived. It is acknowledged immediately. */
  completeReceived(now: number): void {
    call(this, (exports) => exports.connectionCompleteReceived(this.handle, now));
  }

  /** Sends a PING, which the peer acknowledges. */
  ping(): void {
    call(this, (exports) => exports.connectionPing(this.handle));
  }

  /** Requests our next sending key; false until the peer has confirmed the current one. KEY_UPDATED reports it. */
  updateKey(): boolean {
    return call(this, (exports) => exports.connectionUpdateKey(this.handle)) !== 0;
  }

  /**
   * Closes with an application code (below 2^53) and up to 512 bytes of reason. After the closing period: CLOSED, then
   * DRAINED.
   */
  close(code: number, reason: Uint8Array, now: number): void {
    const { transfer } = this.check();
    const kept = reason.length > MAX_REASON ? reason.subarray(0, MAX_REASON) : reason;
    transfer.set(kept);
    call(this, (exports) => exports.connectionClose(this.handle, code, kept.length, now));
  }

  /** Returns the close reason of the end that closed. */
  closeReason(): Uint8Array {
    return copyOut(
      this.core,
      call(this, (exports) => exports.connectionCloseReason(this.handle)),
    );
  }

  stats(): CoreConnectionStats & CoreStreamTotals {
    call(this, (exports) => exports.connectionStats(this.handle));
    const stats = readStats(this.core.results);
    call(this, (exports) => exports.connectionStreamStats(this.handle));
    return Object.assign(stats, readStreamTotals(this.core.results));
  }

  /** Releases the parts, which are made again at their next use: for a connection that is idle. */
  sweep(): void {
    this.madePaths = null;
    this.madeStreams = null;
    this.madeMessages = null;
  }

  /** Wipes the keys and frees everything, in any state. Safe to call twice, and after a trap. */
  free(): void {
    if (this.freed) return;
    keysOfMasks(this).fill(0);
    if (this.core.trap.failure === null) call(this, (exports) => exports.connectionFree(this.handle));
    this.freed = true;
  }

  check(): CoreInternals {
    this.core.trap.check();
    if (this.freed) throw new LocalError('INVALID_STATE', 'the connection was freed');
    return this.core;
  }
}
