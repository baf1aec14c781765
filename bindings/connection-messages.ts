/** What a connection carries whole: messages, each on a stream of its own, and datagrams. */
import { type CoreHandle, call, copyOut } from './core-internals.ts';
import { LocalError } from './error.ts';
import { MESSAGE_LIMIT } from './options.ts';

/** The messages and datagrams of a connection; errors as for the connection. */
export class CoreMessages {
  private readonly of: CoreHandle;

  /** `CoreConnection` makes its parts. */
  constructor(of: CoreHandle) {
    this.of = of;
  }

  /**
   * Queues a message; returns its stream id, -1 when there is no room yet: wait for MESSAGES_WRITABLE.
   *
   * @throws LocalError INVALID_ARGUMENT above 66,560 bytes
   */
  send(data: Uint8Array): number {
    const { transfer } = this.of.check();
    if (data.length > MESSAGE_LIMIT)
      throw new LocalError('INVALID_ARGUMENT', `a message has at most ${MESSAGE_LIMIT} bytes, not ${data.length}`);
    transfer.set(data);
    return call(this.of, (exports, handle) => exports.messageSend(handle, data.length));
  }

  /**
   * Returns the complete message that a MESSAGE event named; its credit returns to the peer.
   *
   * @throws LocalError INVALID_ARGUMENT when there is no message of that id
   */
  read(id: number): Uint8Array {
    const length = call(this.of, (exports, handle) => exports.messageRead(handle, id));
    if (length < 0) throw new LocalError('INVALID_ARGUMENT', `there is no message ${id} to read`);
    return copyOut(this.of.core, length);
  }

  /**
   * Queues a datagram; false when it is larger than `datagramSize`, or has no room: the queue is full, memory is short,
   * or the connection rests.
   */
  sendDatagram(data: Uint8Array): boolean {
    const { transfer } = this.of.check();
    if (data.length > transfer.length) return false;
    transfer.set(data);
    return call(this.of, (exports, handle) => exports.connectionSendDatagram(handle, data.length)) !== 0;
  }

  /**
   * Returns the oldest received datagram.
   *
   * @throws LocalError INVALID_STATE when there is none
   */
  readDatagram(): Uint8Array {
    const length = call(this.of, (exports, handle) => exports.connectionReadDatagram(handle)) - 1;
    if (length < 0) throw new LocalError('INVALID_STATE', 'no datagram is waiting');
    return copyOut(this.of.core, length);
  }

  /** Bytes of the largest datagram that a packet carries now and the peer accepts; -1: none. */
  get datagramSize(): number {
    return call(this.of, (exports, handle) => exports.connectionDatagramSize(handle));
  }

  /** Number of datagrams that the queue takes now, as far as there is memory. */
  get datagramRoom(): number {
    return call(this.of, (exports, handle) => exports.connectionDatagramRoom(handle));
  }
}
