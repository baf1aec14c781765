/**
 * Packets given to a socket and not yet given back, oldest first: a ring whose entries are reused, so nothing is
 * allocated per packet.
 */

/** Receives the offset of a packet whose bytes are no longer needed. */
export type Released = (offset: number) => void;

export interface QueuedPacket {
  buffer: Uint8Array;
  offset: number;
  length: number;
  address: string;
  port: number;
  released: Released;
}

/** Sends the packets of one socket. */
export interface Sender {
  /** As DatagramSocket.send. */
  send(buffer: Uint8Array, offset: number, length: number, address: string, port: number, released: Released): void;
  /** As DatagramSocket.sendWithHopLimit. @returns false when it was dropped */
  sendWithHopLimit(datagram: Uint8Array, address: string, port: number, hopLimit: number): boolean;
  /** Call when the socket is closed: gives all packets back in a tick. */
  close(): void;
}

const FIRST_SIZE = 64;
const NOTHING = new Uint8Array(0);
const IGNORED: Released = () => {};
/** A buffer of at least this many bytes contains packet slots, whose views are worth caching: a core's memory. */
const SLOTTED = 1 << 20;

export class PacketQueue {
  length = 0;
  /** Its size is a power of two. */
  #ring = Array.from({ length: FIRST_SIZE }, emptyPacket);
  #first = 0;
  #slots: Uint8Array | undefined;
  readonly #views = new Map<number, Uint8Array>();

  push(buffer: Uint8Array, offset: number, length: number, address: string, port: number, released: Released): QueuedPacket {
    if (this.length === this.#ring.length) this.#grow();
    const packet = this.at(this.length++);
    packet.buffer = buffer;
    packet.offset = offset;
    packet.length = length;
    packet.address = address;
    packet.port = port;
    packet.released = released;
    return packet;
  }

  /** @param index 0 is the oldest. Valid until it is released */
  at(index: number): QueuedPacket {
    return this.#ring[(this.#first + index) & (this.#ring.length - 1)]!;
  }

  /** Gives the oldest packet back: it has left, or never will. */
  release(): void {
    const packet = this.at(0);
    this.#first = (this.#first + 1) & (this.#ring.length - 1);
    this.length--;
    packet.buffer = NOTHING;
    packet.released(packet.offset);
  }

  /** Returns the bytes of a packet. Views of packet slots are made once. */
  view({ buffer, offset, length }: QueuedPacket): Uint8Array {
    if (length === buffer.length) return buffer;
    if (buffer.length < SLOTTED) return buffer.subarray(offset, offset + length);
    if (buffer !== this.#slots) {
      this.#slots = buffer;
      this.#views.clear();
    }
    const known = this.#views.get(offset);
    if (known?.length === length) return known;
    const view = buffer.subarray(offset, offset + length);
    this.#views.set(offset, view);
    return view;
  }

  #grow(): void {
    const { length } = this.#ring;
    const ordered = Array.from({ length }, (_, index) => this.at(index));
    this.#ring = [...ordered, ...Array.from({ length }, emptyPacket)];
    this.#first = 0;
  }
}

function emptyPacket(): QueuedPacket {
  return { buffer: NOTHING, offset: 0, length: 0, address: '', port: 0, released: IGNORED };
}
