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

/** A base station, authenticated by the fingerprint of its key or by TLS. */
export interface KnownStation {
  Fingerprint?: string;
  /** It has proved the fingerprint; else a person stated it, and another one may replace it. */
  Seen?: boolean;
  /** Where TLS authenticates it: the roots of its certificates as PEM, or an empty text for those of Node. */
  Roots?: string;
}

export interface KnownFile {
  Version: 1;
  Devices: KnownDevice[];
  /** By URL. */
  Stations: Record<string, KnownStation>;
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

/** Replaces what was known of the base station, except that it has proved the same fingerprint. */
export function rememberStation(url: string, station: KnownStation): KnownChange {
  return (file) => {
    const before = stationOf(file, url);
    const isProved = before?.Seen === true && before.Fingerprint === station.Fingerprint;
    file.Stations[url] = isProved ? before : station;
  };
}

export function stationOf({ Stations }: KnownFile, url: string): KnownStation | undefined {
  return Object.hasOwn(Stations, url) ? Stations[url] : undefined;
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
  const { Version, Devices, Stations, ...others } = (value ?? {}) as Partial<KnownFile>;
  if (Object.keys(others).length > 0) return false;
  return (
    Version === 1 && Array.isArray(Devices) && Devices.every(isDevice) && isRecord(Stations) && Object.values(Stations).every(isStation)
  );
}

function isStation(value: unknown): value is KnownStation {
  const { Fingerprint, Seen, Roots, ...others } = Object(value) as Record<string, unknown>;
  if (Object.keys(others).length > 0) return false;
  if (typeof Roots === 'string') return Fingerprint === undefined && Seen === undefined && (Roots === '' || areCertificates(Roots));
  return typeof Fingerprint === 'string' && isFingerprint(Fingerprint) && typeof Seen === 'boolean' && Roots === undefined;
}

function isDevice(value: unknown): value is KnownDevice {
  if (!isRecordOfTexts(value)) return false;
  const { ProductId, DeviceId, Fingerprint } = value;
  return ProductId !== undefined && DeviceId !== undefined && Fingerprint !== undefined && isFingerprint(Fingerprint);
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function isRecordOfTexts(value: unknown): value is Record<string, string> {
  return isRecord(value) && Object.values(value).every((entry) => typeof entry === 'string');
}
