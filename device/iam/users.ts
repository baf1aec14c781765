/**
 * The users, as an immutable table: found by name and by the fingerprint of each of their keys. A change gives a new table.
 *
 * Password verifiers are kept beside the records, so that no record that is handed out carries one.
 */
import { LocalError } from '../../protocol/errors/index.ts';
import type { IamUser } from '../../protocol/records/index.ts';
import type { PasswordVerifier } from './state.ts';

/** A user and what is left of the password. */
export interface UserEntry {
  readonly user: IamUser;
  readonly verifier?: PasswordVerifier;
}

export class Users {
  readonly #entries: ReadonlyMap<string, UserEntry>;
  readonly #byFingerprint: ReadonlyMap<string, string>;

  private constructor(entries: ReadonlyMap<string, UserEntry>, byFingerprint: ReadonlyMap<string, string>) {
    this.#entries = entries;
    this.#byFingerprint = byFingerprint;
  }

  /** @throws LocalError IN_USE when two have one name or fingerprint */
  static of(entries: readonly UserEntry[]): Users {
    const [byName, byFingerprint] = [new Map<string, UserEntry>(), new Map<string, string>()];
    for (const entry of entries) insert(byName, byFingerprint, entry);
    return new Users(byName, byFingerprint);
  }

  get size(): number {
    return this.#entries.size;
  }

  /** In the order they came. */
  get entries(): Iterable<UserEntry> {
    return this.#entries.values();
  }

  /** In the order they came. */
  get names(): string[] {
    return [...this.#entries.keys()];
  }

  user(username: string): IamUser | undefined {
    return this.#entries.get(username)?.user;
  }

  entry(username: string): UserEntry | undefined {
    return this.#entries.get(username);
  }

  byFingerprint(fingerprint: string): IamUser | undefined {
    const username = this.#byFingerprint.get(fingerprint);
    return username === undefined ? undefined : this.user(username);
  }

  /** @throws LocalError IN_USE */
  adding(entry: UserEntry): Users {
    return this.#changed((entries, byFingerprint) => insert(entries, byFingerprint, entry));
  }

  /** The user in a new form, which may have another name. @throws LocalError IN_USE */
  replacing(username: string, entry: UserEntry): Users {
    return this.#changed((entries, byFingerprint) => {
      this.#forget(username, byFingerprint);
      if (entry.user.username !== username) entries.delete(username);
      insert(entries, byFingerprint, entry, username);
    });
  }

  removing(username: string): Users {
    return this.#changed((entries, byFingerprint) => {
      this.#forget(username, byFingerprint);
      entries.delete(username);
    });
  }

  #changed(change: (entries: Map<string, UserEntry>, byFingerprint: Map<string, string>) => void): Users {
    const [entries, byFingerprint] = [new Map(this.#entries), new Map(this.#byFingerprint)];
    change(entries, byFingerprint);
    return new Users(entries, byFingerprint);
  }

  #forget(username: string, byFingerprint: Map<string, string>): void {
    for (const { fingerprint } of this.user(username)?.fingerprints ?? []) byFingerprint.delete(fingerprint);
  }
}

/** @param replaced name of the entry this one stands in for */
function insert(entries: Map<string, UserEntry>, byFingerprint: Map<string, string>, entry: UserEntry, replaced?: string): void {
  const { username, fingerprints } = entry.user;
  if (username !== replaced && entries.has(username)) throw new LocalError('IN_USE', `there is a user "${username}"`);
  for (const { fingerprint } of fingerprints) {
    const owner = byFingerprint.get(fingerprint);
    if (owner !== undefined) throw new LocalError('IN_USE', `the fingerprint ${fingerprint} belongs to user "${owner}"`);
    byFingerprint.set(fingerprint, username);
  }
  entries.set(username, entry);
}
