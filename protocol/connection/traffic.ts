/** What a connection carries: byte streams, messages and datagrams. All throw LocalError NOT_CONNECTED during the handshake, CLOSED after the end. */
import type { CoreConnection } from '../../bindings/index.ts';
import { LocalError } from '../errors/index.ts';
import type { ByteStreams } from './byte-streams.ts';
import { Peer } from './peer.ts';

const MAX_PORT = 0xffff_ffff;

export abstract class Traffic extends Peer {
  /** The data plane of an open connection. */
  protected abstract data(): CoreConnection;
  protected abstract byteStreams(): ByteStreams;
  /** There may be packets to send after a call. */
  protected abstract touch<T>(result: T): T;
  /** There may be events after a call. */
  protected abstract eventful(): void;

  /**
   * Opens a byte stream to a port (u32; from 0x80000000 on ephemeral). What is written before the event `accepted`, up to the peer's initial
   * window, leaves with the opening. Its id, or -1 at the peer's limit: wait for `streams-available`.
   */
  openStream(port: number): number {
    if (!Number.isInteger(port) || port < 0 || port > MAX_PORT) throw new LocalError('INVALID_ARGUMENT', `${port} is not a stream port`);
    return this.touch(this.byteStreams().open(port));
  }

  /** Takes a stream that the event `stream` offered. */
  acceptStream(id: number): void {
    this.touch(this.byteStreams().accept(id));
    this.eventful();
  }

  /** Refuses it; `code` is a StreamCode. */
  refuseStream(id: number, code: number): void {
    this.touch(this.byteStreams().refuse(id, code));
  }

  /** Bytes taken of data[start, end). Fewer than given: wait for `writable`. */
  writeStream(id: number, data: Uint8Array, start = 0, end = data.length): number {
    return this.touch(this.byteStreams().write(id, data, start, end));
  }

  /** Bytes copied into `target`; 0: nothing yet; -1: the end was reached. */
  readStream(id: number, target: Uint8Array): number {
    return this.touch(this.byteStreams().read(id, target));
  }

  /** The bytes that are there, at most `max`, in an array of their own; empty: nothing yet; null: the end was reached. */
  takeStream(id: number, max: number): Uint8Array | null {
    return this.touch(this.byteStreams().take(id, max));
  }

  /** Ends our direction after what was written. */
  finishStream(id: number): void {
    this.touch(this.byteStreams().finish(id));
  }

  /** Gives up our direction; unsent data is lost. */
  resetStream(id: number, code: number): void {
    this.touch(this.byteStreams().reset(id, code));
  }

  /** Asks the peer to give up its direction. */
  stopSending(id: number, code: number): void {
    this.touch(this.byteStreams().stop(id, code));
  }

  /** Our direction's share among the byte streams that have something to send, 1 to 256 (default 16). @throws LocalError INVALID_ARGUMENT */
  setStreamWeight(id: number, weight: number): void {
    this.data().setStreamWeight(id, weight);
  }

  /** Stream id of the message, or -1: no room, wait for `messages-writable`. @throws LocalError INVALID_ARGUMENT above 66,560 bytes. */
  sendMessage(data: Uint8Array): number {
    return this.touch(this.data().sendMessage(data));
  }

  /** False when the queue is full or the peer takes none of that size: the datagram is dropped. */
  sendDatagram(data: Uint8Array): boolean {
    return this.touch(this.data().sendDatagram(data));
  }

  /** Asks for our next sending key, before its time; false when the peer has not acknowledged a packet under the current one yet. */
  updateKey(): boolean {
    return this.touch(this.data().updateKey());
  }

  /** Asks the peer for an acknowledgement, so that it hears where we are. */
  ping(): void {
    this.touch(this.data().ping());
  }
}
