/**
 * Clients that wait for a device to attach, bounded per device, per session and in all. A waiter goes when it is served, gives up, or
 * its session ends.
 */
import type { Session } from '../../transport/session/index.ts';
import { deviceName } from './presence.ts';

export interface Waiter {
  readonly session: Session;
  /** Of the request that waits. */
  readonly exchange: number;
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
  readonly #byDevice = new Map<string, Set<Waiter>>();
  readonly #bySession = new Map<Session, Map<Waiter, string>>();
  #count = 0;

  constructor(limits: WaiterLimits) {
    this.#limits = limits;
  }

  get size(): number {
    return this.#count;
  }

  /** @returns false when a limit is reached */
  add(device: { productId: string; deviceId: string }, waiter: Waiter): boolean {
    const name = deviceName(device);
    const ofDevice = this.#byDevice.get(name) ?? new Set();
    const ofSession = this.#bySession.get(waiter.session) ?? new Map<Waiter, string>();
    const { waiters, waitersPerDevice, waitersPerSession } = this.#limits;
    if (this.#count >= waiters || ofDevice.size >= waitersPerDevice || ofSession.size >= waitersPerSession) return false;
    this.#byDevice.set(name, ofDevice.add(waiter));
    this.#bySession.set(waiter.session, ofSession.set(waiter, name));
    this.#count++;
    return true;
  }

  /** Takes out all that wait for the device and serves them. */
  serve(device: { productId: string; deviceId: string }): void {
    for (const waiter of [...(this.#byDevice.get(deviceName(device)) ?? [])]) {
      this.#remove(waiter);
      waiter.serve();
    }
  }

  /** The session ended: nobody is there to be served. */
  removeSession(session: Session): void {
    for (const waiter of [...(this.#bySession.get(session)?.keys() ?? [])]) this.#remove(waiter);
  }

  /** The client waits no longer. */
  removeExchange(session: Session, exchange: number): void {
    for (const waiter of [...(this.#bySession.get(session)?.keys() ?? [])]) if (waiter.exchange === exchange) this.#remove(waiter);
  }

  #remove(waiter: Waiter): void {
    const ofSession = this.#bySession.get(waiter.session);
    const name = ofSession?.get(waiter);
    if (ofSession === undefined || name === undefined) return;
    ofSession.delete(waiter);
    if (ofSession.size === 0) this.#bySession.delete(waiter.session);
    const ofDevice = this.#byDevice.get(name);
    ofDevice?.delete(waiter);
    if (ofDevice?.size === 0) this.#byDevice.delete(name);
    this.#count--;
  }
}
