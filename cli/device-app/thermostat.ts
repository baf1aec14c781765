/**
 * The thermostat of `svc device`: CoAP resources over a small model of a heated room.
 *
 *     GET            /thermostat              JSON of everything
 *     GET            /thermostat/temperature  text, °C
 *     GET, PUT       /thermostat/target       text, 5 to 30 °C
 *     GET, PUT       /thermostat/mode         text, "heat" or "off"
 *     POST, DELETE   /thermostat/boost        text, 1 to 120 minutes of full heat; ends it
 *
 * Reading needs the permission `Thermostat:Get`, changing `Thermostat:Set`. A change is on disk before it is answered.
 * Every GET resource can be observed: each notification is authorized again, so that a client that may no longer read
 * gets nothing further.
 */
import type { CoapHandler, CoapResource, Device, DeviceCoapRequest, DeviceCoapResponse } from '../../device/index.ts';
import { ContentFormat } from '../../protocol/coap/index.ts';

/** The state as stored in state.json. Times are Unix milliseconds. */
export interface ThermostatState {
  Target: number;
  Mode: 'heat' | 'off';
  /** Room temperature at the time of the last change. */
  Temperature: number;
  Time: number;
  BoostUntil: number;
}

/** Whether a value of a file is a state. */
export function isThermostatState(value: unknown): value is ThermostatState {
  if (typeof value !== 'object' || value === null) return false;
  const { Mode, Target, Temperature, Time, BoostUntil } = value as Partial<ThermostatState>;
  return (Mode === 'heat' || Mode === 'off') && [Target, Temperature, Time, BoostUntil].every((number) => Number.isFinite(number));
}

const MIN_TARGET = 5;
const MAX_TARGET = 30;
const MAX_BOOST = 120;
const BOOST_TEMPERATURE = 30;
/** Temperature of an unheated room after a long time, °C. */
const OUTSIDE = 12;
/** Seconds for 63 % of a temperature change. */
const TIME_CONSTANT = 20 * 60;

const CHANGED: DeviceCoapResponse = { status: 204 };

/** The readings for a person. */
export interface Snapshot {
  /** °C, one decimal. */
  readonly temperature: number;
  readonly target: number;
  readonly mode: 'heat' | 'off';
  readonly boostMinutes: number;
}

export interface ThermostatOptions {
  /** The saved state; undefined at the first start. */
  readonly state: ThermostatState | undefined;
  /** Makes a state durable. */
  readonly save: (state: ThermostatState) => Promise<void>;
  /** Seconds for 63 % of a temperature change; default 20 minutes. */
  readonly timeConstant?: number;
  /** Unix milliseconds; default the system's clock. */
  readonly now?: () => number;
}

/** The part of a device that resources need. */
export type ThermostatDevice = Pick<Device, 'addCoapResource' | 'authorize'>;

export class Thermostat {
  #state: ThermostatState;
  readonly #save: (state: ThermostatState) => Promise<void>;
  readonly #now: () => number;
  readonly #timeConstant: number;
  readonly #resources: { readonly resource: CoapResource; readonly shows: (snapshot: Snapshot) => string }[] = [];
  #notified: Snapshot;
  #changing: Promise<void> = Promise.resolve();

  constructor({ state, save, timeConstant = TIME_CONSTANT, now = Date.now }: ThermostatOptions) {
    this.#now = now;
    this.#save = save;
    this.#timeConstant = timeConstant * 1000;
    this.#state = state ?? { Target: 20, Mode: 'heat', Temperature: 18, Time: now(), BoostUntil: 0 };
    this.#notified = this.snapshot();
  }

  /** Adds the resources. */
  install(device: ThermostatDevice): void {
    this.#readable(device, '/thermostat', (snapshot) => JSON.stringify(snapshot), ContentFormat.APPLICATION_JSON);
    this.#readable(device, '/thermostat/temperature', ({ temperature }) => temperature.toFixed(1));
    this.#readable(device, '/thermostat/target', ({ target }) => target.toFixed(1));
    this.#readable(device, '/thermostat/mode', ({ mode }) => mode);
    const changing = (method: string, path: string, handler: CoapHandler) =>
      device.addCoapResource(method, path, guarded(device, 'Thermostat:Set', handler), { type: typeOf(path), action: 'Thermostat:Set' });
    changing('PUT', '/thermostat/target', (request) => this.#setTarget(request));
    changing('PUT', '/thermostat/mode', (request) => this.#setMode(request));
    changing('POST', '/thermostat/boost', (request) => this.#boost(request));
    changing('DELETE', '/thermostat/boost', () => this.#endBoost());
  }

  /** The current readings for a person. */
  snapshot(): Snapshot {
    const { Target, Mode, BoostUntil } = this.#state;
    return {
      temperature: Math.round(this.#temperature() * 10) / 10,
      target: Target,
      mode: Mode,
      boostMinutes: Math.max(0, Math.ceil((BoostUntil - this.#now()) / 60_000)),
    };
  }

  /**
   * Notifies observers of readings that changed since the last call. Call it regularly: the room changes by
   * itself.
   */
  tick(): Snapshot {
    const snapshot = this.snapshot();
    for (const { resource, shows } of this.#resources) if (shows(snapshot) !== shows(this.#notified)) resource.notify();
    this.#notified = snapshot;
    return snapshot;
  }

  #readable(
    device: ThermostatDevice,
    path: string,
    shows: (snapshot: Snapshot) => string,
    contentFormat: number = ContentFormat.TEXT_PLAIN,
  ): void {
    const handler = guarded(device, 'Thermostat:Get', () => ({ status: 205, contentFormat, payload: shows(this.snapshot()) }));
    this.#resources.push({
      resource: device.addCoapResource('GET', path, handler, { observable: true, type: typeOf(path), action: 'Thermostat:Get' }),
      shows,
    });
  }

  async #setTarget({ payload }: DeviceCoapRequest): Promise<DeviceCoapResponse> {
    const target = number(payload);
    if (!(target >= MIN_TARGET && target <= MAX_TARGET))
      return { status: 400, payload: `The target is a number from ${MIN_TARGET} to ${MAX_TARGET}` };
    return this.#change({ Target: target });
  }

  async #setMode({ payload }: DeviceCoapRequest): Promise<DeviceCoapResponse> {
    const mode = decode(payload);
    if (mode !== 'heat' && mode !== 'off') return { status: 400, payload: 'The mode is "heat" or "off"' };
    return this.#change({ Mode: mode });
  }

  async #boost({ payload }: DeviceCoapRequest): Promise<DeviceCoapResponse> {
    const minutes = number(payload);
    if (!(Number.isInteger(minutes) && minutes >= 1 && minutes <= MAX_BOOST))
      return { status: 400, payload: `A boost takes 1 to ${MAX_BOOST} minutes` };
    return this.#change({ BoostUntil: this.#now() + minutes * 60_000 });
  }

  async #endBoost(): Promise<DeviceCoapResponse> {
    await this.#change({ BoostUntil: 0 });
    return { status: 202 };
  }

  /**
   * Applies a change: the room's temperature continues from its current value. Changes run one after the other; one
   * that cannot be saved changes nothing.
   */
  async #change(change: Partial<ThermostatState>): Promise<DeviceCoapResponse> {
    const changed = this.#changing.then(async () => {
      const state = { ...this.#state, Temperature: this.#temperature(), Time: this.#now(), ...change };
      await this.#save(state);
      this.#state = state;
    });
    this.#changing = changed.catch(() => {});
    await changed;
    this.tick();
    return CHANGED;
  }

  /** Exponential approach: to the boost's temperature while it lasts, then to the target or to outside. */
  #temperature(): number {
    const { Target, Mode, Temperature, Time, BoostUntil } = this.#state;
    const goal = Mode === 'heat' ? Math.max(Target, OUTSIDE) : OUTSIDE;
    const boosted = Math.max(0, Math.min(BoostUntil, this.#now()) - Time);
    const rest = Math.max(0, this.#now() - Time - boosted);
    return this.#approach(this.#approach(Temperature, BOOST_TEMPERATURE, boosted), goal, rest);
  }

  /** @param elapsed ms */
  #approach(from: number, to: number, elapsed: number): number {
    return to + (from - to) * Math.exp(-elapsed / this.#timeConstant);
  }
}

/** `thermostat.target` for `/thermostat/target`. */
function typeOf(path: string): string {
  return path.slice(1).replaceAll('/', '.');
}

/** Returns a handler that requires the permission `action`. */
function guarded(device: ThermostatDevice, action: string, handler: CoapHandler): CoapHandler {
  return async (request) =>
    (await device.authorize(request.connection, action)) ? handler(request) : { status: 403, payload: 'Access denied' };
}

function number(payload: Uint8Array): number {
  const given = decode(payload).trim();
  return /^\d{1,4}(\.\d{1,3})?$/.test(given) ? Number(given) : Number.NaN;
}

function decode(payload: Uint8Array): string {
  return new TextDecoder().decode(payload);
}
