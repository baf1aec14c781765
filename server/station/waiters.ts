/**
 * Clients that wait for a device to attach, bounded per device, per session and in total. One address has a quarter of
 * the slots of a device, so that one client cannot hold them all. A waiter leaves when it is served, gives up, or its
 * session ends.
 */
import type { Session } from '../../runtime/session/index.ts';
import { ConcurrencyLimit } from '../concurrency-limit.ts';
import type { DeviceIds } from './directory.ts';
import { type PendingConnect, PendingConnects } from './pending-connects.ts';
import { deviceName } from './presence.ts';
import type { StationSettings } from './settings.ts';

export interface Waiter extends PendingConnect {
  /** Address of the client, as `addressKey` returns it. */
  readonly address: string;
  /** Called when the device has attached. */
  readonly serve: () => void;
}

type WaiterLimits = Pick<StationSettings, 'waitersPerDevice' | 'waitersPerSession' | 'waiters'>;

/** Share of a device's slots that one address may take. */
const ADDRESS_SHARE = 1 / 4;

/** All waiting clients of a base station. */
export class Waiters {
  readonly #limits: WaiterLimits;
  readonly #waiting = new PendingConnects<Waiter>();
  /** Waiters by address and device. */
  readonly #perAddress: ConcurrencyLimit;
  /** Releases the slot of a waiter at its address. */
  readonly #slots = new Map<Waiter, () => void>();

  constructor(limits: WaiterLimits) {
    this.#limits = limits;
    this.#perAddress = new ConcurrencyLimit({ perKey: Math.max(1, Math.floor(ADDRESS_SHARE * limits.waitersPerDevice)) });
  }

  get size(): number {
    return this.#waiting.size;
  }

  /** @returns false when a limit is reached */
  add(waiter: Waiter): boolean {
    const { waiters, waitersPerDevice, waitersPerSession } = this.#limits;
    if (this.#waiting.size >= waiters) return false;
    if (this.#waiting.ofDevice(waiter.device).size >= waitersPerDevice) return false;
    if (this.#waiting.ofSession(waiter.session).size >= waitersPerSession) return false;
    const release = this.#perAddress.acquire(`${deviceName(waiter.device)} ${waiter.address}`);
    if (release === null) return false;
    this.#slots.set(waiter, release);
    this.#waiting.add(waiter);
    return true;
  }

  /** Removes all clients that wait for the device and serves them. */
  serve(device: DeviceIds): void {
    for (const waiter of [...this.#waiting.ofDevice(device)]) {
      this.#remove(waiter);
      waiter.serve();
    }
  }

  /** Removes the waiters of an ended session. */
  removeSession(session: Session): void {
    for (const waiter of [...this.#waiting.ofSession(session)]) this.#remove(waiter);
  }

  /** Removes the waiter of a cancelled request. */
  removeExchange(session: Session, exchange: number): void {
    for (const waiter of this.#waiting.ofExchange(session, exchange)) this.#remove(waiter);
  }

  #remove(waiter: Waiter): void {
    this.#waiting.remove(waiter);
    this.#slots.get(waiter)!();
    this.#slots.delete(waiter);
  }
}
