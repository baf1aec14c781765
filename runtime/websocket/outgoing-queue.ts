/**
 * Packets that wait for a WebSocket that takes no more at the moment: Route packets that a base station relays, and the
 * connection's own.
 *
 * The connection's own packets leave first: they are few, and acknowledge, keep alive or end the connection. Above the
 * limit the oldest routed packet is dropped, as old ones are worth least to the two ends of a route; an own packet only
 * when no routed one is left.
 */
import { Fifo } from '../../protocol/fifo.ts';
import { PacketType } from '../../protocol/packet/index.ts';

export class OutgoingQueue {
  /** Bytes of all packets in it. */
  bytes = 0;
  readonly #own = new Fifo<Uint8Array>();
  readonly #routed = new Fifo<Uint8Array>();

  /**
   * Adds a packet, then drops until at most `limit` bytes wait. @returns number of dropped packets, perhaps including
   * this one
   */
  push(packet: Uint8Array, limit: number): number {
    (packet[0] === PacketType.ROUTE ? this.#routed : this.#own).push(packet);
    this.bytes += packet.length;
    let dropped = 0;
    for (; this.bytes > limit; dropped++) this.bytes -= (this.#routed.shift() ?? this.#own.shift())!.length;
    return dropped;
  }

  /** Removes and returns the packet that leaves next; undefined when there is none. */
  shift(): Uint8Array | undefined {
    const packet = this.#own.shift() ?? this.#routed.shift();
    this.bytes -= packet?.length ?? 0;
    return packet;
  }

  clear(): void {
    while (this.shift() !== undefined);
  }
}
