/**
 * Decides which sessions the base station keeps. Any key can open a session, and such sessions must not take the slots
 * of devices and clients.
 *
 * - A session is unproved until it shows a valid credential: an accepted attach, or a connect with an accepted token or
 *   key. Without one in time it is closed.
 * - When there is no room for another session, the oldest unproved one is closed.
 * - The last quarter of the slots is for keys that are registered for devices. They are looked up only when
 *   this quarter is needed. Such a key has one slot there for an unproved session: a newer one replaces it.
 * - One address has a share of the slots.
 * - The clients of one device hold at most as many slots as they leave to others, so that the holder of one device's
 *   token cannot fill the base station. The same holds for the clients with the same token or key among them.
 */

import type { Cancel, Clock } from '../../platform/environment.ts';
import { CloseCode } from '../../protocol/errors/index.ts';
import { placeOfPeer } from '../../protocol/path.ts';
import type { LogTally } from '../../runtime/log-tally.ts';
import type { Session } from '../../runtime/session/index.ts';
import { ConcurrencyLimit } from '../concurrency-limit.ts';
import type { Store } from '../storage/store.ts';
import type { DeviceIds } from './directory.ts';
import { deviceName } from './presence.ts';
import { addressKey } from './rates.ts';
import type { StationSettings } from './settings.ts';

export interface AdmissionOptions {
  readonly clock: Clock;
  readonly tally: LogTally;
  readonly store: Pick<Store, 'devicesByFingerprint'>;
  readonly settings: Pick<StationSettings, 'connections' | 'connectionsPerAddress' | 'arrivalTimeout'>;
  /** Called when a session has shown a valid credential. */
  readonly onProved: (session: Session) => void;
}

/** Share of the slots that is reserved for devices. */
const KEPT = 1 / 4;

interface Slot {
  readonly release: () => void;
  /** Cancels the wait for a credential; null after one was shown. */
  cancelTimeout: Cancel | null;
  /** Releases its slot among the clients of a device; null without one. */
  releaseClient: (() => void) | null;
}

/** The sessions of a base station. */
export class Admission {
  readonly #options: AdmissionOptions;
  readonly #perAddress: ConcurrencyLimit;
  /** Clients of each device. */
  readonly #perDevice = new ConcurrencyLimit({});
  /** Clients of each device with the same token or key. */
  readonly #perCredential = new ConcurrencyLimit({});
  readonly #admitted = new Map<Session, Slot>();
  /** Sessions that may be closed for another one, the oldest first. */
  readonly #unproved = new Set<Session>();
  /** Unproved sessions of the last quarter, by the fingerprint of their key. */
  readonly #unprovedDevices = new Map<string, Session>();

  constructor(options: AdmissionOptions) {
    this.#options = options;
    this.#perAddress = new ConcurrencyLimit({ perKey: options.settings.connectionsPerAddress });
  }

  /** Number of sessions that may be closed for another one, outside the last quarter. */
  get unproved(): number {
    return this.#unproved.size;
  }

  /** Takes a new session. Returns false when it was refused and is being closed. */
  arrived(session: Session): boolean {
    const { clock, settings } = this.#options;
    const release = this.#perAddress.acquire(addressKey(session.paths.active));
    if (release === null) return this.#refuse(session, 'too many connections from one address');
    if (this.#admitted.size >= this.#open && !this.#makeRoom(session) && this.#admitted.size >= settings.connections) {
      release();
      return this.#refuse(session, 'no room for another connection');
    }
    const cancelTimeout = clock.schedule(settings.arrivalTimeout, () =>
      this.#close(session, CloseCode.NO_ERROR, 'no valid credential in time'),
    );
    this.#admitted.set(session, { release, cancelTimeout, releaseClient: null });
    if (this.#admitted.size > this.#open) void this.#admitDevice(session);
    else this.#unproved.add(session);
    return true;
  }

  /**
   * Notes that the session has shown a valid credential for the device; it counts as a client of the first such device.
   * Returns false when that device's clients have their share: the session is being closed.
   * @param credential hash of the token or key
   */
  client(session: Session, device: DeviceIds, credential: string): boolean {
    const admitted = this.#admitted.get(session);
    if (admitted === undefined) return false;
    if (admitted.releaseClient !== null) return true;
    const name = deviceName(device);
    const holder = `${name} ${credential}`;
    const left = this.#free - this.#perDevice.inUse(name);
    if (left <= 0 || this.#perCredential.inUse(holder) >= Math.max(1, left)) {
      this.#close(session, CloseCode.BUSY, 'no room for another client of this device');
      return false;
    }
    const releases = [this.#perDevice.acquire(name)!, this.#perCredential.acquire(holder)!];
    admitted.releaseClient = () => releases.forEach((release) => void release());
    this.proved(session);
    return true;
  }

  /** Notes that the session has shown a valid credential. */
  proved(session: Session): void {
    const admitted = this.#admitted.get(session);
    this.#forgetUnproved(session);
    admitted?.cancelTimeout?.();
    if (admitted === undefined) return;
    admitted.cancelTimeout = null;
    this.#options.onProved(session);
  }

  /** Returns whether the session has shown a valid credential. */
  isProved(session: Session): boolean {
    return this.#admitted.get(session)?.cancelTimeout === null;
  }

  /** Removes an ended session. */
  ended(session: Session): void {
    const admitted = this.#admitted.get(session);
    if (admitted === undefined) return;
    this.#admitted.delete(session);
    this.#forgetUnproved(session);
    admitted.cancelTimeout?.();
    admitted.release();
    admitted.releaseClient?.();
  }

  /** Slots for all sessions. */
  get #open(): number {
    const { connections } = this.#options.settings;
    return connections - Math.floor(connections * KEPT);
  }

  /** Slots of these that are free, or used by unproved sessions. */
  get #free(): number {
    return this.#open - (this.#admitted.size - this.#unproved.size);
  }

  #forgetUnproved(session: Session): void {
    const { fingerprint } = session.peer;
    this.#unproved.delete(session);
    if (this.#unprovedDevices.get(fingerprint) === session) this.#unprovedDevices.delete(fingerprint);
  }

  /**
   * Closes an unproved session for this one: in the last quarter that of the same key, else the oldest. Returns false
   * when there is none.
   */
  #makeRoom({ peer: { fingerprint } }: Session): boolean {
    const [oldest] = this.#unproved;
    const victim = this.#unprovedDevices.get(fingerprint) ?? oldest;
    if (victim === undefined) return false;
    this.#close(victim, CloseCode.BUSY, 'no room for a connection without a credential');
    return true;
  }

  /** Keeps a session in the last quarter only if a device has its key. */
  async #admitDevice(session: Session): Promise<void> {
    const { store, tally } = this.#options;
    this.#unprovedDevices.set(session.peer.fingerprint, session);
    try {
      if ((await store.devicesByFingerprint(session.peer.fingerprint)).length > 0) return;
    } catch (error) {
      tally.log.error('the base station cannot look up the key of a session', { error: String(error) });
    }
    if (this.#admitted.has(session)) this.#close(session, CloseCode.BUSY, 'no room for another connection');
  }

  #close(session: Session, code: number, reason: string): void {
    this.ended(session);
    this.#logRefusal(session, reason);
    void session.close(code, reason);
  }

  #refuse(session: Session, reason: string): false {
    this.#logRefusal(session, reason);
    void session.close(CloseCode.BUSY, reason);
    return false;
  }

  #logRefusal({ paths }: Session, reason: string): void {
    this.#options.tally.count('connection refused', { address: placeOfPeer(paths.active), reason });
  }
}
