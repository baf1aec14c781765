/**
 * The unfinished connects of a base station: one record for each, found by its session and exchange, and, while it
 * waits, by its device.
 *
 * Theory of operation. A connect passes through the states of `TRANSITIONS`:
 *
 * - checking: its admission is checked. A client that has waited returns here when it is served, because the device's
 *   record may have changed meanwhile.
 * - locating: the directory is queried for its device.
 * - waiting: the device is attached nowhere, or a rate or a limit postpones a client that has waited.
 * - reaching: it has a route, and the device is asked to accept it.
 * - done: it was answered, its client cancelled it, or its session ended. The record is removed, and its lookup is
 *   aborted.
 *
 * Waiting clients are bounded per device, per session and in total. One address has a quarter of a device's slots, so
 * that one client cannot hold them all. A device has an entry while it has connects; its timer ends with the last one.
 */
import type { Cancel } from '../../platform/environment.ts';
import type { ConnectRequest } from '../../protocol/control/index.ts';
import type { Session } from '../../runtime/session/index.ts';
import type { DeviceIds } from './directory.ts';
import { deviceName } from './presence.ts';
import { addressKey } from './rates.ts';
import type { StationSettings } from './settings.ts';

export type ConnectState = 'checking' | 'locating' | 'waiting' | 'reaching' | 'done';

/** The states that may follow each state. */
export const TRANSITIONS: Readonly<Record<ConnectState, readonly ConnectState[]>> = {
  checking: ['locating', 'waiting', 'done'],
  locating: ['waiting', 'reaching', 'done'],
  waiting: ['checking', 'done'],
  reaching: ['done'],
  done: [],
};

/** A device with unfinished connects. */
export interface Target {
  readonly name: string;
  /** Number of its unfinished connects. */
  connects: number;
  /** Its waiting clients, in the order in which they began to wait. */
  readonly waiting: Set<Connect>;
  /** Number of its attaches since the entry exists. */
  attaches: number;
  /** Cancels the timer that serves its waiting clients again; null without one. */
  cancelRetry: Cancel | null;
}

/** A connect and its client. */
export interface Connect {
  readonly session: Session;
  /** Exchange of the request. */
  readonly exchange: number;
  readonly request: ConnectRequest;
  /** Whether the client waits for a device that is not attached. */
  readonly mayWait: boolean;
  readonly device: Target;
  /** Only `Connects` changes it. */
  state: ConnectState;
  /** The client's address when it last began to wait, as `addressKey` returns it; null: it has not waited. */
  waitedAt: string | null;
  /** Aborts its lookup; null without one. */
  abort: (() => void) | null;
}

type WaitLimits = Pick<StationSettings, 'waitersPerDevice' | 'waitersPerSession' | 'waiters'>;

/** Share of a device's slots that one address may take. */
const ADDRESS_SHARE = 1 / 4;

/** All unfinished connects of a base station. */
export class Connects {
  readonly #limits: WaitLimits;
  readonly #devices = new Map<string, Target>();
  readonly #sessions = new Map<Session, Map<number, Connect>>();
  #waiting = 0;

  constructor(limits: WaitLimits) {
    this.#limits = limits;
  }

  /** Number of waiting clients. */
  get waiting(): number {
    return this.#waiting;
  }

  /** Returns the entry of a device; undefined without connects. */
  ofDevice(device: DeviceIds): Target | undefined {
    return this.#devices.get(deviceName(device));
  }

  /** Adds a connect, which is being checked. */
  begin({ session, exchange, request, mayWait }: Pick<Connect, 'session' | 'exchange' | 'request' | 'mayWait'>): Connect {
    const name = deviceName(request);
    const device = this.#devices.get(name) ?? { name, connects: 0, waiting: new Set(), attaches: 0, cancelRetry: null };
    const connect: Connect = { session, exchange, request, mayWait, device, state: 'checking', waitedAt: null, abort: null };
    device.connects++;
    this.#devices.set(name, device);
    const others = this.#sessions.get(session);
    if (others === undefined) this.#sessions.set(session, new Map([[exchange, connect]]));
    else others.set(exchange, connect);
    return connect;
  }

  /** @throws Error for a transition that the table does not have: a fault of the caller */
  move(connect: Connect, next: ConnectState): void {
    const { state, device } = connect;
    if (!TRANSITIONS[state].includes(next)) throw new Error(`a connect that is ${state} cannot become ${next}`);
    connect.state = next;
    if (next === 'waiting') device.waiting.add(connect);
    else device.waiting.delete(connect);
    this.#waiting += Number(next === 'waiting') - Number(state === 'waiting');
    if (next === 'done') this.#remove(connect);
  }

  /** Has the client wait. @returns false when a limit is reached: nothing changes */
  wait(connect: Connect): boolean {
    const { waiters, waitersPerDevice, waitersPerSession } = this.#limits;
    const { session } = connect;
    const { waiting } = connect.device;
    if (this.#waiting >= waiters || waiting.size >= waitersPerDevice) return false;
    const ofSession = [...this.#sessions.get(session)!.values()].filter(({ state }) => state === 'waiting').length;
    const address = addressKey(session.paths.active);
    const here = [...waiting].filter(({ waitedAt }) => waitedAt === address).length;
    if (ofSession >= waitersPerSession || here >= Math.max(1, Math.floor(ADDRESS_SHARE * waitersPerDevice))) return false;
    this.move(connect, 'waiting');
    connect.waitedAt = address;
    return true;
  }

  /** Notes that a device attached: pending answers of the directory may be out of date. */
  attached(device: DeviceIds): void {
    const target = this.ofDevice(device);
    if (target !== undefined) target.attaches++;
  }

  /** Ends a connect, if it is not done. */
  end(connect: Connect): void {
    if (connect.state !== 'done') this.move(connect, 'done');
  }

  /** Ends the connect of a cancelled request. */
  cancelled(session: Session, exchange: number): void {
    const connect = this.#sessions.get(session)?.get(exchange);
    if (connect !== undefined) this.move(connect, 'done');
  }

  /** Ends the connects of an ended session. */
  ended(session: Session): void {
    for (const connect of this.#sessions.get(session)?.values() ?? []) this.move(connect, 'done');
  }

  #remove({ session, exchange, device, abort }: Connect): void {
    const others = this.#sessions.get(session)!;
    others.delete(exchange);
    if (others.size === 0) this.#sessions.delete(session);
    if (--device.connects === 0) {
      device.cancelRetry?.();
      this.#devices.delete(device.name);
    }
    abort?.();
  }
}
