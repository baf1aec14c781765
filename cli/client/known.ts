/**
 * What the `svc` client remembers, in one directory: its private key (key.pem) and the devices and base stations it knows (`known-file.ts`).
 *
 * A fingerprint that is known is never replaced silently: `resolveTarget` refuses a different one. Files are replaced as a whole; what two processes remember at
 * the same time both stays.
 */
import { homedir } from 'node:os';
import { join, resolve } from 'node:path';
import type { SvcClient } from '../../client/node.ts';
import { createFile, prepareDirectory, replaceJson } from '../../transport/node/index.ts';
import { CommandError, UsageError } from '../frame/errors.ts';
import { FileLock } from '../frame/file-lock.ts';
import { readPrivateKey } from '../frame/private-key.ts';
import {
  forgetDevice,
  hasSeenStation,
  idOf,
  type KnownChange,
  type KnownDevice,
  type KnownFile,
  knownPath,
  readKnownFile,
  rememberDevice,
  rememberStation,
  rememberTlsStation,
  stationFingerprint,
} from './known-file.ts';

export { idOf, type KnownDevice } from './known-file.ts';

/** Attempts to have known.json for itself, and ms between two. Who has it writes it, and no more. */
const ATTEMPTS = 250;
const PAUSE = 20;

/** The directory of --state: the one given, else below XDG_STATE_HOME, else ~/.local/state. */
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
   * Reads the directory; it is made when something is kept in it: one that is mistyped leaves nothing behind.
   * @throws with one line when it cannot be read or is damaged
   */
  static async open(directory: string): Promise<Known> {
    return new Known(directory, await readKnownFile(directory));
  }

  get devices(): readonly KnownDevice[] {
    return this.#file.Devices;
  }

  /** By name, else by `product.device`. @throws UsageError where an earlier version gave several that name */
  byName(name: string): KnownDevice | undefined {
    const [first, ...others] = this.devices.filter((device) => device.Name === name);
    if (first !== undefined && others.length > 0)
      throw new UsageError(`several devices are called ${name}: name one as ${[first, ...others].map(idOf).join(' or ')}`);
    return first ?? this.devices.find((device) => idOf(device) === name);
  }

  /** @param id `product.device` of the device that is to be called so @throws UsageError when another one is */
  checkName(name: string, id: string): void {
    const other = this.devices.find((device) => device.Name === name && idOf(device) !== id);
    if (other !== undefined)
      throw new UsageError(`--name ${name}: ${idOf(other)} is called so; choose another name, or svc forget ${name}`);
  }

  byId(productId: string, deviceId: string): KnownDevice | undefined {
    return this.devices.find((device) => device.ProductId === productId && device.DeviceId === deviceId);
  }

  byAddress(address: string): KnownDevice | undefined {
    return this.devices.find((device) => device.Address === address);
  }

  stationFingerprint(url: string): string | undefined {
    return stationFingerprint(this.#file, url);
  }

  /** The PEM of the roots by which TLS proves a base station, empty for those of Node; undefined for one that is pinned or not known. */
  tlsStation(url: string): string | undefined {
    const { TlsStations = {} } = this.#file;
    return Object.hasOwn(TlsStations, url) ? TlsStations[url] : undefined;
  }

  /** Every base station. */
  get stations(): readonly { readonly url: string; readonly verified: 'pinned' | 'tls' }[] {
    const pinned = Object.keys(this.#file.Stations).map((url) => ({ url, verified: 'pinned' as const }));
    return [...pinned, ...Object.keys(this.#file.TlsStations ?? {}).map((url) => ({ url, verified: 'tls' as const }))];
  }

  /** Adds the device, or merges what is new about it. Nothing is written before `save`. */
  remember(device: KnownDevice): void {
    this.#change(rememberDevice(device));
  }

  forget(device: KnownDevice): void {
    this.#change(forgetDevice(device));
  }

  /** Whether the base station has shown that it has the fingerprint that is known of it. */
  hasSeenStation(url: string): boolean {
    return hasSeenStation(this.#file, url);
  }

  /** @param seen the base station has just shown that it has this fingerprint; else a person has said so, and another fingerprint may take its place */
  rememberStation(url: string, fingerprint: string, seen: boolean): void {
    this.#change(rememberStation(url, fingerprint, seen));
  }

  /** A fingerprint that was known of it counts no longer. @param roots PEM, or an empty text for those of Node */
  rememberTlsStation(url: string, roots: string): void {
    this.#change(rememberTlsStation(url, roots));
  }

  #change(change: KnownChange): void {
    change(this.#file);
    this.#changes.push(change);
  }

  /** Writes what changed, if anything did, to what the file holds now. @throws CommandError when another process does not let go of it */
  async save(): Promise<void> {
    if (JSON.stringify(this.#file) !== this.#saved) await this.requireRoom();
  }

  /** Writes the file, changed or not: what cannot be kept is better known before it is asked for. @throws as `save` */
  async requireRoom(): Promise<void> {
    await prepareDirectory(this.directory);
    const path = knownPath(this.directory);
    const lock = await lockFile(`${path}.lock`);
    try {
      const file = await readKnownFile(this.directory);
      for (const change of this.#changes) change(file);
      await replaceJson(path, file);
      this.#file = file;
    } finally {
      await lock.release();
    }
    this.#saved = JSON.stringify(this.#file);
    this.#changes = [];
  }

  /** The client's private key, PEM; made at first use. */
  async privateKey(client: SvcClient): Promise<string> {
    const existing = await this.existingPrivateKey();
    if (existing !== undefined) return existing;
    await prepareDirectory(this.directory);
    const pem = client.createPrivateKey();
    if (await createFile(join(this.directory, 'key.pem'), pem)) return pem;
    return this.privateKey(client);
  }

  existingPrivateKey(): Promise<string | undefined> {
    return readPrivateKey(join(this.directory, 'key.pem'));
  }
}

async function lockFile(path: string): Promise<FileLock> {
  for (let attempt = 1; ; attempt++) {
    const lock = await FileLock.take(path);
    if (typeof lock !== 'number') return lock;
    if (attempt === ATTEMPTS) throw new CommandError(`${path} is held by process ${lock}: remove it if that process is no svc`);
    await new Promise((done) => setTimeout(done, PAUSE));
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

/** A name to remember a device by can be told from ids and pairing strings. @throws UsageError */
export function checkName(name: string): void {
  if (!/^[^=,\s.]{1,64}$/.test(name)) throw new UsageError('a name has 1 to 64 characters and none of "=", ",", "." or space');
}
