/**
 * The peers' connection ids in force, and their owners: a Reset that names one ends its connection when it carries the
 * token that came with the id (PROTOCOL.md §2). Every idle connection has entries here, and hardly any is ever read.
 *
 * An owner keeps its ids and tokens in one packed text. The table finds owners by the first word of an id, as a number,
 * and has a list only where ids share one. The peer chooses its ids, so each find compares the whole id. A peer that
 * chooses the same word for many of its connections fills one list: ids after the sixteenth are not stored, and a Reset
 * does not end those connections.
 */
import { equalBytes } from '../identity/index.ts';
import { packed, unpacked } from '../packed-bytes.ts';
import { ID_LENGTH, TOKEN_LENGTH, u32 } from '../packet/index.ts';

const ENTRY_LENGTH = ID_LENGTH + TOKEN_LENGTH;
/** Most ids with the same first word. */
export const MAX_SHARED = 16;

/** An id, and the token of a Reset for it. */
export interface RemoteId {
  readonly id: Uint8Array;
  readonly resetToken: Uint8Array;
}

/** The owner of ids. */
export interface RemoteIdOwner {
  /** Ids and tokens in alternation, packed; only this table changes it. */
  remoteIds: string;
}

export class RemoteIds<T extends RemoteIdOwner> {
  readonly #owners = new Map<number, T | readonly T[]>();

  /** Adds an id of the peer. */
  add(owner: T, { id, resetToken }: RemoteId): void {
    // With join: `+` would keep the parts beside the whole.
    owner.remoteIds = [owner.remoteIds, packed(id), packed(resetToken)].join('');
    const word = wordOf(id);
    const present = this.#listOf(word);
    if (present.length < MAX_SHARED) this.#setList(word, [...present, owner]);
  }

  /**
   * Replaces the ids in force; those that the peer retired are forgotten (RFC 9000 §10.3.1). A known id keeps its
   * token: the core, which reports the ids in force, has none for the id of the handshake, and zeros in its place.
   */
  replace(owner: T, inForce: readonly RemoteId[]): void {
    const known = entriesOf(owner);
    this.remove(owner);
    for (const each of inForce) {
      const before = known.find(({ id }) => equalBytes(id, each.id));
      if (before !== undefined || each.resetToken.some((byte) => byte !== 0)) this.add(owner, before ?? each);
    }
  }

  /** Forgets all ids of an owner. */
  remove(owner: T): void {
    for (const { id } of entriesOf(owner)) this.#forget(wordOf(id), owner);
    owner.remoteIds = '';
  }

  /** Returns the owner that a Reset with this id and token ends; the token is compared in constant time. */
  find(id: Uint8Array, token: Uint8Array): T | undefined {
    const holds = (entry: RemoteId): boolean => equalBytes(entry.id, id) && equalBytes(entry.resetToken, token);
    return this.#listOf(wordOf(id)).find((owner) => entriesOf(owner).some(holds));
  }

  /** Removes one entry per id with that word: an owner may have several. */
  #forget(word: number, owner: T): void {
    const present = this.#listOf(word);
    const position = present.indexOf(owner);
    if (position >= 0) this.#setList(word, present.toSpliced(position, 1));
  }

  #listOf(word: number): readonly T[] {
    const present = this.#owners.get(word);
    if (present === undefined) return [];
    return Array.isArray(present) ? present : [present as T];
  }

  #setList(word: number, list: readonly T[]): void {
    const [first] = list;
    if (first === undefined) this.#owners.delete(word);
    else this.#owners.set(word, list.length === 1 ? first : list);
  }
}

function entriesOf({ remoteIds }: RemoteIdOwner): RemoteId[] {
  const bytes = unpacked(remoteIds);
  return Array.from({ length: bytes.length / ENTRY_LENGTH }, (_, index) => ({
    id: bytes.subarray(index * ENTRY_LENGTH, index * ENTRY_LENGTH + ID_LENGTH),
    resetToken: bytes.subarray(index * ENTRY_LENGTH + ID_LENGTH, (index + 1) * ENTRY_LENGTH),
  }));
}

/** Signed, since engines store such a number without an object. */
function wordOf(id: Uint8Array): number {
  return u32(id, 0) | 0;
}
