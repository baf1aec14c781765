/** Unanswered connects, indexed by their device and by their session. */
import type { Session } from '../../runtime/session/index.ts';
import type { DeviceIds } from './directory.ts';
import { deviceName } from './presence.ts';

export interface PendingConnect {
  readonly device: DeviceIds;
  readonly session: Session;
  /** Exchange of the request. */
  readonly exchange: number;
}

/** A set with two indices. Its results are live: copy them before entries change. */
export class PendingConnects<Entry extends PendingConnect> {
  readonly #byDevice = new Map<string, Set<Entry>>();
  readonly #bySession = new Map<Session, Set<Entry>>();
  #size = 0;

  get size(): number {
    return this.#size;
  }

  add(entry: Entry): void {
    addTo(this.#byDevice, deviceName(entry.device), entry);
    addTo(this.#bySession, entry.session, entry);
    this.#size++;
  }

  /** @returns false when it was not in the set */
  remove(entry: Entry): boolean {
    if (!this.ofSession(entry.session).has(entry)) return false;
    removeFrom(this.#byDevice, deviceName(entry.device), entry);
    removeFrom(this.#bySession, entry.session, entry);
    this.#size--;
    return true;
  }

  ofDevice(device: DeviceIds): ReadonlySet<Entry> {
    return this.#byDevice.get(deviceName(device)) ?? new Set();
  }

  ofSession(session: Session): ReadonlySet<Entry> {
    return this.#bySession.get(session) ?? new Set();
  }

  ofExchange(session: Session, exchange: number): Entry[] {
    return [...this.ofSession(session)].filter((entry) => entry.exchange === exchange);
  }
}

function addTo<Key, Entry>(index: Map<Key, Set<Entry>>, key: Key, entry: Entry): void {
  const entries = index.get(key);
  if (entries === undefined) index.set(key, new Set([entry]));
  else entries.add(entry);
}

function removeFrom<Key, Entry>(index: Map<Key, Set<Entry>>, key: Key, entry: Entry): void {
  const entries = index.get(key)!;
  entries.delete(entry);
  if (entries.size === 0) index.delete(key);
}
