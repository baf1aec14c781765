/**
 * What the driver needs from an engine: the four verbs and the packets they give. The `Endpoint` of `protocol/` is one; tests drive a
 * small one of their own.
 */
import type { Path } from '../protocol/path.ts';

/** The four verbs, as the `Endpoint` of `protocol/` offers them. */
export interface Engine<Event> {
  /** The bytes are the caller's again when this returns. */
  receive(datagram: Uint8Array, path: Path, now: number): void;
  transmit(now: number): Packets | null;
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
