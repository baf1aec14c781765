/**
 * The device of a command, and how it is reached: the options of every client command, merged with a pairing string and
 * the state directory.
 *
 * Precedence: an option, then the pairing string, then the state. Two different fingerprints for one device are
 * refused.
 */
import { type Command, Option } from 'commander';
import type { KeepAliveProfile } from '../../client/node.ts';
import { decodePairing, formatHostPort, type PairingString } from '../../protocol/records/index.ts';
import {
  fingerprint,
  fingerprintOrNone,
  HARD_NAT_HELP,
  type HostPort,
  hostPort,
  id,
  keepAliveProfile,
  LINK_MTU_HELP,
  linkMtu,
  noCandidatesOn,
  ROOT_CERTS_HELP,
  rootCerts,
  SERVER_WEBSOCKET_HELP,
  seconds,
  serverUrl,
  webSocketUrl,
} from '../frame/arguments.ts';
import { CommandError, UsageError } from '../frame/errors.ts';
import { stateOption } from '../frame/shell-word.ts';
import { idOf, type Known, type KnownDevice } from './known.ts';
import { rememberedToken, resolveServer, type StationFlags, type StationSource, sourceOf, type TargetStation } from './station.ts';

export interface TargetOptions extends StationFlags {
  device?: string;
  product?: string;
  deviceId?: string;
  serverWebsocket?: string;
  sct?: string;
  sctFile?: string;
  serverKey?: string;
  serverKeyFile?: string;
  jwt?: string;
  jwtFile?: string;
  address?: HostPort;
  /** False: do not search the local network. */
  local?: boolean;
  relayOnly?: boolean;
  /**
   * Value of `--no-candidates-on`, as commander names an option that begins with `no-`: names of interfaces to leave
   * out.
   */
  candidatesOn?: string[];
  /** False: no 256 sockets and no spraying. */
  hardNat?: boolean;
  /** Wait for a device that is not attached. */
  wait?: boolean;
  keepAliveProfile?: KeepAliveProfile;
  fingerprint?: string;
  timeout: number;
  linkMtu?: number;
  json?: boolean;
}

/**
 * Adds a device given as argument to the options.
 * @throws UsageError when it is given twice, or for a broken pairing string
 */
export function oneDevice<Options extends Pick<TargetOptions, 'device'>>(argument: string | undefined, options: Options): Options {
  if (argument === undefined) return options;
  if (options.device !== undefined) throw new UsageError('give the device once: as argument or with --device');
  if (argument.includes('=')) readPairingString(argument);
  return { ...options, device: argument };
}

export function namesDevice({ device, product, deviceId, address }: TargetOptions): boolean {
  return [device, product, deviceId, address].some((name) => name !== undefined);
}

/** The complete target of a connect. */
export interface Target {
  readonly productId: string | undefined;
  readonly deviceId: string | undefined;
  readonly pin: string | undefined;
  readonly sct: string | undefined;
  readonly serverKey: string | undefined;
  readonly server: TargetStation | undefined;
  readonly serverFrom: StationSource;
  /** WebSocket URL of the base station; undefined: derived from its URL. */
  readonly webSocket: string | undefined;
  /** Addresses of the device: as given, else of the pairing string, else remembered. */
  readonly addresses: readonly HostPort[];
  /** The device was named by a pairing string or link. */
  readonly pairing: boolean;
  /** Search the local network for it. */
  readonly local: boolean;
  /** Do not search for a direct path. */
  readonly relayOnly: boolean;
  readonly hardNat: boolean;
  /** Wait for a device that is not attached to the base station. */
  readonly wait: boolean;
  readonly keepAliveProfile: KeepAliveProfile | undefined;
  readonly timeout: number;
}

/** Adds the shared options. */
export function withTarget(command: Command): Command {
  return command
    .option(
      '-d, --device <name>',
      'a known device, by name or product.device, or a pairing string or link; optional with only one known device',
    )
    .addOption(new Option('--product <id>', 'product id (with --device-id)').argParser(id))
    .addOption(new Option('--device-id <id>', 'device id (with --product)').argParser(id))
    .addOption(
      new Option(
        '--server <url>',
        "base station, host:port or https://host:port; remembered per device. Not needed if a pairing string names it, nor on the device's local network",
      ).argParser(serverUrl),
    )
    .addOption(
      new Option(
        '--server-fingerprint <hex>',
        'fingerprint of the base station, or none; remembered, also when --server changes. Without one TLS must authenticate the base station',
      ).argParser(fingerprintOrNone),
    )
    .addOption(new Option('--root-certs <file>', ROOT_CERTS_HELP).argParser(rootCerts))
    .addOption(new Option('--server-websocket <url>', `${SERVER_WEBSOCKET_HELP}; remembered`).argParser(webSocketUrl))
    .option('--sct <token>', 'server connect token; remembered; - reads it from standard input')
    .option('--sct-file <file>', 'the same from a file')
    .option('--server-key <key>', 'server key; - reads it from standard input')
    .option('--server-key-file <file>', 'the same from a file')
    .option('--jwt <token>', 'token of an issuer (JWT), for a --server-key that requires one; - reads it from standard input')
    .option('--jwt-file <file>', 'the same from a file, read again for each connect')
    .addOption(new Option('--address <host:port>', 'connect directly to the device, at its local port').argParser(hostPort))
    .option('--no-local', "do not search the local network, where a query reveals the device's ids")
    .option('--relay-only', 'use only the base station, for the whole connection')
    .addOption(noCandidatesOn('device'))
    .option('--no-hard-nat', HARD_NAT_HELP)
    .addOption(
      new Option('--fingerprint <hex>', 'fingerprint of the device; needed at first contact without a pairing string').argParser(
        fingerprint,
      ),
    )
    .option('--wait', 'wait until --timeout for a device that is not attached to the base station')
    .addOption(new Option('--timeout <seconds>', 'longest time for connecting').argParser(seconds).default(20_000, '20'))
    .addOption(keepAliveProfile('the connection'))
    .addOption(new Option('--link-mtu <bytes>', LINK_MTU_HELP).argParser(linkMtu))
    .option('--state <dir>', 'directory of the key and known devices (default: $XDG_STATE_HOME/svc or ~/.local/state/svc)')
    .option('--json', 'print results as JSON');
}

/**
 * Returns the target of the options.
 * @param replace a fingerprint given now may differ from the known one of device and base station; without one the
 *   device proves itself as at first contact
 * @throws UsageError, CommandError
 */
export function resolveTarget(options: TargetOptions, known: Known, { replace = false } = {}): Target {
  const pairing = givenPairing(options.device);
  const device = knownDevice(options, pairing, known);
  const productId = options.product ?? pairing?.productId ?? device?.ProductId;
  const deviceId = options.deviceId ?? pairing?.deviceId ?? device?.DeviceId;
  const addresses = addressesOf(options, pairing, device);
  const knowledge = { pairing, device, optional: addresses.length > 0, replace };
  const server = resolveServer(options, knowledge, known);
  const serverFrom = sourceOf(options, knowledge);
  if (options.serverWebsocket !== undefined && server === undefined) throw new UsageError('--server-websocket needs --server');
  // A given address is trusted to be current; a remembered one may be outdated.
  const relayOnly = options.relayOnly === true;
  if (relayOnly) requireRelay(options, server);
  if (options.wait === true && server === undefined) throw new UsageError('--wait needs a base station: give it with --server');
  const local = options.local !== false && options.address === undefined && !relayOnly;
  if (server === undefined && addresses.length === 0 && !local)
    throw new UsageError(
      'no way to the device: give the base station with --server, or the device with --address, or leave --no-local out',
    );
  return {
    productId,
    deviceId,
    pin: resolvePin(options.fingerprint ?? pairing?.fingerprint, device, { replace, state: options.state }),
    sct: options.sct ?? pairing?.sct ?? rememberedToken(device, server, options),
    serverKey: options.serverKey,
    server,
    serverFrom,
    webSocket:
      options.serverWebsocket ?? (server !== undefined && server.url === device?.ServerUrl ? device.ServerWebSocketUrl : undefined),
    addresses: relayOnly ? [] : addresses,
    pairing: pairing !== undefined,
    local,
    relayOnly,
    hardNat: options.hardNat !== false,
    wait: options.wait === true,
    keepAliveProfile: options.keepAliveProfile,
    timeout: options.timeout,
  };
}

/** @throws UsageError */
function requireRelay({ address }: TargetOptions, server: TargetStation | undefined): void {
  if (address !== undefined) throw new UsageError('--relay-only and --address exclude each other: an address bypasses the base station');
  if (server === undefined) throw new UsageError('--relay-only needs a base station: give it with --server');
}

/** A remembered address is used where no base station is known. */
function addressesOf(options: TargetOptions, pairing: PairingString | undefined, device: KnownDevice | undefined): readonly HostPort[] {
  if (options.address !== undefined) return [options.address];
  if (options.server !== undefined || pairing?.server !== undefined) return [];
  if (pairing?.addresses !== undefined) return pairing.addresses.map(hostPort);
  return device?.ServerUrl === undefined && device?.Address !== undefined ? [hostPort(device.Address)] : [];
}

/** Name of a target in messages. */
export function nameOf({ productId, deviceId, addresses: [address] }: Pick<Target, 'productId' | 'deviceId' | 'addresses'>): string {
  if (productId !== undefined && deviceId !== undefined) return `device ${productId}.${deviceId}`;
  return address === undefined ? 'the device' : `the device at ${formatHostPort(address)}`;
}

/** Characters of the name of a device. */
const MAX_NAME = 64;

/**
 * The pairing string or link that names a device; undefined for a name.
 * @throws UsageError for a broken one, without repeating it
 */
export function givenPairing(device: string | undefined): PairingString | undefined {
  if (device === undefined || !(/=|:\/\/|#~/.test(device) || device.length > MAX_NAME)) return undefined;
  return readPairingString(device);
}

/** Parses a pairing string, or a link with one. @throws UsageError */
export function readPairingString(text: string): PairingString {
  try {
    return decodePairing(text);
  } catch (error) {
    const { message } = error as Error;
    throw new UsageError(
      /^not a pairing string/.test(message) ? `${message}; expected p=…,d=…, as svc device prints it, or a link` : message,
    );
  }
}

function knownDevice(options: TargetOptions, pairing: PairingString | undefined, known: Known): KnownDevice | undefined {
  if (pairing !== undefined) return known.byId(pairing.productId, pairing.deviceId);
  if (options.device !== undefined) return known.byName(options.device) ?? unknownName(options.device, known);
  if (options.product !== undefined || options.deviceId !== undefined) {
    if (options.product === undefined || options.deviceId === undefined) throw new UsageError('--product and --device-id belong together');
    return known.byId(options.product, options.deviceId);
  }
  if (options.address !== undefined) return known.byAddress(formatHostPort(options.address));
  if (known.devices.length === 1) return known.devices[0];
  if (known.devices.length === 0)
    throw new UsageError('which device? None is known yet: `svc pair -` reads a pairing string and remembers its device');
  throw new UsageError(`which device? Choose one with --device: ${names(known)}`);
}

function unknownName(name: string, known: Known): never {
  const others =
    known.devices.length === 0
      ? 'none is known yet: `svc pair -` reads a pairing string and remembers its device'
      : `known: ${names(known)}`;
  throw new UsageError(`there is no device ${JSON.stringify(name)} (${others})`);
}

function names(known: Known): string {
  return known.devices.map((device) => device.Name ?? idOf(device)).join(', ');
}

function resolvePin(
  given: string | undefined,
  device: KnownDevice | undefined,
  { replace, state }: { replace: boolean; state: string | undefined },
): string | undefined {
  if (device === undefined || replace) return given;
  if (given !== undefined && given !== device.Fingerprint) {
    throw new CommandError(
      `device ${idOf(device)} is known with another fingerprint (${device.Fingerprint}): if it was set up again, \`svc pair -${stateOption(state)} --replace\` reads its new pairing string`,
    );
  }
  return device.Fingerprint;
}
