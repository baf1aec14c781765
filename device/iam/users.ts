/**
 * The users, as an immutable table: found by name and by the fingerprint of each of their keys. A change returns a new
 * table.
 *
 * Password verifiers are stored apart from the records, so that no record handed out contains one.
 */
import { LocalError } from '../../protocol/errors/index.ts';
import { packed, unpacked } from '../../protocol/packed-bytes.ts';
import type { PasswordVerifier } from '../../protocol/password/index.ts';
import type { IamUser } from '../../protocol/records/index.ts';

export type { PasswordVerifier };

/** A user and its password verifier. */
export interface UserEntry {
  readonly user: IamUser;
  readonly verifier?: PasswordVerifier;
}

/** An entry as stored: with a thousand users, bytes as arrays would take 0.3 MB more. */
interface KeptEntry {
  readonly user: IamUser;
  readonly verifier?: { readonly kdf: 1; readonly salt: string; readonly value: string };
}

export class Users {
  readonly #entries: ReadonlyMap<string, KeptEntry>;
  readonly #byFingerprint: ReadonlyMap<string, string>;

  private constructor(entries: ReadonlyMap<string, KeptEntry>, byFingerprint: ReadonlyMap<string, string>) {
    this.#entries = entries;
    this.#byFingerprint = byFingerprint;
  }

  /** @throws LocalError IN_USE when two have one name or fingerprint */
  static of(entries: readonly UserEntry[]): Users {
    const [byName, byFingerprint] = [new Map<string, KeptEntry>(), new Map<string, string>()];
    for (const entry of entries) insert(byName, byFingerprint, entry);
    return new Users(byName, byFingerprint);
  }

  get size(): number {
    return this.#entries.size;
  }

  /** All users with their verifiers, in the order they were added. */
  get entries(): Iterable<UserEntry> {
    return Array.from(this.#entries.values(), given);
  }

  /** The names in the order they were added. */
  get names(): string[] {
    return [...this.#entries.keys()];
  }

  /** All users in the order they were added, without verifiers. */
  get all(): IamUser[] {
    return Array.from(this.#entries.values(), ({ user }) => user);
  }

  hasVerifier(username: string): boolean {
    return this.#entries.get(username)?.verifier !== undefined;
  }

  user(username: string): IamUser | undefined {
    return this.#entries.get(username)?.user;
  }

  entry(username: string): UserEntry | undefined {
    const kept = this.#entries.get(username);
    return kept === undefined ? undefined : given(kept);
  }

  byFingerprint(fingerprint: string): IamUser | undefined {
    const username = this.#byFingerprint.get(fingerprint);
    return username === undefined ? undefined : this.user(username);
  }

  /** @throws LocalError IN_USE */
  adding(entry: UserEntry): Users {
    return this.#changed((entries, byFingerprint) => insert(entries, byFingerprint, entry));
  }

  /** Replaces a user, whose name may change, in the same place. @throws LocalError IN_USE */
  replacing(username: string, entry: UserEntry): Users {
    return this.#changed((entries, byFingerprint) => {
      this.#forget(username, byFingerprint);
      insert(entries, byFingerprint, entry, username);
      if (entry.user.username !== username) moveLastTo(entries, username);
    });
  }

  removing(username: string): Users {
    return this.#changed((entries, byFingerprint) => {
      this.#forget(username, byFingerprint);
      entries.delete(username);
    });
  }

  #changed(change: (entries: Map<string, KeptEntry>, byFingerprint: Map<string, string>) => void): Users {
    const [entries, byFingerprint] = [new Map(this.#entries), new Map(this.#byFingerprint)];
    change(entries, byFingerprint);
    return new Users(entries, byFingerprint);
  }

  #forget(username: string, byFingerprint: Map<string, string>): void {
    for (const { fingerprint } of this.user(username)?.fingerprints ?? []) byFingerprint.delete(fingerprint);
  }
}

/** @param replaced name of the entry this one replaces */
function insert(entries: Map<string, KeptEntry>, byFingerprint: Map<string, string>, entry: UserEntry, replaced?: string): void {
  const { username, fingerprints } = entry.user;
  if (username !== replaced && entries.has(username)) throw new LocalError('IN_USE', `there is already a user "${username}"`);
  for (const { fingerprint } of fingerprints) {
    const owner = byFingerprint.get(fingerprint);
    if (owner !== undefined) throw new LocalError('IN_USE', `the fingerprint ${fingerprint} belongs to user "${owner}"`);
    byFingerprint.set(fingerprint, username);
  }
  entries.set(username, kept(entry));
}

/** Moves the last entry to the position of `place`, which is removed. */
function moveLastTo(entries: Map<string, KeptEntry>, place: string): void {
  const ordered = [...entries];
  entries.clear();
  for (const [each, entry] of ordered.slice(0, -1)) {
    if (each === place) entries.set(...(ordered.at(-1) as [string, KeptEntry]));
    else entries.set(each, entry);
  }
}

function kept({ user, verifier }: UserEntry): KeptEntry {
  return verifier === undefined ? { user } : { user, verifier: { kdf: 1, salt: packed(verifier.salt), value: packed(verifier.value) } };
}

function given({ user, verifier }: KeptEntry): UserEntry {
  return verifier === undefined ? { user } : { user, verifier: { kdf: 1, salt: unpacked(verifier.salt), value: unpacked(verifier.value) } };
}
