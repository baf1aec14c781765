/**
 * The file known.json: the devices and base stations that a client knows, with the fingerprints of their keys, like
 * known_hosts of ssh. A change is a function of the file, so that it can be applied again to what another process has
 * written meanwhile.
 */
import { join } from 'node:path';
import { areCertificates, isFingerprint } from '../../protocol/identity/index.ts';
import { readJson } from '../../transport/node/index.ts';
import { CommandError } from '../frame/errors.ts';

/** A device in known.json, with the member names of the file. */
export interface KnownDevice {
  ProductId: string;
  DeviceId: string;
  /** Full hex fingerprint of its key. */
  Fingerprint: string;
  /** A name for the command line. */
  Name?: string;
  ServerConnectToken?: string;
  ServerUrl?: string;
  /** The WebSocket to that base station, where one was given. */
  ServerWebSocketUrl?: string;
  /** host:port where it was reached directly. */
  Address?: string;
  /** The user that this client was at the latest check. */
  User?: string;
}

export interface KnownFile {
  Version: 1;
  Devices: KnownDevice[];
  /** Fingerprint of a base station by its URL. */
  Stations: Record<string, string>;
  /** URLs of base stations that were never reached: nothing has confirmed their fingerprints. */
  UnseenStations?: string[];
  /**
   * Base stations authenticated by TLS, by URL: the roots of their certificates as PEM, or an empty text for those of
   * Node.
   */
  TlsStations?: Record<string, string>;
}

/** An addition to the file, or a removal from it. */
export type KnownChange = (file: KnownFile) => void;

/** Returns an empty file where there is none. @throws CommandError when it cannot be read or is damaged */
export async function readKnownFile(directory: string): Promise<KnownFile> {
  const path = knownPath(directory);
  const content = await readJson(path);
  if (content === undefined) return { Version: 1, Devices: [], Stations: {} };
  if (!isKnownFile(content)) throw new CommandError(`${path} is damaged: repair it, or move it away and pair again`);
  return content;
}

export function knownPath(directory: string): string {
  return join(directory, 'known.json');
}

/** `product.device`, the name of a device without one. */
export function idOf({ ProductId, DeviceId }: { ProductId: string; DeviceId: string }): string {
  return `${ProductId}.${DeviceId}`;
}

/**
 * Adds the device, or merges its new values. A WebSocket belongs to one base station, and is dropped with its URL. A
 * name that another process has given to another device meanwhile stays there.
 */
export function rememberDevice(given: KnownDevice): KnownChange {
  const { Name, ...unnamed } = given;
  return (file) => {
    const isTaken = Name !== undefined && file.Devices.some((known) => known.Name === Name && idOf(known) !== idOf(given));
    const device = isTaken ? unnamed : given;
    const index = file.Devices.findIndex((known) => idOf(known) === idOf(device));
    if (index < 0) file.Devices.push(device);
    else file.Devices[index] = { ...kept(file.Devices[index]!, device), ...device };
  };
}

export function forgetDevice(device: KnownDevice): KnownChange {
  return (file) => {
    file.Devices = file.Devices.filter((known) => idOf(known) !== idOf(device));
  };
}

/** @param seen the base station has just proved this fingerprint */
export function rememberStation(url: string, fingerprint: string, seen: boolean): KnownChange {
  return (file) => {
    const wasSeen = hasSeenStation(file, url) && stationFingerprint(file, url) === fingerprint;
    noteUnseen(file, url, !seen && !wasSeen);
    file.Stations[url] = fingerprint;
    delete file.TlsStations?.[url];
  };
}

/** @param roots PEM, or an empty text for those of Node */
export function rememberTlsStation(url: string, roots: string): KnownChange {
  return (file) => {
    noteUnseen(file, url, false);
    delete file.Stations[url];
    file.TlsStations = { ...file.TlsStations, [url]: roots };
  };
}

export function stationFingerprint({ Stations }: KnownFile, url: string): string | undefined {
  return Object.hasOwn(Stations, url) ? Stations[url] : undefined;
}

/** Whether the base station has proved its known fingerprint. */
export function hasSeenStation(file: KnownFile, url: string): boolean {
  return stationFingerprint(file, url) !== undefined && !(file.UnseenStations ?? []).includes(url);
}

function noteUnseen(file: KnownFile, url: string, isUnseen: boolean): void {
  const others = (file.UnseenStations ?? []).filter((each) => each !== url);
  const unseen = isUnseen ? [...others, url] : others;
  if (unseen.length > 0) file.UnseenStations = unseen;
  else delete file.UnseenStations;
}

/**
 * Returns the values kept when a device is remembered again: a token for one base station never goes to another one,
 * unless it is given again.
 */
function kept({ ServerWebSocketUrl, ServerConnectToken, ...rest }: KnownDevice, { ServerUrl }: KnownDevice): KnownDevice {
  const isElsewhere = ServerUrl !== undefined && rest.ServerUrl !== undefined && ServerUrl !== rest.ServerUrl;
  return {
    ...rest,
    ...(!isElsewhere && ServerConnectToken !== undefined && { ServerConnectToken }),
    ...(ServerUrl === undefined && ServerWebSocketUrl !== undefined && { ServerWebSocketUrl }),
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
