/**
 * What `svc device` keeps of files that arrived in part, so that a client can resume: `.<name>.<fingerprint of the client's key>.part` in the directory of
 * the files, for 24 h since its last byte.
 *
 * There are 8 in all. One more, and the client with the most of them loses its oldest, among equals the oldest of all: a client takes no place of
 * another who has fewer. A transfer that runs holds its leftover, which does not count then; a second one of the same client and name ends the first.
 * They survive a restart, also of a process that was killed.
 */
import { lstat, readdir, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { Cancel, Clock } from '../../transport/environment.ts';

/** Leftovers of all clients. */
export const MAX_LEFTOVERS = 8;
/** ms since the last byte. */
export const LEFTOVER_TIME = 24 * 60 * 60 * 1000;

/** Hidden, and no name that a client may give. */
const LEFTOVER = /^\.(.+)\.([0-9a-f]{64})\.part$/;
/** A file on its way that cannot be resumed. */
const TEMPORARY = /^\..+\.[0-9a-f]{12}\.part$/;

interface Entry {
  readonly client: string;
  readonly path: string;
  /** `Clock.now` when it is removed. */
  until: number;
  /** The transfer that has it. */
  holder: Holder | null;
}

interface Holder {
  readonly supersede: () => void;
  readonly released: Promise<void>;
}

/** A leftover in the hands of a transfer. */
export interface HeldLeftover {
  /** Where it is; there may be no such file yet. */
  readonly path: string;
  /** To be called once. What is there then is kept; nothing, if the file has its name or is empty. */
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

  /** Takes over what an earlier process left, and removes what is too old, too much, or cannot be resumed. For the process that has the directory. */
  async open(): Promise<void> {
    for (const name of await readdir(this.#directory)) {
      // On a disk that takes no writes it stays.
      if (TEMPORARY.test(name)) await rm(join(this.#directory, name), { force: true }).catch(() => {});
      const [, , client] = LEFTOVER.exec(name) ?? [];
      if (client !== undefined) await this.#found(join(this.#directory, name), client);
    }
    await this.#tidy();
  }

  /**
   * Gives the leftover of a client's file to a transfer, when the transfer that had it has given it back.
   * @param client fingerprint @param supersede ends the transfer that takes it now, for one that comes later
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
        if ((await sizeOf(entry.path)) > 0) entry.until = this.#clock.now() + LEFTOVER_TIME;
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

  /** A time that lies ahead is that of a clock that was set back. */
  async #found(path: string, client: string): Promise<void> {
    const found = await lstat(path);
    if (!found.isFile()) return;
    const age = Math.max(0, this.#clock.wallTime() - found.mtimeMs);
    this.#entries.set(path, { client, path, until: this.#clock.now() + LEFTOVER_TIME - age, holder: null });
  }

  /** Removes what is too old or too much, and comes back when the next one is too old. */
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

  /** A transfer that wants it waits until it is gone. One that cannot be removed is forgotten until the next start. */
  async #remove(entry: Entry): Promise<void> {
    const removed = rm(entry.path, { force: true }).catch(() => {});
    entry.holder = { supersede: () => {}, released: removed };
    await removed;
    if (this.#entries.get(entry.path) === entry) this.#entries.delete(entry.path);
  }
}

/** The oldest of the client with the most. */
function outcast(entries: readonly Entry[]): Entry {
  const count = (client: string): number => entries.filter((entry) => entry.client === client).length;
  const most = Math.max(...entries.map(({ client }) => count(client)));
  return entries.filter(({ client }) => count(client) === most).reduce((oldest, entry) => (entry.until < oldest.until ? entry : oldest));
}

async function sizeOf(path: string): Promise<number> {
  try {
    return (await stat(path)).size;
  } catch {
    return 0;
  }
}
