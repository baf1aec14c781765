/**
 * The attached devices and their sessions: only in memory, and lost with the process, as the sessions are. The
 * directory of a base station. One session per device; the newest attach wins.
 */
import type { Session } from '../../runtime/session/index.ts';
import type { DeviceIds, Directory, Location } from './directory.ts';

/** A device and the session over which it is attached. */
export interface Attachment extends DeviceIds {
  readonly session: Session;
  /** Unix ms. */
  readonly since: number;
}

/** The attached devices of a base station. */
export class Presence implements Directory {
  readonly #byDevice = new Map<string, Attachment>();
  readonly #bySession = new Map<Session, Attachment>();

  /** Number of attached devices. */
  get size(): number {
    return this.#byDevice.size;
  }

  get all(): Iterable<Attachment> {
    return this.#byDevice.values();
  }

  /** @returns the attachment of the same device that this one replaces, when it was another session's */
  add(entry: Attachment): Attachment | null {
    const name = deviceName(entry);
    this.remove(entry.session);
    const earlier = this.#byDevice.get(name) ?? null;
    if (earlier) this.#bySession.delete(earlier.session);
    this.#byDevice.set(name, entry);
    this.#bySession.set(entry.session, entry);
    return earlier;
  }

  async locate(device: DeviceIds): Promise<Location | null> {
    const entry = this.#byDevice.get(deviceName(device));
    return entry === undefined ? null : { at: 'here', session: entry.session };
  }

  ofSession(session: Session): Attachment | null {
    return this.#bySession.get(session) ?? null;
  }

  /** Removes an ended session. Harmless when it was not attached, or replaced. */
  remove(session: Session): void {
    const entry = this.#bySession.get(session);
    if (entry === undefined) return;
    this.#bySession.delete(session);
    this.#byDevice.delete(deviceName(entry));
  }
}

/** Returns one text per device; no id contains a dot. */
export function deviceName({ productId, deviceId }: DeviceIds): string {
  return `${productId}.${deviceId}`;
}
