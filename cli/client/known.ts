/**
 * What the `svc` client remembers, in one directory: its private key (key.pem) and the devices and base stations it knows with the
 * fingerprints of their keys (known.json), as ssh keeps known_hosts.
 *
 * A fingerprint that is known is never replaced silently: `checkPin` refuses a different one. Files are replaced as a whole.
 */
import { homedir } from 'node:os';
import { join, resolve } from 'node:path';
import type { SvcClient } from '../../client/node.ts';
import { areCertificates, isFingerprint } from '../../protocol/identity/index.ts';
import { createFile, prepareDirectory, readJson, replaceJson } from '../../transport/node/index.ts';
import { keptServerUrl } from '../../transport/station/index.ts';
import { CommandError, UsageError } from '../frame/errors.ts';
import { readPrivateKey } from '../frame/private-key.ts';

/** A device of known.json. Names of the keys as they stand there. */
export interface KnownDevice {
  ProductId: string;
  DeviceId: string;
  /** Full hex fingerprint of its key. */
  Fingerprint: string;
  /** A name for the command line. */
  Name?: string;
  ServerConnectToken?: string;
  ServerUrl?: string;
  /** The WebSocket to that base station, where it was given. */
  ServerWebSocketUrl?: string;
  /** host:port where it was reached directly. */
  Address?: string;
  /** The user that this client was when it last asked. */
  User?: string;
}

interface KnownFile {
  Version: 1;
  Devices: KnownDevice[];
  /** Fingerprint of a base station by its URL. */
  Stations: Record<string, string>;
  /** URLs of base stations that have never been reached: nothing has shown that their fingerprint is right. */
  UnseenStations?: string[];
  /** Base stations that TLS proves, by their URL: the roots of their certificates as PEM, or an empty text for those of Node. */
  TlsStations?: Record<string, string>;
}

/** The directory of --state: the one given, else below XDG_STATE_HOME, else ~/.local/state. */
export function stateDirectory(given: string | undefined, environment: NodeJS.ProcessEnv = process.env): string {
  if (given !== undefined) return resolve(given);
  const base = environment.XDG_STATE_HOME;
  return join(base?.startsWith('/') ? base : join(homedir(), '.local', 'state'), 'svc');
}

export class Known {
  readonly directory: string;
  readonly #file: KnownFile;
  #saved: string;

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
    const path = join(directory, 'known.json');
    const content = await readJson(path);
    if (content === undefined) return new Known(directory, { Version: 1, Devices: [], Stations: {} });
    if (!isKnownFile(content)) throw new CommandError(`${path} is damaged: repair it, or move it away and pair again`);
    return new Known(directory, withPorts(content));
  }

  get devices(): readonly KnownDevice[] {
    return this.#file.Devices;
  }

  /** By name, else by `product.device`. */
  byName(name: string): KnownDevice | undefined {
    return this.devices.find((device) => device.Name === name) ?? this.devices.find((device) => idOf(device) === name);
  }

  byId(productId: string, deviceId: string): KnownDevice | undefined {
    return this.devices.find((device) => device.ProductId === productId && device.DeviceId === deviceId);
  }

  byAddress(address: string): KnownDevice | undefined {
    return this.devices.find((device) => device.Address === address);
  }

  stationFingerprint(url: string): string | undefined {
    return Object.hasOwn(this.#file.Stations, url) ? this.#file.Stations[url] : undefined;
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

  /** Adds the device, or merges what is new about it; a WebSocket leads to one base station, and goes with its URL. Nothing is written before `save`. */
  remember(device: KnownDevice): void {
    const index = this.#file.Devices.findIndex((known) => idOf(known) === idOf(device));
    if (index < 0) this.#file.Devices.push(device);
    else this.#file.Devices[index] = { ...kept(this.#file.Devices[index]!, device), ...device };
  }

  forget(device: KnownDevice): void {
    this.#file.Devices = this.#file.Devices.filter((known) => known !== device);
  }

  /** Whether the base station has shown that it has the fingerprint that is known of it. */
  hasSeenStation(url: string): boolean {
    return this.stationFingerprint(url) !== undefined && !(this.#file.UnseenStations ?? []).includes(url);
  }

  /** @param seen the base station has just shown that it has this fingerprint; else a person has said so, and another fingerprint may take its place */
  rememberStation(url: string, fingerprint: string, seen: boolean): void {
    const wasSeen = this.hasSeenStation(url) && this.stationFingerprint(url) === fingerprint;
    this.#noteUnseen(url, !seen && !wasSeen);
    this.#file.Stations[url] = fingerprint;
    delete this.#file.TlsStations?.[url];
  }

  /** A fingerprint that was known of it counts no longer. @param roots PEM, or an empty text for those of Node */
  rememberTlsStation(url: string, roots: string): void {
    this.#noteUnseen(url, false);
    delete this.#file.Stations[url];
    this.#file.TlsStations = { ...this.#file.TlsStations, [url]: roots };
  }

  #noteUnseen(url: string, isUnseen: boolean): void {
    const others = (this.#file.UnseenStations ?? []).filter((each) => each !== url);
    const unseen = isUnseen ? [...others, url] : others;
    if (unseen.length > 0) this.#file.UnseenStations = unseen;
    else delete this.#file.UnseenStations;
  }

  /** Writes what changed, if anything did. */
  async save(): Promise<void> {
    const content = JSON.stringify(this.#file);
    if (content === this.#saved) return;
    await prepareDirectory(this.directory);
    await replaceJson(join(this.directory, 'known.json'), this.#file);
    this.#saved = content;
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

/** `product.device`, how a device without a name is called. */
export function idOf({ ProductId, DeviceId }: { ProductId: string; DeviceId: string }): string {
  return `${ProductId}.${DeviceId}`;
}

/** What stays of a device that is remembered again: no token for one base station goes to another one, unless it is given again. */
function kept({ ServerWebSocketUrl, ServerConnectToken, ...rest }: KnownDevice, { ServerUrl }: KnownDevice): KnownDevice {
  const moves = ServerUrl !== undefined && rest.ServerUrl !== undefined && ServerUrl !== rest.ServerUrl;
  return {
    ...rest,
    ...(!moves && ServerConnectToken !== undefined && { ServerConnectToken }),
    ...(ServerUrl === undefined && ServerWebSocketUrl !== undefined && { ServerWebSocketUrl }),
  };
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

/** Its URLs with their ports. */
function withPorts(file: KnownFile): KnownFile {
  const byPort = (record: Record<string, string>): Record<string, string> =>
    Object.fromEntries(Object.entries(record).map(([url, value]) => [keptServerUrl(url), value]));
  const { Devices, Stations, UnseenStations, TlsStations } = file;
  return {
    ...file,
    Devices: Devices.map(({ ServerUrl, ...device }) => ({
      ...device,
      ...(ServerUrl !== undefined && { ServerUrl: keptServerUrl(ServerUrl) }),
    })),
    Stations: byPort(Stations),
    ...(UnseenStations !== undefined && { UnseenStations: UnseenStations.map(keptServerUrl) }),
    ...(TlsStations !== undefined && { TlsStations: byPort(TlsStations) }),
  };
}

function isKnownFile(value: unknown): value is KnownFile {
  const { Version, Devices, Stations, UnseenStations = [], TlsStations = {} } = (value ?? {}) as Partial<KnownFile>;
  if (!Array.isArray(UnseenStations) || UnseenStations.some((url) => typeof url !== 'string')) return false;
  return Version === 1 && Array.isArray(Devices) && Devices.every(isDevice) && isRecordOfTexts(Stations) && isRecordOfRoots(TlsStations);
}

function isRecordOfRoots(value: unknown): value is Record<string, string> {
  return isRecordOfTexts(value) && Object.values(value).every((roots) => roots === '' || areCertificates(roots));
}

function isDevice(value: unknown): value is KnownDevice {
  if (!isRecordOfTexts(value)) return false;
  const { ProductId, DeviceId, Fingerprint } = value;
  return ProductId !== undefined && DeviceId !== undefined && Fingerprint !== undefined && isFingerprint(Fingerprint);
}

function isRecordOfTexts(value: unknown): value is Record<string, string> {
  return (
    typeof value === 'object' && value !== null && !Array.isArray(value) && Object.values(value).every((entry) => typeof entry === 'string')
  );
}
