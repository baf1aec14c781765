/**
 * The file known.json: the devices and base stations that a client knows, with the fingerprints of their keys, like
 * known_hosts of ssh. A change is a function of the file, so that it can be applied again to what another process has
 * written meanwhile.
 */
import { join } from 'node:path';
import { readJson } from '../../platform/node/index.ts';
import { areCertificates, isFingerprint } from '../../protocol/identity/index.ts';
import { CommandError } from '../frame/errors.ts';

/** A device in known.json, with the member names of the file. */
export interface KnownDevice {
  ProductId: string;
  DeviceId: string;
  /** Full hex fingerprint of its key. */
  Fingerprint: string;
  /** A name for the command line. */
  Name?: string;
  /**
   * Its server connect tokens, by {@link stationKey}: each goes to its own base station only. The latest is the last.
   */
  Tokens?: Record<string, string>;
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

/** Key of the tokens whose base station is not known: the next one that a person states gets them. */
export const NO_STATION = '';
/** Most tokens of one device; the oldest goes. */
const MAX_TOKENS = 8;

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
    else file.Devices[index] = { ...kept(file.Devices[index]!, device), ...device, ...tokens(file.Devices[index]!, device) };
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

/** Replaces the proof of a base station on purpose: its tokens follow. */
export function replaceStation(url: string, station: KnownStation): KnownChange {
  return (file) => {
    const before = stationOf(file, url);
    file.Stations[url] = station;
    if (before !== undefined) moveTokens(file, stationKey(url, before), stationKey(url, station));
  };
}

/** Forgets how the base station is proved. Its tokens stay for the one that a person states next. */
export function forgetStation(url: string): KnownChange {
  return (file) => {
    const before = stationOf(file, url);
    delete file.Stations[url];
    if (before !== undefined) moveTokens(file, stationKey(url, before), NO_STATION);
  };
}

/** What identifies a base station: its key at any address, or, authenticated by TLS, its URL. */
export function stationKey(url: string, { Fingerprint }: KnownStation): string {
  return Fingerprint ?? url;
}

export function stationOf({ Stations }: KnownFile, url: string): KnownStation | undefined {
  return Object.hasOwn(Stations, url) ? Stations[url] : undefined;
}

/** Returns the values kept when a device is remembered again. */
function kept({ ServerWebSocketUrl, ...rest }: KnownDevice, { ServerUrl }: KnownDevice): KnownDevice {
  return { ...rest, ...(ServerUrl === undefined && ServerWebSocketUrl !== undefined && { ServerWebSocketUrl }) };
}

/** The tokens of a device that is remembered again. One whose base station is known now belongs to that one alone. */
function tokens({ Tokens: before = {} }: KnownDevice, { Tokens: given = {} }: KnownDevice): Pick<KnownDevice, 'Tokens'> {
  const known = Object.entries(before).filter(
    ([key, token]) => !Object.hasOwn(given, key) && !(key === NO_STATION && Object.values(given).includes(token)),
  );
  const all = [...known, ...Object.entries(given)].slice(-MAX_TOKENS);
  return all.length === 0 ? {} : { Tokens: Object.fromEntries(all) };
}

/** Moves the tokens of a base station that is known at no address. */
function moveTokens(file: KnownFile, from: string, to: string): void {
  if (Object.entries(file.Stations).some(([url, station]) => stationKey(url, station) === from)) return;
  file.Devices = file.Devices.map((device) => {
    const { [from]: token, ...others } = device.Tokens ?? {};
    return token === undefined ? device : { ...device, Tokens: { [to]: token, ...others } };
  });
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
  const { Tokens = {}, ...texts } = Object(value) as Record<string, unknown>;
  if (!isRecord(value) || !isRecordOfTexts(texts) || !isRecordOfTexts(Tokens)) return false;
  const { ProductId, DeviceId, Fingerprint } = texts;
  return ProductId !== undefined && DeviceId !== undefined && Fingerprint !== undefined && isFingerprint(Fingerprint);
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function isRecordOfTexts(value: unknown): value is Record<string, string> {
  return isRecord(value) && Object.values(value).every((entry) => typeof entry === 'string');
}
