/**
 * What the driver needs from an engine: the four verbs and the packets they return. The `Endpoint` of `protocol/` is
 * one; tests drive a small one of their own.
 */
import type { Path } from '../protocol/path.ts';

/** The four verbs, as the `Endpoint` of `protocol/` offers them. */
export interface Engine<Event> {
  /** Packets that can be out at a time: returned by `transmit` and not yet released. */
  readonly slots: number;
  /** The caller may reuse the bytes when this returns. */
  receive(datagram: Uint8Array, path: Path, now: number): void;
  /**
   * Returns packets for one path, null when there are none.
   * @param room returns how many packets the socket of this index takes; at 0 the engine holds back what can wait, and
   *   asks again at the next call
   */
  transmit(now: number, room: (socket: number) => number): Packets | null;
  nextTimeout(): number;
  handleTimeout(now: number): void;
  nextEvent(): Event | null;
}

/**
 * Packets for one path, as ranges of a buffer that stays untouched until each was released by its offset. `transmit`
 * may return the same object each time. Releases come later, so `release` must not depend on the object's state at that
 * time.
 */
export interface Packets {
  readonly path: Path;
  readonly count: number;
  readonly buffer: Uint8Array;
  readonly offsets: ArrayLike<number>;
  readonly lengths: ArrayLike<number>;
  release(offset: number): void;
}
