/**
 * Handshakes that peers have begun: one entry per path and source id, so that a repeat of the Initiate gets the same
 * Respond.
 *
 * Bounded in number and time: 10 s after the last packet that belongs to it, as the peer may be repeating lost packets,
 * and one minute in all. An entry older than 10 s stays only while there is room: when the table is full, the oldest of
 * these goes first, so that an attacker cannot hold the table with a few prolonged handshakes a second. Next goes the
 * unvalidated one that was heard least recently, so that a flood from invented addresses cannot evict peers that
 * answered a Retry.
 */
import { hex } from '@scure/base';
import type { HandshakeState } from '../noise/index.ts';
import type { Path } from '../path.ts';
import { type Timed, Timers } from './timers.ts';

/**
 * ms without a packet after which a handshake is dropped, and ms from its beginning after which another may replace it.
 */
export const HALF_OPEN_LIFETIME = 10_000;
/** Longest time of a handshake, ms, however many packets arrive. */
export const MAX_LIFETIME = 60_000;
/** Most kept Data packets that overtook the Complete. */
export const MAX_EARLY = 4;

export interface HalfOpenFields {
  readonly path: Path;
  /** Source id of the Initiate, a copy. */
  readonly remoteId: Uint8Array;
  /** Noise message 1, a copy: identifies a repeated Initiate. */
  readonly message: Uint8Array;
  readonly version: number;
  readonly suite: number;
  readonly handshake: HandshakeState;
  /** The peer receives at its address: it returned a token, or the path is a connection. */
  readonly validated: boolean;
  readonly createdAt: number;
}

export class HalfOpen implements Timed {
  readonly fields: HalfOpenFields;
  /** Our id. */
  readonly id: Uint8Array;
  /** The Respond packet, repeated byte for byte. */
  respond: Uint8Array = new Uint8Array(0);
  /** When the Respond was last sent. */
  respondedAt = 0;
  responses = 0;
  timerAt = Number.POSITIVE_INFINITY;
  timerIndex = -1;
  /** The handshake became a connection, which now has the id. */
  completed = false;
  received: number;
  sent = 0;
  readonly early: Uint8Array[] = [];
  /** Number of invalid Completes. */
  failures = 0;

  /** @param received bytes of the datagram that began it */
  constructor(id: Uint8Array, fields: HalfOpenFields, received: number) {
    this.id = id;
    this.fields = fields;
    this.received = received;
  }

  /** Call when the Respond is sent. */
  responding(now: number): void {
    this.respondedAt = now;
    this.responses++;
  }

  /** Returns the ms since the Respond that is answered now; 0 when unknown: it was repeated. */
  rtt(now: number): number {
    return this.responses === 1 ? now - this.respondedAt : 0;
  }

  /** Returns whether the anti-amplification limit (RFC 9000 §8.1) allows `length` more bytes. */
  maySend(length: number): boolean {
    return this.fields.validated || this.sent + length <= 3 * this.received;
  }
}

export class HalfOpenTable {
  readonly #validated = new Set<HalfOpen>();
  readonly #unvalidated = new Set<HalfOpen>();
  /** All entries, in the order in which they began. */
  readonly #begun = new Set<HalfOpen>();
  /** By the key of the path and the remote id in hex. In a flood most paths have no entry. */
  readonly #byPath = new Map<string, Map<string, HalfOpen>>();
  /** Expiry of each entry. */
  readonly #timers = new Timers<HalfOpen>();
  readonly #removed: (entry: HalfOpen) => void;

  /** @param removed called for each entry that leaves the table, for whatever reason */
  constructor(removed: (entry: HalfOpen) => void) {
    this.#removed = removed;
  }

  get size(): number {
    return this.#begun.size;
  }

  /**
   * Returns whether there is room for another handshake carried by a base station without evicting one in its first 10
   * s.
   */
  hasCarriedRoom(limit: number, now: number): boolean {
    return this.#validated.size < limit || this.#old(now) !== undefined || this.#direct() !== undefined;
  }

  find(path: Path, remoteId: Uint8Array): HalfOpen | undefined {
    return this.#byPath.get(path.key)?.get(hex.encode(remoteId));
  }

  /**
   * Makes room for one more on the path: true on success. A carried one replaces one that is not: a base station limits
   * their number.
   */
  makeRoom(limit: number, { path, validated }: Pick<HalfOpenFields, 'path' | 'validated'>, now: number): boolean {
    if (this.size < limit) return true;
    const carried = path.kind === 'route' ? this.#direct() : undefined;
    const victim = this.#old(now) ?? first(this.#unvalidated) ?? carried ?? (validated ? first(this.#validated) : undefined);
    if (victim === undefined) return false;
    this.remove(victim);
    return true;
  }

  add(entry: HalfOpen): void {
    const { path, remoteId, createdAt } = entry.fields;
    this.#kindOf(entry).add(entry);
    this.#begun.add(entry);
    const entries = this.#byPath.get(path.key) ?? new Map<string, HalfOpen>();
    this.#byPath.set(path.key, entries.set(hex.encode(remoteId), entry));
    this.#timers.set(entry, createdAt + HALF_OPEN_LIFETIME);
  }

  /** Prolongs an entry for which a packet arrived. */
  touch(entry: HalfOpen, now: number): void {
    const kind = this.#kindOf(entry);
    if (!kind.delete(entry)) return;
    // Moved to the end: sets keep the order of insertion, and the first makes room.
    kind.add(entry);
    this.#timers.set(entry, Math.min(now + HALF_OPEN_LIFETIME, entry.fields.createdAt + MAX_LIFETIME));
  }

  remove(entry: HalfOpen): void {
    if (!this.#begun.delete(entry)) return;
    this.#kindOf(entry).delete(entry);
    const { path, remoteId } = entry.fields;
    const entries = this.#byPath.get(path.key);
    entries?.delete(hex.encode(remoteId));
    if (entries?.size === 0) this.#byPath.delete(path.key);
    this.#timers.remove(entry);
    this.#removed(entry);
  }

  /** Removes all entries that match. */
  removeWhere(matches: (entry: HalfOpen) => boolean): void {
    for (const entry of [...this.#begun]) if (matches(entry)) this.remove(entry);
  }

  /** Returns when to call `handleTimeout`, ms; Infinity for never. Call it again after every other call. */
  nextTimeout(): number {
    return this.#timers.next();
  }

  /** Drops the expired handshakes. */
  handleTimeout(now: number): void {
    for (let entry = this.#timers.due(now); entry !== undefined; entry = this.#timers.due(now)) this.remove(entry);
  }

  /** Returns the entry that began first, if that was 10 s ago. */
  #old(now: number): HalfOpen | undefined {
    const oldest = first(this.#begun);
    return oldest !== undefined && now - oldest.fields.createdAt >= HALF_OPEN_LIFETIME ? oldest : undefined;
  }

  /** Returns the validated, not carried entry that was heard least recently. */
  #direct(): HalfOpen | undefined {
    for (const entry of this.#validated) if (entry.fields.path.kind !== 'route') return entry;
    return undefined;
  }

  #kindOf(entry: HalfOpen): Set<HalfOpen> {
    return entry.fields.validated ? this.#validated : this.#unvalidated;
  }
}

/** Returns the entry that has been in the set longest: of its kind, the one heard least recently. */
function first(entries: Set<HalfOpen>): HalfOpen | undefined {
  return entries.values().next().value;
}
