/**
 * What the driver needs from an engine: the four verbs and the packets they give. The `Endpoint` of `protocol/` is one; tests drive a
 * small one of their own.
 */
import type { Path } from '../protocol/path.ts';

/** The four verbs, as the `Endpoint` of `protocol/` offers them. */
export interface Engine<Event> {
  /** Packets that can be out at a time: given by `transmit` and not released. */
  readonly slots: number;
  /** The bytes are the caller's again when this returns. */
  receive(datagram: Uint8Array, path: Path, now: number): void;
  /**
   * Packets for one path, null when there are none.
   * @param room how many packets the socket of this index takes; at 0 the engine makes none of what can wait for it, and asks again at the next call
   */
  transmit(now: number, room: (socket: number) => number): Packets | null;
  nextTimeout(): number;
  handleTimeout(now: number): void;
  nextEvent(): Event | null;
}

/**
 * Packets for one path, as ranges of a buffer that stays untouched until each was released by its offset. The object may be the same each time;
 * because releases come later, what its `release` does must not depend on what it holds by then.
 */
export interface Packets {
  readonly path: Path;
  readonly count: number;
  readonly buffer: Uint8Array;
  readonly offsets: ArrayLike<number>;
  readonly lengths: ArrayLike<number>;
  release(offset: number): void;
}
