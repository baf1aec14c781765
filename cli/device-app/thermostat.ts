/**
 * The thermostat of `svc device`: CoAP resources over a small model of a heated room.
 *
 *     GET            /thermostat              JSON of everything
 *     GET            /thermostat/temperature  text, °C
 *     GET, PUT       /thermostat/target       text, 5 to 30 °C
 *     GET, PUT       /thermostat/mode         text, "heat" or "off"
 *     POST, DELETE   /thermostat/boost        text, 1 to 120 minutes of full heat; ends it
 *
 * Everybody who reaches the device may read; changes need the permission `Thermostat:Set`. A change is on the disk before it is answered.
 */
import type { CoapHandler, Device, DeviceCoapRequest, DeviceCoapResponse } from '../../device/index.ts';
import { ContentFormat } from '../../protocol/coap/index.ts';

/** As it stands in state.json. Times are Unix milliseconds. */
export interface ThermostatState {
  Target: number;
  Mode: 'heat' | 'off';
  /** Room temperature at the time of the last change. */
  Temperature: number;
  Time: number;
  BoostUntil: number;
}

const MIN_TARGET = 5;
const MAX_TARGET = 30;
const MAX_BOOST = 120;
const BOOST_TEMPERATURE = 30;
/** Where an unheated room ends up, °C. */
const OUTSIDE = 12;
/** Time in which the room goes 63 % of the way, ms. */
const TIME_CONSTANT = 20 * 60_000;

const CHANGED: DeviceCoapResponse = { status: 204 };

export class Thermostat {
  #state: ThermostatState;
  readonly #save: (state: ThermostatState) => Promise<void>;
  readonly #now: () => number;

  constructor(state: ThermostatState | undefined, save: (state: ThermostatState) => Promise<void>, now: () => number = Date.now) {
    this.#now = now;
    this.#save = save;
    this.#state = state ?? { Target: 20, Mode: 'heat', Temperature: 18, Time: now(), BoostUntil: 0 };
  }

  /** Adds the resources. */
  install(device: Device): void {
    const guarded =
      (handler: CoapHandler): CoapHandler =>
      async (request) =>
        (await device.authorize(request.connection, 'Thermostat:Set')) ? handler(request) : { status: 403, payload: 'Access denied' };
    device.addCoapResource('GET', '/thermostat', () => ({
      status: 205,
      contentFormat: ContentFormat.APPLICATION_JSON,
      payload: JSON.stringify(this.snapshot()),
    }));
    device.addCoapResource('GET', '/thermostat/temperature', () => text(this.snapshot().temperature.toFixed(1)));
    device.addCoapResource('GET', '/thermostat/target', () => text(this.#state.Target.toFixed(1)));
    device.addCoapResource(
      'PUT',
      '/thermostat/target',
      guarded((request) => this.#setTarget(request)),
    );
    device.addCoapResource('GET', '/thermostat/mode', () => text(this.#state.Mode));
    device.addCoapResource(
      'PUT',
      '/thermostat/mode',
      guarded((request) => this.#setMode(request)),
    );
    device.addCoapResource(
      'POST',
      '/thermostat/boost',
      guarded((request) => this.#boost(request)),
    );
    device.addCoapResource(
      'DELETE',
      '/thermostat/boost',
      guarded(() => this.#endBoost()),
    );
  }

  /** Everything a person would look at, now. */
  snapshot(): { temperature: number; target: number; mode: 'heat' | 'off'; boostMinutes: number } {
    const { Target, Mode, BoostUntil } = this.#state;
    return {
      temperature: Math.round(this.#temperature() * 10) / 10,
      target: Target,
      mode: Mode,
      boostMinutes: Math.max(0, Math.ceil((BoostUntil - this.#now()) / 60_000)),
    };
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

  /** The room's temperature goes on from where it is now. */
  async #change(change: Partial<ThermostatState>): Promise<DeviceCoapResponse> {
    this.#state = { ...this.#state, Temperature: this.#temperature(), Time: this.#now(), ...change };
    await this.#save(this.#state);
    return CHANGED;
  }

  /** Exponential approach: to the boost's temperature while it lasts, then to the target or to outside. */
  #temperature(): number {
    const { Target, Mode, Temperature, Time, BoostUntil } = this.#state;
    const goal = Mode === 'heat' ? Math.max(Target, OUTSIDE) : OUTSIDE;
    const boosted = Math.max(0, Math.min(BoostUntil, this.#now()) - Time);
    const rest = Math.max(0, this.#now() - Time - boosted);
    return approach(approach(Temperature, BOOST_TEMPERATURE, boosted), goal, rest);
  }
}

function approach(from: number, to: number, elapsed: number): number {
  return to + (from - to) * Math.exp(-elapsed / TIME_CONSTANT);
}

function text(payload: string): DeviceCoapResponse {
  return { status: 205, payload };
}

function number(payload: Uint8Array): number {
  const given = decode(payload).trim();
  return /^\d{1,4}(\.\d{1,3})?$/.test(given) ? Number(given) : Number.NaN;
}

function decode(payload: Uint8Array): string {
  return new TextDecoder().decode(payload);
}
