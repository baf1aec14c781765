/**
 * `device.json`: the services and settings of a device, written by people.
 *
 *     {
 *       "TcpTunnels": [
 *         {"Id": "web", "Type": "http", "Host": "127.0.0.1", "Port": 8080, "Metadata": {"title": "Camera"}}
 *       ],
 *       "UdpTunnels": [{"Id": "names", "Type": "dns", "Host": "127.0.0.1", "Port": 53, "IdleTimeout": 30}],
 *       "Rendezvous": {
 *         "Mode": "paired", "Candidates": ["203.0.113.7:5593"], "NoCandidatesOn": ["eth1"], "HardNat": false
 *       },
 *       "OverTemperature": {"Limit": 28, "Category": "CRITICAL"},
 *       "TimeConstant": 1200
 *     }
 *
 * Every member is optional. `Metadata` is further information on a service for clients. `IdleTimeout` is the time in
 * seconds without a datagram after which a flow of a UDP service ends. `Rendezvous` configures the search for direct
 * paths (docs/paths.md). `Limit` is the temperature of the alarm in °C; without it there is none. `TimeConstant` is the
 * time in seconds for 63 % of a temperature change. An unknown or invalid member is refused with its place.
 */

import { JsonField } from '../../device/iam/json-fields.ts';
import type { RendezvousOptions, TcpTunnelService, UdpTunnelService } from '../../device/index.ts';
import { MAX_STATED, portMappings, rendezvousModes, statedCandidate } from '../../device/rendezvous-options.ts';
import { readJson } from '../../platform/node/index.ts';
import { SvcError } from '../../protocol/errors/index.ts';
import { CommandError, UsageError } from '../frame/errors.ts';
import { CATEGORIES, type Category } from './notifications.ts';

/** Name of the file in the directory of a device. */
export const CONFIGURATION_FILE = 'device.json';

export interface DeviceConfiguration {
  readonly tcpTunnels: readonly TcpTunnelService[];
  readonly udpTunnels: readonly UdpTunnelService[];
  readonly rendezvous?: RendezvousOptions;
  readonly overTemperature?: { readonly limit: number; readonly category: Category };
  /** Seconds. */
  readonly timeConstant?: number;
}

/**
 * @param path a file that must exist; undefined takes the one in the device's directory, if there is one
 * @throws UsageError, CommandError with the path and the place in the document
 */
export async function readDeviceConfiguration(path: string | undefined, directoryFile: string): Promise<DeviceConfiguration> {
  const document = await readJson(path ?? directoryFile, { given: path !== undefined }).catch((error: unknown) => {
    if (path !== undefined && error instanceof SvcError && error.code === 'FAILED') throw new UsageError(`--config: ${error.message}`);
    throw error;
  });
  if (document === undefined && path !== undefined) throw new UsageError(`--config ${path}: there is no such file`);
  try {
    return document === undefined ? { tcpTunnels: [], udpTunnels: [] } : parseDeviceConfiguration(document);
  } catch (error) {
    if (error instanceof SvcError) throw new CommandError(`${path ?? directoryFile}: ${error.message}`);
    throw error;
  }
}

/** @param document a parsed JSON value. @throws LocalError PARSE with the place in the document */
export function parseDeviceConfiguration(document: unknown): DeviceConfiguration {
  const root = new JsonField(document).only(['TcpTunnels', 'UdpTunnels', 'Rendezvous', 'OverTemperature', 'TimeConstant']);
  const overTemperature = root.optional('OverTemperature')?.only(['Limit', 'Category']);
  const rendezvous = root.optional('Rendezvous');
  const timeConstant = root.optional('TimeConstant');
  return {
    tcpTunnels: services(root.optional('TcpTunnels'), readService),
    udpTunnels: services(root.optional('UdpTunnels'), readUdpService, ['IdleTimeout']),
    ...(rendezvous !== undefined && {
      rendezvous: readRendezvous(rendezvous.only(['Mode', 'Candidates', 'NoCandidatesOn', 'HardNat', 'PortMapping'])),
    }),
    ...(overTemperature !== undefined && {
      overTemperature: {
        limit: number(overTemperature.required('Limit'), -50, 100),
        category: category(overTemperature.optional('Category')),
      },
    }),
    ...(timeConstant !== undefined && { timeConstant: number(timeConstant, 1, 86_400) }),
  };
}

function readRendezvous(field: JsonField): RendezvousOptions {
  const [mode, candidates, noCandidatesOn, hardNat, portMapping] = ['Mode', 'Candidates', 'NoCandidatesOn', 'HardNat', 'PortMapping'].map(
    (name) => field.optional(name),
  );
  if (candidates !== undefined && candidates.array.length > MAX_STATED) candidates.reject(`has at most ${MAX_STATED} entries`);
  return {
    ...(mode !== undefined && { mode: oneOf(mode, rendezvousModes) }),
    ...(portMapping !== undefined && { portMapping: oneOf(portMapping, portMappings) }),
    ...(candidates !== undefined && { candidates: candidates.array.map(candidate) }),
    ...(noCandidatesOn !== undefined && { noCandidatesOn: noCandidatesOn.array.map(({ text }) => text) }),
    ...(hardNat !== undefined && { hardNat: hardNat.boolean }),
  };
}

function oneOf<T extends string>(field: JsonField, choices: readonly T[]): T {
  return choices.find((each) => each === field.text) ?? field.reject(`must be one of ${choices.join(', ')}`);
}

function candidate(field: JsonField): string {
  try {
    statedCandidate(field.text);
  } catch (error) {
    if (error instanceof SvcError) field.reject(`is wrong: ${error.message}`);
    throw error;
  }
  return field.text;
}

/** @param more members of this kind only */
function services<S extends TcpTunnelService>(
  field: JsonField | undefined,
  read: (field: JsonField) => S,
  more: readonly string[] = [],
): S[] {
  const seen = new Set<string>();
  return (field?.array ?? []).map((each) => {
    const service = read(each.only(['Id', 'Type', 'Host', 'Port', 'Metadata', ...more]));
    if (seen.has(service.id)) each.required('Id').reject(`"${service.id}" is used twice`);
    seen.add(service.id);
    return service;
  });
}

function readUdpService(field: JsonField): UdpTunnelService {
  const idleTimeout = field.optional('IdleTimeout');
  return { ...readService(field), ...(idleTimeout !== undefined && { idleTimeout: number(idleTimeout, 1, 86_400, true) * 1000 }) };
}

function readService(field: JsonField): TcpTunnelService {
  const metadata = field.optional('Metadata');
  return {
    id: matching(field.required('Id'), /^(?!\.{1,2}$)[^/]{1,64}$/, '1 to 64 characters without "/", and not "." or ".."'),
    type: matching(field.required('Type'), /^.{1,64}$/, '1 to 64 characters'),
    host: matching(field.required('Host'), /^\S{1,253}$/, 'an address or a host name'),
    port: number(field.required('Port'), 1, 65_535, true),
    ...(metadata !== undefined && { metadata: Object.fromEntries(metadata.names.map((name) => [name, metadata.required(name).text])) }),
  };
}

function matching(field: JsonField, pattern: RegExp, expectation: string): string {
  return pattern.test(field.text) ? field.text : field.reject(`must be ${expectation}`);
}

function number(field: JsonField, min: number, max: number, whole = false): number {
  const value = whole ? field.integer : field.number;
  return value >= min && value <= max ? value : field.reject(`must be from ${min} to ${max}`);
}

function category(field: JsonField | undefined): Category {
  if (field === undefined) return 'CRITICAL';
  const named = CATEGORIES.find((each) => each === field.text);
  return named ?? field.reject(`must be one of ${CATEGORIES.join(', ')}`);
}
