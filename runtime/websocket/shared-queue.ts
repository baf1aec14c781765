/**
 * Bytes that all WebSockets of one base station hold together: each has its own bound, but there may be ten thousand.
 */

/** Our constant, bytes. */
export const LIMIT = 64 << 20;

export class SharedQueue {
  /** Bytes that wait in queues and pipes. */
  bytes = 0;
  /** Packets dropped because a WebSocket takes less than is sent to it. */
  dropped = 0;
  readonly #limit: number;

  constructor(limit: number = LIMIT) {
    this.#limit = limit;
  }

  /** From now on each WebSocket may hold little more than one packet. */
  get isFull(): boolean {
    return this.bytes >= this.#limit;
  }
}
