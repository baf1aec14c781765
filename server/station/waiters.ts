/**
 * Clients that wait for a device to attach, bounded per device, per session and in all. A waiter leaves when it is
 * served, gives up, or its session ends.
 */
import type { Session } from '../../transport/session/index.ts';
import type { DeviceIds } from './directory.ts';
import { type PendingConnect, PendingConnects } from './pending-connects.ts';

export interface Waiter extends PendingConnect {
  /** The device has attached. */
  readonly serve: () => void;
}

export interface WaiterLimits {
  waitersPerDevice: number;
  waitersPerSession: number;
  waiters: number;
}

/** All waiting clients of a base station. */
export class Waiters {
  readonly #limits: WaiterLimits;
  readonly #waiting = new PendingConnects<Waiter>();

  constructor(limits: WaiterLimits) {
    this.#limits = limits;
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
    this.#waiting.add(waiter);
    return true;
  }

  /** Takes out all that wait for the device and serves them. */
  serve(device: DeviceIds): void {
    for (const waiter of [...this.#waiting.ofDevice(device)]) {
      this.#waiting.remove(waiter);
      waiter.serve();
    }
  }

  /** The session ended. */
  removeSession(session: Session): void {
    for (const waiter of [...this.#waiting.ofSession(session)]) this.#waiting.remove(waiter);
  }

  /** The client gave its request up. */
  removeExchange(session: Session, exchange: number): void {
    for (const waiter of this.#waiting.ofExchange(session, exchange)) this.#waiting.remove(waiter);
  }
}
