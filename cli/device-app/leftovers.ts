/**
 * Partial files of `svc device`, from which a client can resume: `.<name>.<fingerprint of the client's key>.part` in
 * the directory of the files, for 24 h since the last byte.
 *
 * There are at most 8. One more removes the oldest of the client with the most, among equals the oldest of all: a
 * client never displaces one that has fewer. A running transfer holds its leftover, which then does not count; a second
 * transfer of the same client and name ends the first. Leftovers survive a restart, also after a kill.
 */
import { lstat, readdir, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { Cancel, Clock } from '../../platform/environment.ts';

/** Leftovers of all clients. */
export const MAX_LEFTOVERS = 8;
/** ms since the last byte. */
export const LEFTOVER_TIME = 24 * 60 * 60 * 1000;

/** Hidden, and not a name that a client may use. */
const LEFTOVER = /^\.(.+)\.([0-9a-f]{64})\.part$/;
/** A file in transfer that cannot be resumed. */
const TEMPORARY = /^\..+\.[0-9a-f]{12}\.part$/;

interface Entry {
  readonly client: string;
  readonly path: string;
  /** `Clock.now` when it is removed. */
  until: number;
  /** The transfer that holds it. */
  holder: Holder | null;
}

interface Holder {
  readonly supersede: () => void;
  readonly released: Promise<void>;
}

/** A leftover held by a transfer. */
export interface HeldLeftover {
  /** Its path; the file may not exist yet. */
  readonly path: string;
  /** To be called once. Keeps the file, unless it has been renamed or is empty. */
  release(): Promise<void>;
}

export class Leftovers {
  readonly #directory: string;
  readonly #clock: Clock;
  readonly #entries = new Map<string, Entry>();
  #cancel: Cancel = () => {};

  constructor(directory: string, clock: Clock) {
    this.#directory = directory;
    this.#clock = clock;
  }

  /**
   * Takes over the leftovers of an earlier process, and removes those that are too old, too many, or cannot be resumed.
   * The caller's process must hold the directory.
   */
  async open(): Promise<void> {
    for (const name of await readdir(this.#directory)) {
      // On a disk that accepts no writes it stays.
      if (TEMPORARY.test(name)) await rm(join(this.#directory, name), { force: true }).catch(() => {});
      const [, , client] = LEFTOVER.exec(name) ?? [];
      if (client !== undefined) await this.#found(join(this.#directory, name), client);
    }
    await this.#tidy();
  }

  /**
   * Hands the leftover of a client's file to a transfer, once its earlier holder has released it.
   * @param client fingerprint
   * @param supersede ends the transfer that holds it now, for a later one
   */
  async hold(client: string, name: string, supersede: () => void): Promise<HeldLeftover> {
    const path = join(this.#directory, `.${name}.${client}.part`);
    for (let holder = this.#holder(path); holder !== null; holder = this.#holder(path)) {
      holder.supersede();
      await holder.released;
    }
    const entry = { client, path, until: Number.POSITIVE_INFINITY, holder: null };
    this.#entries.set(path, entry);
    return this.#given(entry, supersede);
  }

  #given(entry: Entry, supersede: () => void): HeldLeftover {
    let released = (): void => {};
    entry.holder = { supersede, released: new Promise((resolve) => (released = resolve)) };
    const release = async (): Promise<void> => {
      try {
        const found = await stat(entry.path).catch(() => null);
        if (found !== null && found.size > 0) entry.until = this.#clock.now() + LEFTOVER_TIME;
        else await this.#remove(entry);
      } finally {
        entry.holder = null;
        released();
      }
      await this.#tidy();
    };
    return { path: entry.path, release };
  }

  #holder(path: string): Holder | null {
    return this.#entries.get(path)?.holder ?? null;
  }

  /** Adds a leftover found on disk. A time in the future comes from a clock that was set back. */
  async #found(path: string, client: string): Promise<void> {
    const found = await lstat(path);
    if (!found.isFile()) return;
    const age = Math.max(0, this.#clock.wallTime() - found.mtimeMs);
    this.#entries.set(path, { client, path, until: this.#clock.now() + LEFTOVER_TIME - age, holder: null });
  }

  /** Removes leftovers that are too old or too many, and schedules the next check. */
  async #tidy(): Promise<void> {
    this.#cancel();
    for (const entry of this.#idle()) {
      // A transfer may have taken it while another one was removed.
      if (entry.until <= this.#clock.now() && this.#isIdle(entry)) await this.#remove(entry);
    }
    for (let idle = this.#idle(); idle.length > MAX_LEFTOVERS; idle = this.#idle()) await this.#remove(outcast(idle));
    const next = Math.min(...this.#idle().map(({ until }) => until));
    this.#cancel();
    this.#cancel = this.#clock.schedule(next - this.#clock.now(), () => void this.#tidy());
  }

  #idle(): Entry[] {
    return [...this.#entries.values()].filter((entry) => this.#isIdle(entry));
  }

  #isIdle(entry: Entry): boolean {
    return entry.holder === null && this.#entries.get(entry.path) === entry;
  }

  /**
   * A transfer that wants it waits until it is removed. One that cannot be removed is forgotten until the next start.
   */
  async #remove(entry: Entry): Promise<void> {
    const removed = rm(entry.path, { force: true }).catch(() => {});
    entry.holder = { supersede: () => {}, released: removed };
    await removed;
    if (this.#entries.get(entry.path) === entry) this.#entries.delete(entry.path);
  }
}

/** Returns the oldest leftover of the client with the most. */
function outcast(entries: readonly Entry[]): Entry {
  const count = (client: string): number => entries.filter((entry) => entry.client === client).length;
  const most = Math.max(...entries.map(({ client }) => count(client)));
  return entries.filter(({ client }) => count(client) === most).reduce((oldest, entry) => (entry.until < oldest.until ? entry : oldest));
}
