/**
 * The traffic of a connection: byte streams, messages and datagrams. All throw LocalError NOT_CONNECTED during the
 * handshake, CLOSED after the end.
 */
import type { CoreConnection } from '../../bindings/index.ts';
import { LocalError } from '../errors/index.ts';
import type { ByteStreams } from './byte-streams.ts';

const MAX_PORT = 0xffff_ffff;

export abstract class Traffic {
  /** The data plane of an open connection. */
  protected abstract data(): CoreConnection;
  protected abstract byteStreams(): ByteStreams;
  /** Call after an action that may cause packets to send. */
  protected abstract touch<T>(result: T): T;
  /** Call after an action that may cause events. */
  protected abstract eventful(): void;

  /**
   * Opens a byte stream to a port (u32; from 0x80000000 on ephemeral). Data written before the event `accepted`, up to
   * the peer's initial window, leaves with the opening. Returns its id, or -1 at the peer's limit: wait for
   * `streams-available`.
   */
  openStream(port: number): number {
    if (!Number.isInteger(port) || port < 0 || port > MAX_PORT) throw new LocalError('INVALID_ARGUMENT', `${port} is not a stream port`);
    return this.touch(this.byteStreams().open(port));
  }

  /** Accepts a stream that the event `stream` offered. */
  acceptStream(id: number): void {
    this.touch(this.byteStreams().accept(id));
    this.eventful();
  }

  /** Refuses it; `code` is a StreamCode. */
  refuseStream(id: number, code: number): void {
    this.touch(this.byteStreams().refuse(id, code));
  }

  /** Writes data[start, end) and returns the number of bytes accepted. If fewer than given: wait for `writable`. */
  writeStream(id: number, data: Uint8Array, start = 0, end = data.length): number {
    return this.touch(this.byteStreams().write(id, data, start, end));
  }

  /** Returns the bytes copied into `target`; 0: nothing yet; -1: the end was reached. */
  readStream(id: number, target: Uint8Array): number {
    return this.touch(this.byteStreams().read(id, target));
  }

  /** Returns the available bytes, at most `max`, in their own array; empty: nothing yet; null: the end was reached. */
  takeStream(id: number, max: number): Uint8Array | null {
    return this.touch(this.byteStreams().take(id, max));
  }

  /** Ends our direction after the bytes written so far. */
  finishStream(id: number): void {
    this.touch(this.byteStreams().finish(id));
  }

  /** Aborts our direction; unsent data is lost. */
  resetStream(id: number, code: number): void {
    this.touch(this.byteStreams().reset(id, code));
  }

  /** Asks the peer to abort its direction. */
  stopSending(id: number, code: number): void {
    this.touch(this.byteStreams().stop(id, code));
  }

  /**
   * Sets our direction's share among the byte streams with data to send, 1 to 256 (default 16).
   * @throws LocalError INVALID_ARGUMENT
   */
  setStreamWeight(id: number, weight: number): void {
    this.data().streams.setWeight(id, weight);
  }

  /**
   * Returns the stream id of the message, or -1: no room, wait for `messages-writable`.
   * @throws LocalError INVALID_ARGUMENT above 66,560 bytes
   */
  sendMessage(data: Uint8Array): number {
    return this.touch(this.data().messages.send(data));
  }

  /** Bytes of the largest datagram that a packet carries now and the peer takes; -1: none. */
  get datagramSize(): number {
    return this.data().messages.datagramSize;
  }

  /** Number of datagrams that the queue takes now. */
  get datagramRoom(): number {
    return this.data().messages.datagramRoom;
  }

  /** Returns false when it is longer than `datagramSize`, or has no room: the datagram is dropped. */
  sendDatagram(data: Uint8Array): boolean {
    return this.touch(this.data().messages.sendDatagram(data));
  }

  /**
   * Requests our next sending key early; false when the peer has not acknowledged a packet under the current one yet.
   */
  updateKey(): boolean {
    return this.touch(this.data().updateKey());
  }

  /** Asks the peer for an acknowledgement, so that it learns our current address. */
  ping(): void {
    this.touch(this.data().ping());
  }
}
