/**
 * The state of the `svc` client in one directory: its private key (key.pem) and the devices and base stations it knows
 * (`known-file.ts`).
 *
 * A known fingerprint is never replaced silently: `resolveTarget` refuses a different one. Files are replaced as a
 * whole; when two processes write at the same time, both changes are kept.
 */
import { homedir } from 'node:os';
import { join, resolve } from 'node:path';
import type { SvcClient } from '../../client/node.ts';
import { prepareDirectory, replaceJson, whileLocked } from '../../platform/node/index.ts';
import { UsageError } from '../frame/errors.ts';
import { privateKeyIn, readPrivateKey } from '../frame/private-key.ts';
import {
  forgetDevice,
  forgetStation,
  idOf,
  type KnownChange,
  type KnownDevice,
  type KnownFile,
  type KnownStation,
  knownPath,
  NO_STATION,
  readKnownFile,
  rememberDevice,
  rememberStation,
  replaceStation,
  stationKey,
  stationOf,
} from './known-file.ts';

export { idOf, type KnownDevice, type KnownStation, NO_STATION, stationKey } from './known-file.ts';

/** Returns the directory of --state: the given one, else below XDG_STATE_HOME, else ~/.local/state. */
export function stateDirectory(given: string | undefined, environment: NodeJS.ProcessEnv = process.env): string {
  if (given !== undefined) return resolve(given);
  const base = environment.XDG_STATE_HOME;
  return join(base?.startsWith('/') ? base : join(homedir(), '.local', 'state'), 'svc');
}

export class Known {
  readonly directory: string;
  #file: KnownFile;
  #saved: string;
  #changes: KnownChange[] = [];

  private constructor(directory: string, file: KnownFile) {
    this.directory = directory;
    this.#file = file;
    this.#saved = JSON.stringify(file);
  }

  /**
   * Reads the directory. It is created only when something is stored in it, so that a mistyped one leaves nothing
   * behind.
   * @throws with one line when it cannot be read or is damaged
   */
  static async open(directory: string): Promise<Known> {
    return new Known(directory, await readKnownFile(directory));
  }

  get devices(): readonly KnownDevice[] {
    return this.#file.Devices;
  }

  /** Returns a device by name, else by `product.device`. */
  byName(name: string): KnownDevice | undefined {
    return this.devices.find((device) => device.Name === name) ?? this.devices.find((device) => idOf(device) === name);
  }

  /** @param id `product.device` of the device to be named @throws UsageError when another device has the name */
  checkName(name: string, id: string): void {
    const other = this.devices.find((device) => device.Name === name && idOf(device) !== id);
    if (other !== undefined)
      throw new UsageError(`--name ${name}: ${idOf(other)} has this name; choose another name, or svc forget ${name}`);
  }

  byId(productId: string, deviceId: string): KnownDevice | undefined {
    return this.devices.find((device) => device.ProductId === productId && device.DeviceId === deviceId);
  }

  byAddress(address: string): KnownDevice | undefined {
    return this.devices.find((device) => device.Address === address);
  }

  station(url: string): KnownStation | undefined {
    return stationOf(this.#file, url);
  }

  /** The key of the tokens for the remembered base station of a device. */
  stationKeyOf({ ServerUrl: url }: KnownDevice): string {
    const station = url === undefined ? undefined : this.station(url);
    return url === undefined || station === undefined ? NO_STATION : stationKey(url, station);
  }

  /** All known base stations, by URL. */
  get stations(): Readonly<Record<string, KnownStation>> {
    return this.#file.Stations;
  }

  /** Adds the device, or merges its new values. Nothing is written before `save`. */
  remember(device: KnownDevice): void {
    this.#change(rememberDevice(device));
  }

  forget(device: KnownDevice): void {
    this.#change(forgetDevice(device));
  }

  /** Replaces what was known of the base station, except that it has proved the same fingerprint before. */
  rememberStation(url: string, station: KnownStation): void {
    this.#change(rememberStation(url, station));
  }

  /** Replaces what was known of the base station because a person said so; tokens for it follow. */
  replaceStation(url: string, station: KnownStation): void {
    this.#change(replaceStation(url, station));
  }

  forgetStation(url: string): void {
    this.#change(forgetStation(url));
  }

  #change(change: KnownChange): void {
    change(this.#file);
    this.#changes.push(change);
  }

  /**
   * Applies changes, if any, to the current content of the file.
   * @throws LocalError IN_USE when another process keeps the lock
   */
  async save(): Promise<void> {
    if (JSON.stringify(this.#file) !== this.#saved) await this.requireRoom();
  }

  /**
   * Writes the file, changed or not, to find out whether it can be written before an invitation is used.
   * @throws as `save`
   */
  async requireRoom(): Promise<void> {
    await prepareDirectory(this.directory);
    const path = knownPath(this.directory);
    await whileLocked(`${path}.lock`, async () => {
      const file = await readKnownFile(this.directory);
      for (const change of this.#changes) change(file);
      await replaceJson(path, file);
      this.#file = file;
    });
    this.#saved = JSON.stringify(this.#file);
    this.#changes = [];
  }

  /** The client's private key, PEM; created at first use. */
  privateKey(client: SvcClient): Promise<string> {
    return privateKeyIn(this.directory, () => client.createPrivateKey());
  }

  existingPrivateKey(): Promise<string | undefined> {
    return readPrivateKey(this.directory);
  }
}

/** A device as commands show it with --json. */
export function documentOf({
  Name,
  ProductId,
  DeviceId,
  Fingerprint,
  ServerUrl,
  Address,
}: KnownDevice): Record<string, string | undefined> {
  return { name: Name, productId: ProductId, deviceId: DeviceId, fingerprint: Fingerprint, server: ServerUrl, address: Address };
}

/** Checks a name for a device: it must differ from ids and pairing strings. @throws UsageError */
export function checkName(name: string): void {
  if (!/^[^=,\s.]{1,64}$/.test(name)) throw new UsageError('a name has 1 to 64 characters and none of "=", ",", "." or space');
}
