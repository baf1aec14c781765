/**
 * Messages waiting for the channel, first in first out. A message with a key replaces the waiting one with the same
 * key: only the newest notification, or the latest block request, matters. Automatic answers are bounded, so that a
 * peer that sends requests and never reads cannot fill our memory.
 */

interface Entry {
  message: Uint8Array;
  readonly key: string | undefined;
  /** Called when the message is taken. */
  sent: (() => void) | undefined;
  readonly automatic: boolean;
}

/** Most automatic answers that may wait. */
export const MAX_AUTOMATIC = 256;

/** Messages that wait until the channel takes them. */
export class Outbox {
  #entries: (Entry | undefined)[] = [];
  #first = 0;
  #automatic = 0;
  readonly #keyed = new Map<string, Entry>();

  get isEmpty(): boolean {
    return this.#entries[this.#first] === undefined;
  }

  /** @param sent called when the message is taken, or when another replaces it */
  push(message: Uint8Array, key?: string, sent?: () => void): void {
    const waiting = key === undefined ? undefined : this.#keyed.get(key);
    if (waiting === undefined) {
      this.#append({ message, key, sent, automatic: false });
      return;
    }
    waiting.sent?.();
    waiting.message = message;
    waiting.sent = sent;
  }

  /** Adds an answer generated here, without the application; drops it when too many wait. */
  pushAutomatic(message: Uint8Array): void {
    if (this.#automatic === MAX_AUTOMATIC) return;
    this.#automatic++;
    this.#append({ message, key: undefined, sent: undefined, automatic: true });
  }

  /** Returns the next message, null when none waits. */
  take(): Uint8Array | null {
    const entry = this.#entries[this.#first];
    if (entry === undefined) return null;
    this.#entries[this.#first++] = undefined;
    if (this.#first === this.#entries.length || this.#first === 1024) {
      this.#entries = this.#entries.slice(this.#first);
      this.#first = 0;
    }
    if (entry.key !== undefined) this.#keyed.delete(entry.key);
    if (entry.automatic) this.#automatic--;
    entry.sent?.();
    return entry.message;
  }

  /** Removes the waiting message with this key, if there is one: it is no longer wanted. */
  drop(key: string): void {
    const entry = this.#keyed.get(key);
    if (entry === undefined) return;
    this.#keyed.delete(key);
    this.#entries.splice(this.#entries.indexOf(entry, this.#first), 1);
  }

  clear(): void {
    this.#entries = [];
    this.#first = 0;
    this.#automatic = 0;
    this.#keyed.clear();
  }

  #append(entry: Entry): void {
    this.#entries.push(entry);
    if (entry.key !== undefined) this.#keyed.set(entry.key, entry);
  }
}
