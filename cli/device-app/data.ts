/**
 * The directory of `svc device`:
 *
 *     key.pem                  its private key
 *     state.json               its ids, base station and thermostat
 *     join.json                a join string, from before the join until the device is attached (join.ts)
 *     iam-configuration.json   roles and policies (access.ts)
 *     iam-state.json           users and settings
 *     audit-key.pem, audit/    the audit log of both (docs/audit.md)
 *     device.json              its services and settings, if an owner wrote it (configuration.ts)
 *     files/                   files that clients sent
 *     device.lock.<id>         the process that holds the directory (platform/node/lock.ts)
 *     device.sock              takes invitations of the owner while the device runs (owner-socket.ts)
 *
 * state.json is replaced as a whole, one write after the other; `update` resolves when its content is on disk, so that
 * no change is acknowledged to a client before.
 */
import { join } from 'node:path';
import {
  type Lock,
  makeDirectory,
  ownLock,
  prepareDirectory,
  readJson,
  refuseForeignDirectory,
  replaceJson,
} from '../../platform/node/index.ts';
import { LocalError } from '../../protocol/errors/index.ts';
import { areCertificates } from '../../protocol/identity/index.ts';
import { parseWebSocketUrl } from '../../runtime/station/index.ts';
import { CommandError } from '../frame/errors.ts';
import { privateKeyIn } from '../frame/private-key.ts';
import { CONFIGURATION_FILE } from './configuration.ts';
import { JOIN_FILE } from './pending-join.ts';
import { isThermostatState, type ThermostatState } from './thermostat.ts';

/** A failed start may have left only the folders; an owner may write device.json before the first start. */
const OWN = {
  sure: /^(key\.pem|state\.json|device\.json|join\.json|iam-(configuration|state)\.json|password-throttle\.json|audit-key\.pem|device\.lock\..+|device\.sock)$/,
  unsure: /^(files|audit)$/,
};

export interface DeviceState {
  Version: 1;
  ProductId: string;
  DeviceId: string;
  /**
   * Base station: https://host:port, and the fingerprint of its key; without one TLS authenticates it, by these roots
   * (PEM) or those of Node.
   */
  ServerUrl?: string;
  ServerFingerprint?: string | undefined;
  ServerRootCerts?: string | undefined;
  ServerWebSocketUrl?: string | undefined;
  /** Whether it joined its base station, which therefore knows it. */
  Joined?: boolean | undefined;
  /** Whether the owner has invited the first administrator (svc device invite): a start does not void that. */
  OwnerInvited?: boolean | undefined;
  Thermostat?: ThermostatState;
  /** The latest notification to users: true for too hot, false for normal again. */
  AlarmTold?: boolean;
}

export class DeviceData {
  readonly directory: string;
  #state: DeviceState | null;
  #writing: Promise<void> = Promise.resolve();

  private constructor(directory: string, state: DeviceState | null) {
    this.directory = directory;
    this.#state = state;
  }

  /**
   * Opens the directory, and creates it if missing.
   * @throws with one line when it cannot be used, is damaged, or is in use
   */
  static async open(directory: string): Promise<DeviceData> {
    await refuseForeignDirectory(directory, 'a device', OWN);
    await prepareDirectory(directory);
    await makeDirectory(join(directory, 'files'));
    return new DeviceData(directory, await readState(directory));
  }

  /**
   * Takes the directory for this process.
   * @param options.unwritable as `ownLock`
   * @throws LocalError IN_USE that names the process that has it, FAILED when it cannot be read or written
   */
  lock(options: { unwritable?: () => void } = {}): Promise<Lock> {
    const advice = 'stop it first, or give another device its own directory with --data';
    const inUse = (by: string): LocalError => new LocalError('IN_USE', `${this.directory} is in use by ${by}: ${advice}`);
    return ownLock(join(this.directory, 'device.lock'), { inUse, ...options });
  }

  /** Reads again what another process may have written before this one held the directory. @throws as `open` */
  async reread(): Promise<void> {
    this.#state = await readState(this.directory);
  }

  /** Null before the first `adopt` or `update`. */
  get state(): Readonly<DeviceState> | null {
    return this.#state;
  }

  /** The file with the services and settings of the device. */
  get configurationFile(): string {
    return join(this.directory, CONFIGURATION_FILE);
  }

  /** The file of a waiting join string. */
  get joinFile(): string {
    return join(this.directory, JOIN_FILE);
  }

  get filesDirectory(): string {
    return join(this.directory, 'files');
  }

  /** Merges into the state, which the next `update` writes: a failed start leaves the file unchanged. */
  adopt(changes: Partial<DeviceState>): DeviceState {
    this.#state = { ...this.#state, ...changes, Version: 1 } as DeviceState;
    return this.#state;
  }

  /** Merges into the state and writes it; a failed write changes nothing. */
  update(changes: Partial<DeviceState> = {}): Promise<void> {
    const write = this.#writing.then(async () => {
      await replaceJson(join(this.directory, 'state.json'), { ...this.#state, ...changes, Version: 1 });
      this.adopt(changes);
    });
    this.#writing = write.catch(() => {});
    return write;
  }

  /** The device's private key, PEM; created at first use. */
  privateKey(create: () => string): Promise<string> {
    return privateKeyIn(this.directory, create);
  }
}

async function readState(directory: string): Promise<DeviceState | null> {
  const path = join(directory, 'state.json');
  const content = await readJson(path);
  if (content === undefined) return null;
  if (!isDeviceState(content)) throw new CommandError(`${path} is damaged: repair it, or move it away to start again`);
  return content;
}

function isDeviceState(value: unknown): value is DeviceState {
  const state = (value ?? {}) as Partial<DeviceState>;
  const { Version, ProductId, DeviceId, ServerUrl = '', ServerFingerprint = '', ServerRootCerts = '' } = state;
  const { ServerWebSocketUrl } = state;
  const texts = [ServerUrl, ServerFingerprint, ServerRootCerts].every((text) => typeof text === 'string');
  const { Thermostat, AlarmTold = false, Joined = false, OwnerInvited = false } = state;
  const room =
    (Thermostat === undefined || isThermostatState(Thermostat)) &&
    [AlarmTold, Joined, OwnerInvited].every((flag) => typeof flag === 'boolean');
  const webSocket =
    ServerWebSocketUrl === undefined || (typeof ServerWebSocketUrl === 'string' && parseWebSocketUrl(ServerWebSocketUrl) !== null);
  const roots = ServerRootCerts === '' || areCertificates(ServerRootCerts);
  return (
    Version === 1 && [ProductId, DeviceId].every((text) => typeof text === 'string' && text !== '') && texts && webSocket && roots && room
  );
}
