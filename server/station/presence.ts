/**
 * Which devices are attached, over which session: in memory only, gone with the process, as the sessions are.
 * One session per device; the newest attach wins.
 */
import type { Session } from '../../transport/session/index.ts';

/** A device and the session it is attached over. */
export interface Attached {
  readonly productId: string;
  readonly deviceId: string;
  readonly session: Session;
}

/** The attached devices of a base station. */
export class Presence {
  readonly #byDevice = new Map<string, Attached>();
  readonly #bySession = new Map<Session, Attached>();

  /** Devices attached now. */
  get size(): number {
    return this.#byDevice.size;
  }

  /** @returns the attachment of the same device that this one replaces, when it was another session's */
  add(entry: Attached): Attached | null {
    const name = deviceName(entry);
    this.remove(entry.session);
    const earlier = this.#byDevice.get(name) ?? null;
    if (earlier) this.#bySession.delete(earlier.session);
    this.#byDevice.set(name, entry);
    this.#bySession.set(entry.session, entry);
    return earlier;
  }

  find(device: { productId: string; deviceId: string }): Attached | null {
    return this.#byDevice.get(deviceName(device)) ?? null;
  }

  ofSession(session: Session): Attached | null {
    return this.#bySession.get(session) ?? null;
  }

  /** The session ended. Harmless when it was not attached, or replaced. */
  remove(session: Session): void {
    const entry = this.#bySession.get(session);
    if (entry === undefined) return;
    this.#bySession.delete(session);
    this.#byDevice.delete(deviceName(entry));
  }
}

/** One text per device; the dot stands in no id. */
export function deviceName({ productId, deviceId }: { productId: string; deviceId: string }): string {
  return `${productId}.${deviceId}`;
}
