/**
 * One `dgram` socket and the packets it has not yet given back.
 *
 * What a datagram costs is Node's and the kernel's, so little is added to it: no callback, no name to look up, and views of packet slots
 * are made once. `dgram` hands each packet to libuv in a tick of its own, libuv sends it at once or, when the kernel takes no more, keeps
 * it in a queue. So:
 *
 *   1. `send` notes offset and callback in a ring and asks for a tick;
 *   2. that tick comes behind the first packet's, and once more behind those of the packets that were sent meanwhile;
 *   3. then all packets have left that libuv's queue does not hold: they are released, oldest first, since the queue keeps the order;
 *   4. while it holds some, it is looked at again every `RETRY` ms. A closed socket sends nothing any more and gives all back.
 */
import { createSocket, type RemoteInfo, type Socket } from 'node:dgram';
import type { Log } from '../environment.ts';
import { enlargeBuffers } from './udp-buffers.ts';

export type Family = 'udp4' | 'udp6';

/** ms. The queue is the kernel's hint that the sender is too fast: nothing is lost by coming back late. */
const RETRY = 1;
/** A buffer of at least so many bytes has packet slots in it, whose views are worth keeping: a core's memory. */
const SLOTTED = 1 << 20;

export interface FamilySocketSettings {
  readonly log: Log;
  readonly receiveBuffer?: number;
  readonly sendBuffer?: number;
}

export class FamilySocket {
  /** Bytes granted for datagrams that wait to be read, 0 = not known. */
  receiveBuffer = 0;
  readonly #socket: Socket;
  readonly #settings: FamilySocketSettings;
  #closed = false;
  /** Offset and callback of each send, oldest at `#first`; a ring whose size is a power of two. */
  #offsets = new Float64Array(64);
  #callbacks = new Array<(offset: number) => void>(64);
  #first = 0;
  #count = 0;
  /** Packets of the ring that the tick under way was asked for, -1 = none is. */
  #expected = -1;
  #slots: Uint8Array | undefined;
  #views = new Map<number, Uint8Array>();

  constructor(family: Family, message: (datagram: Buffer, from: RemoteInfo) => void, settings: FamilySocketSettings) {
    this.#socket = createSocket({ type: family, ipv6Only: family === 'udp6', lookup: numericLookup });
    this.#socket.on('message', message);
    this.#settings = settings;
  }

  /** @returns the port. */
  bind(port: number, host: string | undefined): Promise<number> {
    const socket = this.#socket;
    return new Promise((resolve, reject) => {
      socket.once('error', reject);
      socket.bind({ port, ...(host === undefined ? {} : { address: host }), exclusive: true }, () => {
        socket.removeListener('error', reject);
        socket.on('error', (error) => this.#settings.log.warn('UDP socket', { error: error.message }));
        this.receiveBuffer = enlargeBuffers(socket, this.#settings);
        resolve(socket.address().port);
      });
    });
  }

  /** Address unreachable, no permission: without a callback `dgram` keeps that to itself. It is UDP's loss. */
  send(buffer: Uint8Array, offset: number, length: number, address: string, port: number, released: (offset: number) => void): void {
    this.#push(offset, released);
    this.#socket.send(this.#view(buffer, offset, length), port, address);
    if (this.#expected < 0) this.#comeBack();
  }

  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#socket.removeAllListeners('error').on('error', () => {});
    this.#socket.close();
  }

  #comeBack(): void {
    this.#expected = this.#count;
    process.nextTick(this.#settle);
  }

  readonly #settle = (): void => {
    if (this.#count > this.#expected && !this.#closed) {
      this.#comeBack();
      return;
    }
    const queued = this.#closed ? 0 : this.#socket.getSendQueueCount();
    for (let left = this.#count - queued; left > 0; left--) this.#release();
    if (queued > 0) setTimeout(this.#retry, RETRY);
    else if (this.#count > 0) this.#comeBack();
    else this.#expected = -1;
  };

  readonly #retry = (): void => this.#comeBack();

  /** The oldest packet has left, or never will. */
  #release(): void {
    const slot = this.#first;
    this.#first = (slot + 1) & (this.#offsets.length - 1);
    this.#count--;
    this.#callbacks[slot]!(this.#offsets[slot]!);
  }

  #view(buffer: Uint8Array, offset: number, length: number): Uint8Array {
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

  #push(offset: number, released: (offset: number) => void): void {
    if (this.#count === this.#offsets.length) this.#grow();
    const slot = (this.#first + this.#count++) & (this.#offsets.length - 1);
    this.#offsets[slot] = offset;
    this.#callbacks[slot] = released;
  }

  #grow(): void {
    const size = this.#offsets.length;
    const order = Array.from({ length: size }, (_, i) => (this.#first + i) & (size - 1));
    const offsets = new Float64Array(2 * size);
    offsets.set(order.map((slot) => this.#offsets[slot]!));
    this.#callbacks = order.map((slot) => this.#callbacks[slot]!);
    this.#callbacks.length = 2 * size;
    this.#offsets = offsets;
    this.#first = 0;
  }
}

/** `dgram` resolves each destination anew and by default asynchronously; ours are numeric already. */
export function numericLookup(
  address: string,
  options: number | object,
  callback: (error: null, address: string, family: number) => void,
): void {
  const family = typeof options === 'number' ? options : address.includes(':') ? 6 : 4;
  callback(null, address, family);
}
