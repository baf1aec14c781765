/**
 * Datagrams in parts (PROTOCOL.md §12): how one that fits no packet is cut, and how its parts become one again.
 *
 * A receiver keeps the parts of the newest datagrams that are not complete: the oldest is dropped when there are too
 * many, too many bytes, or when it is too old. Nothing here is repeated: a datagram that lacks a part is lost.
 */
import { encodeFlowPart, type FlowDatagram, type FlowPart } from './flow-datagram.ts';

/** PROTOCOL.md §12: most parts of a datagram, and bytes of the largest one (RFC 768 over IPv6). */
export const MAX_PARTS = 64;
const LARGEST = 65_527;
/** PROTOCOL.md §9: incomplete datagrams of a connection, their bytes, and ms until one is given up. */
export const MAX_SETS = 64;
export const MAX_BYTES = 256 * 1024;
export const LONGEST = 1_000;
/** Our constant: bytes that a part counts for besides its own, since many small ones take more memory. */
export const PART_COST = 64;

/**
 * Cuts a datagram into parts of about the same length.
 * @param number of the datagram among those in parts, from 1
 * @param size largest content of a DATAGRAM frame, bytes
 * @param most parts that the peer takes
 * @returns contents of DATAGRAM frames; null when they would be more than `most`, or the datagram is too large
 */
export function cutFlowDatagram(
  { flow, payload }: FlowDatagram,
  { number, size, most }: { number: number; size: number; most: number },
): Uint8Array[] | null {
  const head = encodeFlowPart({ flow, number, index: 0, count: 0, payload: NOTHING }).length;
  const count = Math.max(2, Math.ceil(payload.length / (size - head)));
  if (count > most || payload.length > LARGEST) return null;
  const length = Math.ceil(payload.length / count);
  return Array.from({ length: count }, (_, index) =>
    encodeFlowPart({ flow, number, index, count, payload: payload.subarray(index * length, (index + 1) * length) }),
  );
}

const NOTHING = new Uint8Array(0);

/** Parts of one datagram. */
interface PartSet {
  readonly flow: number;
  readonly since: number;
  readonly parts: (Uint8Array | undefined)[];
  missing: number;
  length: number;
}

/** The incomplete datagrams that arrive over one connection. */
export class PartSets {
  readonly #given: (flow: number) => void;
  /** By number, oldest first. */
  readonly #sets = new Map<number, PartSet>();
  #bytes = 0;

  /** @param given called for each datagram that is given up, with its flow */
  constructor(given: (flow: number) => void) {
    this.#given = given;
  }

  /** Incomplete datagrams. */
  get size(): number {
    return this.#sets.size;
  }

  /**
   * Takes a part. One that contradicts the earlier ones of its datagram, or repeats one, is ignored.
   * @param part its payload is kept
   * @returns the datagram, when it is complete
   */
  receive({ flow, number, index, count, payload }: FlowPart, now: number): FlowDatagram | null {
    this.expire(now);
    let set = this.#sets.get(number);
    if (set === undefined) {
      set = { flow, since: now, parts: Array.from({ length: count }), missing: count, length: 0 };
      this.#sets.set(number, set);
    }
    if (set.flow !== flow || set.parts.length !== count || set.parts[index] !== undefined) return null;
    if (set.length + payload.length > LARGEST) return null;
    set.parts[index] = payload;
    set.missing--;
    set.length += payload.length;
    this.#bytes += payload.length + PART_COST;
    if (set.missing === 0) {
      this.#forget(number, set);
      return { flow, payload: joined(set) };
    }
    while (this.#sets.size > MAX_SETS || this.#bytes > MAX_BYTES) this.#giveUpOldest();
    return null;
  }

  /** Gives up what is too old. */
  expire(now: number): void {
    for (const { since } of this.#sets.values()) {
      if (now - since < LONGEST) return;
      this.#giveUpOldest();
    }
  }

  #giveUpOldest(): void {
    for (const [number, set] of this.#sets) {
      this.#forget(number, set);
      this.#given(set.flow);
      return;
    }
  }

  #forget(number: number, set: PartSet): void {
    this.#sets.delete(number);
    this.#bytes -= set.length + PART_COST * (set.parts.length - set.missing);
  }
}

function joined({ parts, length }: PartSet): Uint8Array {
  const whole = new Uint8Array(length);
  let at = 0;
  for (const part of parts) {
    if (part === undefined) continue;
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}
