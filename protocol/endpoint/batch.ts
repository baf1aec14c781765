/**
 * The results of `transmit` for the driver. Two batch objects are reused forever: one over the core's packet slots, one
 * for packets of the handshake, whose bytes are their own and need no release.
 */
import type { Core } from '../../bindings/index.ts';
import { routed } from '../packet/index.ts';
import type { Path } from '../path.ts';

/** Packets for one path. The next call of `transmit` reuses the object. */
export interface PacketBatch {
  readonly path: Path;
  readonly count: number;
  readonly buffer: Uint8Array;
  readonly offsets: Uint32Array;
  readonly lengths: Uint32Array;
  /** Returns a packet's slot once it has left; its bytes stay untouched until then. */
  release(offset: number): void;
}

/** Most waiting handshake packets; further ones are dropped, and their senders repeat them. */
export const MAX_WAITING = 1024;

/** Packets of the data plane, in the core's memory. */
export class CoreBatch implements PacketBatch {
  path!: Path;
  count = 0;
  /** Packets handed out and not released. */
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

/** Queue of handshake packets, one per batch. */
export class Outbox implements PacketBatch {
  path!: Path;
  buffer = new Uint8Array(0);
  readonly count = 1;
  readonly offsets = new Uint32Array(1);
  readonly lengths = new Uint32Array(1);
  readonly #waiting: { path: Path; packet: Uint8Array }[] = [];

  /** Queues a packet; false when the queue is full. On a route it adds the Route header. */
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

  /** Nothing to do: the packets own their bytes. */
  release(): void {}
}
