/** What a connection carries whole: messages and datagrams. What arrives is events of the connection. */
import type { CoreMessages } from '../../bindings/index.ts';
import type { ConnectionOwner } from './owner.ts';

/** The part `messages` of a connection. */
export class Messages {
  readonly #core: CoreMessages;
  readonly #owner: Pick<ConnectionOwner, 'touched'>;

  constructor(core: CoreMessages, owner: Pick<ConnectionOwner, 'touched'>) {
    this.#core = core;
    this.#owner = owner;
  }

  /**
   * Sends a message; returns its stream id, or -1: no room, wait for `messages-writable`.
   * @throws LocalError INVALID_ARGUMENT above 66,560 bytes
   */
  send(data: Uint8Array): number {
    this.#owner.touched();
    return this.#core.send(data);
  }

  /** Bytes of the largest datagram that a packet carries now and the peer takes; -1: none. */
  get datagramSize(): number {
    return this.#core.datagramSize;
  }

  /** Number of datagrams that the queue takes now. */
  get datagramRoom(): number {
    return this.#core.datagramRoom;
  }

  /** Returns false when it is longer than `datagramSize`, or has no room: the datagram is dropped. */
  sendDatagram(data: Uint8Array): boolean {
    this.#owner.touched();
    return this.#core.sendDatagram(data);
  }
}
