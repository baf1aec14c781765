/**
 * The room of `svc device` while it runs: checked every second, so that observers learn its temperature and users get
 * alarms.
 *
 * The latest notification is kept across restarts: a device that starts in a room that is still hot sends nothing, and
 * one whose room became cool meanwhile sends the end of the alarm.
 */
import type { Device, Iam, Log } from '../../device/index.ts';
import type { Output } from '../frame/output.ts';
import type { DeviceConfiguration } from './configuration.ts';
import type { DeviceData } from './data.ts';
import { type Category, Notifications } from './notifications.ts';
import { type Edge, OverTemperature } from './over-temperature.ts';
import { Thermostat } from './thermostat.ts';

/** ms between two checks. */
const INTERVAL = 1000;

export interface RoomOptions {
  readonly device: Device;
  readonly iam: Iam;
  readonly data: DeviceData;
  readonly configuration: DeviceConfiguration;
  readonly log: Log;
  readonly output: Output;
}

export class Room {
  readonly #thermostat: Thermostat;
  readonly #notifications: Notifications;
  readonly #alarm: OverTemperature | undefined;
  readonly #category: Category;
  readonly #output: Output;
  readonly #data: DeviceData;
  readonly #log: Log;
  #timer: NodeJS.Timeout | undefined;

  /** Adds the thermostat's resources to the device. */
  constructor({ device, iam, data, configuration, log, output }: RoomOptions) {
    const { overTemperature, timeConstant } = configuration;
    this.#output = output;
    this.#data = data;
    this.#log = log;
    this.#thermostat = new Thermostat({
      state: data.state?.Thermostat,
      save: (state) => data.update({ Thermostat: state }),
      ...(timeConstant !== undefined && { timeConstant }),
    });
    this.#thermostat.install(device);
    this.#alarm = overTemperature === undefined ? undefined : new OverTemperature(overTemperature.limit, data.state?.AlarmTold);
    this.#category = overTemperature?.category ?? 'CRITICAL';
    this.#notifications = new Notifications(device, iam, log, ({ category, username, status, error }) => {
      const result = error ?? `the provider answered ${status}`;
      output.result(
        { event: 'notification', category, user: username, status, error },
        `notification ${category} to ${username}: ${result}`,
      );
    });
  }

  begin(): void {
    this.#timer = setInterval(() => this.#look(), INTERVAL);
  }

  end(): void {
    clearInterval(this.#timer);
  }

  #look(): void {
    const { temperature } = this.#thermostat.tick();
    const edge = this.#alarm?.observe(temperature);
    if (edge !== undefined && this.#alarm !== undefined) this.#notify(edge, temperature, this.#alarm.limit);
  }

  #notify(edge: Edge, temperature: number, limit: number): void {
    const raised = edge === 'raised';
    const category = raised ? this.#category : 'INFO';
    const title = raised ? 'Over-temperature' : 'Temperature is normal again';
    const body = `The room has ${temperature.toFixed(1)} °C, the limit is ${limit} °C.`;
    this.#output.result({ event: `over-temperature-${edge}`, temperature, limit }, `${title}: ${body}`);
    void this.#notifications.send({ category, title, body }).then(() => this.#saveAlarm());
  }

  /**
   * Saves the alarm, only after sending it: a device that stops before its users got an alarm sends it at its next
   * start.
   */
  async #saveAlarm(): Promise<void> {
    try {
      await this.#data.update({ AlarmTold: this.#alarm?.raised === true });
    } catch (error) {
      this.#log.warn('the sent alarm could not be saved: it may be sent again', { error: String(error) });
    }
  }
}
