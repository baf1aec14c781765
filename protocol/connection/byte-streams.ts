/**
 * The preface of byte streams (PROTOCOL.md §5): the opener's direction begins with the port (u32, network byte order),
 * the acceptor's with one zero byte. Both are part of the stream, so they arrive in order.
 *
 *   opener    open → port written → waits for the zero byte → accepted
 *   acceptor  opened by the peer → port read → offered to the application → accepted: zero byte written, window raised
 *
 * The opener may write its data immediately, up to the initial window: it then leaves with the preface, and may end its
 * direction too. A stream that is not accepted within 30 s is reset, one over the limit immediately. Once accepted, a
 * stream costs at most one map look-up here. Messages are not here.
 */
import { type CoreStreamStats, type CoreStreams, EventKind } from '../../bindings/index.ts';
import { LocalError, StreamCode } from '../errors/index.ts';
import { u32, writeU32 } from '../packet/index.ts';
import type { Lifecycle } from './lifecycle.ts';
import type { ConnectionOwner, StreamLimits } from './owner.ts';

/** Milliseconds that an offered stream waits for acceptance (PROTOCOL.md §5). */
export const ACCEPT_TIMEOUT = 30_000;
const PORT_LENGTH = 4;
const MAX_PORT = 0xffff_ffff;
const ACCEPTANCE = Uint8Array.of(0);
const NOTHING = new Uint8Array(0);

/** A stream that we opened and that is not accepted yet. */
interface Opening {
  /** Bytes of the preface that the core has not accepted yet. */
  preface: Uint8Array;
  /** Our direction ends after the preface. */
  finish: boolean;
}

/** A stream that the peer opened, until both directions have ended. */
interface Incoming {
  state: 'preface' | 'offered' | 'accepting' | 'open';
  readonly port: Uint8Array;
  received: number;
  deadline: number;
  sendEnded: boolean;
  receiveEnded: boolean;
}

/** The part `streams` of a connection: its byte streams, with the preface on top of the core's. */
export class ByteStreams {
  readonly #core: CoreStreams;
  readonly #limits: StreamLimits;
  readonly #accepts: boolean;
  readonly #owner: ConnectionOwner;
  readonly #life: Lifecycle;
  readonly #opening = new Map<number, Opening>();
  readonly #incoming = new Map<number, Incoming>();
  readonly #byte = new Uint8Array(1);
  /** Deadline of the oldest unaccepted stream, or earlier; recomputed when it passes. */
  #deadline = Number.POSITIVE_INFINITY;

  constructor(core: CoreStreams, life: Lifecycle, limits: StreamLimits, accepts: boolean) {
    this.#core = core;
    this.#owner = life.owner;
    this.#life = life;
    this.#limits = limits;
    this.#accepts = accepts;
    life.atEnd = () => this.#clear();
  }

  /** True when no stream is in its preface and the peer has none open: another instance may take over. */
  get isIdle(): boolean {
    return this.#opening.size === 0 && this.#incoming.size === 0;
  }

  /**
   * Opens a byte stream to a port (u32; from 0x80000000 on ephemeral). Data written before the event `accepted`, up to
   * the peer's initial window, leaves with the opening. Returns its id, or -1 at the peer's limit: wait for
   * `streams-available`.
   */
  open(port: number): number {
    if (!Number.isInteger(port) || port < 0 || port > MAX_PORT) throw new LocalError('INVALID_ARGUMENT', `${port} is not a stream port`);
    this.#owner.touched();
    const id = this.#core.open();
    if (id < 0) return -1;
    const preface = new Uint8Array(PORT_LENGTH);
    writeU32(preface, 0, port);
    const opening = { preface, finish: false };
    this.#opening.set(id, opening);
    // The peer sends nothing before it accepts, so the credit for that can go with the opening.
    this.#core.raiseWindow(id, this.#limits.window);
    this.#writePreface(id, opening);
    return id;
  }

  /** Accepts a stream that the event `stream` offered. */
  accept(id: number): void {
    this.#owner.touched();
    const stream = this.#incoming.get(id);
    if (stream?.state !== 'offered') return;
    stream.state = 'accepting';
    this.#writeAcceptance(id, stream);
    this.#owner.eventful();
  }

  /** Refuses it; `code` is a StreamCode. */
  refuse(id: number, code: number): void {
    this.stop(id, code);
    this.reset(id, code);
  }

  /** Writes data[start, end) and returns the number of bytes accepted. If fewer than given: wait for `writable`. */
  write(id: number, data: Uint8Array, start = 0, end = data.length): number {
    this.#owner.touched();
    if (this.#opening.size > 0 && (this.#opening.get(id)?.preface.length ?? 0) > 0) return 0;
    const stream = this.#incoming.get(id);
    if (stream !== undefined && stream.state !== 'open') return 0;
    return this.#core.write(id, data, start, end);
  }

  /** Ends our direction after the bytes written so far. */
  finish(id: number): void {
    this.#owner.touched();
    const opening = this.#opening.get(id);
    if (opening !== undefined && opening.preface.length > 0) opening.finish = true;
    else this.#core.finish(id);
  }

  /** Returns the bytes copied into `target`; 0: nothing yet; -1: the end was reached. */
  read(id: number, target: Uint8Array): number {
    this.#owner.touched();
    if (this.#opening.has(id)) return 0;
    const stream = this.#incoming.get(id);
    if (stream === undefined) return this.#core.read(id, target);
    if (stream.state !== 'open') return 0;
    const count = this.#core.read(id, target);
    if (count < 0) this.#receiveEnded(id);
    return count;
  }

  /** Returns the available bytes, at most `max`, in their own array; empty: nothing yet; null: the end was reached. */
  take(id: number, max: number): Uint8Array | null {
    this.#owner.touched();
    if (this.#opening.has(id)) return NOTHING;
    const stream = this.#incoming.get(id);
    if (stream === undefined) return this.#core.take(id, max);
    if (stream.state !== 'open') return NOTHING;
    const bytes = this.#core.take(id, max);
    if (bytes === null) this.#receiveEnded(id);
    return bytes;
  }

  /** Aborts our direction; unsent data is lost. */
  reset(id: number, code: number): void {
    this.#owner.touched();
    this.#core.reset(id, code);
    this.#sendEnded(id);
  }

  /** Asks the peer to abort its direction. */
  stop(id: number, code: number): void {
    this.#owner.touched();
    this.#opening.delete(id);
    this.#core.stop(id, code);
    this.#receiveEnded(id);
  }

  /**
   * Sets our direction's share among the byte streams with data to send, 1 to 256 (default 16).
   * @throws LocalError INVALID_ARGUMENT
   */
  setWeight(id: number, weight: number): void {
    this.#core.setWeight(id, weight);
  }

  /** Returns the figures of a stream; null once both its directions have ended. */
  stats(id: number): CoreStreamStats | null {
    return this.#core.stats(id);
  }

  // For the connection: events of the core, and time.

  /** Handles an event of the core about a byte stream. @returns false for other events */
  translate(kind: number, id: number, value: number, now: number): boolean {
    if (kind === EventKind.STREAM_READABLE) this.readable(id);
    else if (kind === EventKind.STREAM_WRITABLE) this.writable(id);
    else if (kind === EventKind.STREAM_OPENED) this.opened(id, now);
    else if (kind === EventKind.STREAM_FINISHED) this.finished(id);
    else if (kind === EventKind.STREAM_RESET) this.resetByPeer(id, value);
    else if (kind === EventKind.STREAM_STOPPED) this.stoppedByPeer(id, value);
    else return false;
    return true;
  }

  opened(id: number, now: number): void {
    if (!this.#accepts || this.#limits.open >= this.#limits.max()) {
      this.refuse(id, this.#accepts ? StreamCode.STREAM_LIMIT : StreamCode.STREAM_REFUSED);
      return;
    }
    this.#limits.open++;
    const deadline = now + ACCEPT_TIMEOUT;
    this.#deadline = Math.min(this.#deadline, deadline);
    const port = new Uint8Array(PORT_LENGTH);
    this.#incoming.set(id, { state: 'preface', port, received: 0, deadline, sendEnded: false, receiveEnded: false });
  }

  readable(id: number): void {
    if (this.#opening.has(id)) this.#readAcceptance(id);
    else {
      const stream = this.#incoming.get(id);
      if (stream?.state === 'preface') this.#readPreface(id, stream);
      else if (stream === undefined || stream.state === 'open') this.#life.emit({ kind: 'readable', id });
    }
  }

  writable(id: number): void {
    const opening = this.#opening.get(id);
    if (opening !== undefined && opening.preface.length > 0 && !this.#writePreface(id, opening)) return;
    const stream = this.#incoming.get(id);
    if (stream?.state === 'accepting') this.#writeAcceptance(id, stream);
    else if (stream === undefined || stream.state === 'open') this.#life.emit({ kind: 'writable', id });
  }

  finished(id: number): void {
    this.#sendEnded(id);
    this.#life.emit({ kind: 'finished', id });
  }

  resetByPeer(id: number, code: number): void {
    this.#opening.delete(id);
    const state = this.#incoming.get(id)?.state;
    this.#receiveEnded(id);
    // Before acceptance the application does not write, so our direction ends with it.
    if (state === 'preface' || state === 'offered') this.reset(id, StreamCode.ABORTED);
    if (state !== 'preface') this.#life.emit({ kind: 'reset', id, code });
  }

  stoppedByPeer(id: number, code: number): void {
    this.#sendEnded(id);
    if (this.#incoming.get(id)?.state !== 'preface') this.#life.emit({ kind: 'stopped', id, code });
  }

  nextTimeout(): number {
    return this.#deadline;
  }

  handleTimeout(now: number): void {
    if (now < this.#deadline) return;
    let next = Number.POSITIVE_INFINITY;
    for (const [id, stream] of this.#incoming) {
      if (stream.state !== 'preface' && stream.state !== 'offered') continue;
      if (stream.deadline > now) next = Math.min(next, stream.deadline);
      else this.#expire(id, stream);
    }
    this.#deadline = next;
  }

  /** Extends the deadlines by the length of a rest, ms: meanwhile no stream could be opened or accepted. */
  postpone(time: number): void {
    for (const stream of this.#incoming.values()) stream.deadline += time;
    this.#deadline += time;
  }

  /** The connection has ended: its streams no longer count. */
  #clear(): void {
    this.#limits.open -= this.#incoming.size;
    this.#incoming.clear();
    this.#opening.clear();
    this.#deadline = Number.POSITIVE_INFINITY;
  }

  #expire(id: number, stream: Incoming): void {
    const offered = stream.state === 'offered';
    this.refuse(id, StreamCode.ACCEPT_TIMEOUT);
    if (offered) this.#life.emit({ kind: 'reset', id, code: StreamCode.ACCEPT_TIMEOUT });
  }

  /** Returns true once the core has accepted all of it. */
  #writePreface(id: number, opening: Opening): boolean {
    opening.preface = opening.preface.subarray(this.#core.write(id, opening.preface));
    const written = opening.preface.length === 0;
    if (written && opening.finish) this.#core.finish(id);
    return written;
  }

  #writeAcceptance(id: number, stream: Incoming): void {
    if (this.#core.write(id, ACCEPTANCE) === 0) return;
    stream.state = 'open';
    this.#core.raiseWindow(id, this.#limits.window);
    this.#life.emit({ kind: 'writable', id });
    this.#life.emit({ kind: 'readable', id });
  }

  #readAcceptance(id: number): void {
    const count = this.#core.read(id, this.#byte);
    if (count === 0) return;
    if (count > 0 && this.#byte[0] === 0) {
      this.#opening.delete(id);
      this.#life.emit({ kind: 'accepted', id });
      this.#life.emit({ kind: 'readable', id });
      return;
    }
    this.refuse(id, StreamCode.BAD_PREFACE);
    this.#life.emit({ kind: 'reset', id, code: StreamCode.BAD_PREFACE });
  }

  #readPreface(id: number, stream: Incoming): void {
    while (stream.received < PORT_LENGTH) {
      const count = this.#core.read(id, stream.port.subarray(stream.received));
      if (count === 0) return;
      if (count < 0) {
        this.refuse(id, StreamCode.BAD_PREFACE);
        return;
      }
      stream.received += count;
    }
    stream.state = 'offered';
    this.#life.emit({ kind: 'stream', id, port: u32(stream.port, 0) });
  }

  #sendEnded(id: number): void {
    const stream = this.#incoming.get(id);
    if (stream === undefined) return;
    stream.sendEnded = true;
    this.#forgetEnded(id, stream);
  }

  #receiveEnded(id: number): void {
    const stream = this.#incoming.get(id);
    if (stream === undefined) return;
    stream.receiveEnded = true;
    this.#forgetEnded(id, stream);
  }

  #forgetEnded(id: number, stream: Incoming): void {
    if (!stream.sendEnded || !stream.receiveEnded || !this.#incoming.delete(id)) return;
    this.#limits.open--;
  }
}
