/**
 * Which sessions the base station keeps: whoever has a key can make one, so that they may not take the places of devices and clients.
 *
 * - A session is unproved until it shows a valid credential: an attach that is accepted, or a connect with a token or key that is. One that shows none
 *   in time is closed.
 * - When there is no room for another session, the oldest unproved one is closed for it.
 * - The last quarter of the places is for keys that are registered as devices'. They are asked for in the store only when it comes to that. Such a key
 *   has one place there for a session that is unproved: a newer one takes it.
 * - One address has a share of the places and no more.
 * - The clients of one device have as many places as they leave to others, so that who has a token of one device cannot fill the base station; those that
 *   show one token or key have as many of them as are left.
 */
import { CloseCode } from '../../protocol/errors/index.ts';
import type { Cancel, Clock } from '../../transport/environment.ts';
import type { LogTally } from '../../transport/log-tally.ts';
import type { Session } from '../../transport/session/index.ts';
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
  /** A session has shown a valid credential. */
  readonly onProved: (session: Session) => void;
}

/** Part of the places that is kept for devices. */
const KEPT = 1 / 4;

interface Admitted {
  readonly release: () => void;
  /** Ends the wait for a credential; null when one was shown. */
  cancelTimeout: Cancel | null;
  /** Gives back its place among the clients of a device; null when it is none. */
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
  readonly #admitted = new Map<Session, Admitted>();
  /** Those that may be closed for another one, the oldest first. */
  readonly #unproved = new Set<Session>();
  /** Those of the last quarter, by the fingerprint of their key. */
  readonly #unprovedDevices = new Map<string, Session>();

  constructor(options: AdmissionOptions) {
    this.#options = options;
    this.#perAddress = new ConcurrencyLimit({ perKey: options.settings.connectionsPerAddress });
  }

  /** Sessions that may be closed for another one, outside the last quarter. */
  get unproved(): number {
    return this.#unproved.size;
  }

  /** A session has arrived. False when it was refused and is being closed. */
  arrived(session: Session): boolean {
    const { clock, settings } = this.#options;
    const release = this.#perAddress.acquire(addressKey(session.path));
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
   * The session has shown a valid credential for the device. It counts as a client of the first one. False when those have their share: it is being
   * closed. @param credential hash of the token or key
   */
  client(session: Session, device: DeviceIds, credential: string): boolean {
    const place = this.#admitted.get(session);
    if (place === undefined) return false;
    if (place.releaseClient !== null) return true;
    const name = deviceName(device);
    const holder = `${name} ${credential}`;
    const left = this.#free - this.#perDevice.inUse(name);
    if (left <= 0 || this.#perCredential.inUse(holder) >= Math.max(1, left)) {
      this.#close(session, CloseCode.BUSY, 'no room for another client of this device');
      return false;
    }
    const releases = [this.#perDevice.acquire(name)!, this.#perCredential.acquire(holder)!];
    place.releaseClient = () => releases.forEach((release) => void release());
    this.proved(session);
    return true;
  }

  /** The session has shown a valid credential. */
  proved(session: Session): void {
    const place = this.#admitted.get(session);
    this.#forgetUnproved(session);
    place?.cancelTimeout?.();
    if (place === undefined) return;
    place.cancelTimeout = null;
    this.#options.onProved(session);
  }

  /** Whether the session has shown a valid credential. */
  isProved(session: Session): boolean {
    return this.#admitted.get(session)?.cancelTimeout === null;
  }

  /** The session has ended. */
  ended(session: Session): void {
    const place = this.#admitted.get(session);
    if (place === undefined) return;
    this.#admitted.delete(session);
    this.#forgetUnproved(session);
    place.cancelTimeout?.();
    place.release();
    place.releaseClient?.();
  }

  /** Places that anybody may take. */
  get #open(): number {
    const { connections } = this.#options.settings;
    return connections - Math.floor(connections * KEPT);
  }

  /** Those of them that are left, or make way. */
  get #free(): number {
    return this.#open - (this.#admitted.size - this.#unproved.size);
  }

  #forgetUnproved(session: Session): void {
    const { remoteFingerprint } = session;
    this.#unproved.delete(session);
    if (this.#unprovedDevices.get(remoteFingerprint) === session) this.#unprovedDevices.delete(remoteFingerprint);
  }

  /** Closes an unproved session for this one: in the last quarter that of the same key, else the oldest. False when there is none. */
  #makeRoom({ remoteFingerprint }: Session): boolean {
    const [oldest] = this.#unproved;
    const victim = this.#unprovedDevices.get(remoteFingerprint) ?? oldest;
    if (victim === undefined) return false;
    this.#close(victim, CloseCode.BUSY, 'no room for a connection without a credential');
    return true;
  }

  /** Keeps a session in the last quarter only with the key of a device. */
  async #admitDevice(session: Session): Promise<void> {
    const { store, tally } = this.#options;
    this.#unprovedDevices.set(session.remoteFingerprint, session);
    try {
      if ((await store.devicesByFingerprint(session.remoteFingerprint)).length > 0) return;
    } catch (error) {
      tally.log.error('the base station cannot look up the key of a session', { error: String(error) });
    }
    if (this.#admitted.has(session)) this.#close(session, CloseCode.BUSY, 'no room for another connection');
  }

  #close(session: Session, code: number, reason: string): void {
    this.ended(session);
    this.#tell(session, reason);
    void session.close(code, reason);
  }

  #refuse(session: Session, reason: string): false {
    this.#tell(session, reason);
    void session.close(CloseCode.BUSY, reason);
    return false;
  }

  #tell({ path }: Session, reason: string): void {
    this.#options.tally.count('connection refused', { address: path.key, reason });
  }
}
