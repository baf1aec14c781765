/**
 * Ends the channels of devices that were removed or got another key, by any process. The store is checked twice a
 * second for such a change, which reads one row; only then is each attached device looked up.
 */

import type { Cancel, Clock, Log } from '../../platform/environment.ts';
import { CloseCode } from '../../protocol/errors/index.ts';
import { fingerprintsEqual } from '../../protocol/identity/index.ts';
import type { Store } from '../storage/store.ts';
import { type Attachment, deviceName, type Presence } from './presence.ts';

export interface RevocationOptions {
  readonly clock: Clock;
  readonly log: Log;
  readonly store: Pick<Store, 'device' | 'devicesRevision'>;
  readonly presence: Presence;
}

/** ms between two checks. */
const INTERVAL = 500;
/** Devices looked up in one turn of the event loop. */
const TURN = 50;

export class Revocation {
  readonly #options: RevocationOptions;
  /** Changes up to this revision have been handled. */
  #revision = -1;
  /** Devices attached since the last check: a change may have come between the check of their attach and now. */
  #fresh: Attachment[] = [];
  #cancel: Cancel = () => {};
  #stopped = false;

  constructor(options: RevocationOptions) {
    this.#options = options;
    this.#schedule();
  }

  /** Adds a device that has attached. */
  attached(entry: Attachment): void {
    this.#fresh.push(entry);
  }

  stop(): void {
    this.#stopped = true;
    this.#cancel();
  }

  #schedule(): void {
    if (!this.#stopped) this.#cancel = this.#options.clock.schedule(INTERVAL, () => void this.#look());
  }

  async #look(): Promise<void> {
    const { log, presence, store } = this.#options;
    try {
      // Devices that attached and left again need no lookup.
      if (presence.size === 0) this.#fresh = [];
      else {
        const revision = await store.devicesRevision();
        const fresh = this.#fresh.splice(0);
        try {
          await this.#lookAt(revision === this.#revision ? fresh : [...presence.all]);
        } catch (error) {
          this.#fresh.push(...fresh.filter(({ session }) => session.isOpen));
          throw error;
        }
        this.#revision = revision;
      }
    } catch (error) {
      log.debug('the registration of attached devices could not be looked up', { error: String(error) });
    }
    this.#schedule();
  }

  async #lookAt(attached: readonly Attachment[]): Promise<void> {
    for (const [index, entry] of attached.entries()) {
      await this.#lookAtOne(entry);
      if (index % TURN === TURN - 1) await new Promise<void>((resolve) => void this.#options.clock.schedule(0, resolve));
    }
  }

  async #lookAtOne(entry: Attachment): Promise<void> {
    const { log, store } = this.#options;
    const { session } = entry;
    const device = await store.device(entry.productId, entry.deviceId);
    if (device?.fingerprint && fingerprintsEqual(device.fingerprint, session.peer.fingerprint)) return;
    if (!session.isOpen) return;
    const reason = device === null ? 'the device was removed from the base station' : 'the base station has another key of the device';
    log.info('device is no longer admitted', { device: deviceName(entry), reason });
    void session.close(CloseCode.FORBIDDEN, reason);
  }
}
