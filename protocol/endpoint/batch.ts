/**
 * What `transmit` gives to the driver. Two batch objects are used for ever: one over the core's packet slots, one for packets of the handshake, whose
 * bytes are their own and need no release.
 */
import type { Core } from '../../bindings/index.ts';
import { routed } from '../packet/index.ts';
import type { Path } from '../path.ts';

/** Packets for one path. The object is used again by the next call of `transmit`. */
export interface PacketBatch {
  readonly path: Path;
  readonly count: number;
  readonly buffer: Uint8Array;
  readonly offsets: Uint32Array;
  readonly lengths: Uint32Array;
  /** Gives a packet back once it has left; its bytes stay untouched until then. */
  release(offset: number): void;
}

/** Handshake packets waiting at a time; more are dropped: their senders repeat. */
const MAX_WAITING = 1024;

/** Packets of the data plane, in the core's memory. */
export class CoreBatch implements PacketBatch {
  path!: Path;
  count = 0;
  /** Packets given out and not released. */
  outstanding = 0;
  readonly #core: Core;

  constructor(core: Core) {
    this.#core = core;
  }

  get buffer(): Uint8Array {
    return this.#core.buffer;
  }

  get offsets(): Uint32Array {
    return this.#core.packetOffsets;
  }

  get lengths(): Uint32Array {
    return this.#core.packetLengths;
  }

  release(offset: number): void {
    this.outstanding--;
    if (!this.#core.failed) this.#core.release(offset);
  }

  of(path: Path, count: number): this {
    this.path = path;
    this.count = count;
    this.outstanding += count;
    return this;
  }
}

/** Queue of handshake packets, one a batch. */
export class Outbox implements PacketBatch {
  path!: Path;
  buffer = new Uint8Array(0);
  readonly count = 1;
  readonly offsets = new Uint32Array(1);
  readonly lengths = new Uint32Array(1);
  readonly #waiting: { path: Path; packet: Uint8Array }[] = [];

  /** False when the queue is full. On a route the packet gets its Route header here. */
  push(path: Path, packet: Uint8Array): boolean {
    if (this.#waiting.length >= MAX_WAITING) return false;
    this.#waiting.push({ path, packet: path.route === undefined ? packet : routed(path.route, packet) });
    return true;
  }

  next(): this | null {
    const first = this.#waiting.shift();
    if (first === undefined) return null;
    this.path = first.path;
    this.buffer = first.packet as Uint8Array<ArrayBuffer>;
    this.lengths[0] = first.packet.length;
    return this;
  }

  /** The packets are on their own: nothing to take back. */
  release(): void {}
}
