/**
 * Which device a command means, and with what it is reached: the options every client command shares, and how they are put together with a
 * pairing string and with what the state directory knows.
 *
 * Precedence: an option, then the pairing string, then the state. Two different fingerprints for one device are refused.
 */
import { type Command, Option } from 'commander';
import type { ConnectionOptions, KeepAliveProfile } from '../../client/node.ts';
import { decodePairing, type PairingString } from '../../protocol/records/index.ts';
import {
  fingerprint,
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
import { idOf, type Known, type KnownDevice } from './known.ts';

export interface TargetOptions {
  device?: string;
  product?: string;
  deviceId?: string;
  server?: string;
  serverFingerprint?: string;
  /** PEM. */
  rootCerts?: string;
  serverWebsocket?: string;
  sct?: string;
  sctFile?: string;
  serverKey?: string;
  serverKeyFile?: string;
  jwt?: string;
  jwtFile?: string;
  address?: HostPort;
  /** False: it is not looked for on the local network. */
  local?: boolean;
  relayOnly?: boolean;
  /** Of `--no-candidates-on`, as commander calls what begins with `no-`: names of interfaces that are left out. */
  candidatesOn?: string[];
  /** False: no 256 sockets and no spraying. */
  hardNat?: boolean;
  /** A device that is not attached is waited for. */
  wait?: boolean;
  keepAliveProfile?: KeepAliveProfile;
  fingerprint?: string;
  state?: string;
  timeout: number;
  linkMtu?: number;
  json?: boolean;
}

/** The options with a device that was given as argument. @throws UsageError for one that is given twice, or for no pairing string */
export function oneDevice<Options extends Pick<TargetOptions, 'device'>>(argument: string | undefined, options: Options): Options {
  if (argument === undefined) return options;
  if (options.device !== undefined) throw new UsageError('give the device once: as argument or with --device');
  if (argument.includes('=')) readPairingString(argument);
  return { ...options, device: argument };
}

/** Everything a connect needs. */
export interface Target {
  readonly productId: string | undefined;
  readonly deviceId: string | undefined;
  readonly pin: string | undefined;
  readonly sct: string | undefined;
  readonly serverKey: string | undefined;
  readonly server: TargetStation | undefined;
  /** Of the base station; undefined: what follows from its URL. */
  readonly webSocket: string | undefined;
  readonly address: HostPort | undefined;
  /** It is looked for on the local network. */
  readonly local: boolean;
  /** No direct path is looked for. */
  readonly relayOnly: boolean;
  readonly hardNat: boolean;
  /** A device that is not attached to the base station is waited for. */
  readonly wait: boolean;
  readonly keepAliveProfile: KeepAliveProfile | undefined;
  readonly timeout: number;
}

/** A base station: pinned, or, where the fingerprint is null, proved by TLS. */
export interface TargetStation {
  readonly url: string;
  readonly fingerprint: string | null;
  /** PEM; empty: the roots of Node. */
  readonly roots: string;
}

/** Adds the shared options. */
export function withTarget(command: Command): Command {
  return command
    .option(
      '-d, --device <name>',
      'device: a name or product.device known in the state, or a pairing string or link; with one known device it may be left out',
    )
    .addOption(new Option('--product <id>', 'product id (with --device-id)').argParser(id))
    .addOption(new Option('--device-id <id>', 'device id (with --product)').argParser(id))
    .addOption(
      new Option(
        '--server <url>',
        'base station, https://host[:port]; remembered per device. Not needed on the local network of the device',
      ).argParser(serverUrl),
    )
    .addOption(
      new Option(
        '--server-fingerprint <hex>',
        'fingerprint of the base station; remembered. Without it TLS must prove the base station',
      ).argParser(fingerprint),
    )
    .addOption(new Option('--root-certs <file>', ROOT_CERTS_HELP).argParser(rootCerts))
    .addOption(new Option('--server-websocket <url>', `${SERVER_WEBSOCKET_HELP}; remembered`).argParser(webSocketUrl))
    .option('--sct <token>', 'server connect token; remembered; - reads it from standard input')
    .option('--sct-file <file>', 'the same from a file')
    .option('--server-key <key>', 'server key; - reads it from standard input')
    .option('--server-key-file <file>', 'the same from a file')
    .option('--jwt <token>', 'token of an issuer (JWT), beside a --server-key that asks for one; - reads it from standard input')
    .option('--jwt-file <file>', 'the same from a file, which is read for each connect')
    .addOption(new Option('--address <host:port>', 'straight to the device, its local port').argParser(hostPort))
    .option('--no-local', 'do not look for the device on the local network, where that shows its ids to everybody')
    .option('--relay-only', 'through the base station and no other way, from beginning to end')
    .addOption(noCandidatesOn('device'))
    .option('--no-hard-nat', HARD_NAT_HELP)
    .addOption(
      new Option('--fingerprint <hex>', 'fingerprint of the device; needed at first contact without a pairing string').argParser(
        fingerprint,
      ),
    )
    .option('--wait', 'wait for a device that is not attached to the base station, as long as --timeout says')
    .addOption(new Option('--timeout <seconds>', 'how long connecting may take').argParser(seconds).default(20_000, '20'))
    .addOption(keepAliveProfile('the connection'))
    .addOption(new Option('--link-mtu <bytes>', LINK_MTU_HELP).argParser(linkMtu))
    .option('--state <dir>', 'where key and known devices are kept (default: $XDG_STATE_HOME/svc or ~/.local/state/svc)')
    .option('--json', 'results as JSON on standard output');
}

/**
 * The target of the options.
 * @param replace a fingerprint given now may differ from the known one
 * @throws UsageError, CommandError
 */
export function resolveTarget(options: TargetOptions, known: Known, { replace = false } = {}): Target {
  const pairing = options.device?.includes('=') ? readPairingString(options.device) : undefined;
  const device = knownDevice(options, pairing, known);
  const productId = options.product ?? pairing?.productId ?? device?.ProductId;
  const deviceId = options.deviceId ?? pairing?.deviceId ?? device?.DeviceId;
  const address =
    options.address ??
    (options.server === undefined && device?.ServerUrl === undefined && device?.Address !== undefined
      ? hostPort(device.Address)
      : undefined);
  const server = resolveServer(options, device, known, address !== undefined);
  if (options.serverWebsocket !== undefined && server === undefined) throw new UsageError('--server-websocket needs --server');
  // An address that is given says where the device is; one that is remembered may be an old one.
  const relayOnly = options.relayOnly === true;
  if (relayOnly) requireRelay(options, server);
  if (options.wait === true && server === undefined) throw new UsageError('--wait needs a base station: give it with --server');
  const local = options.local !== false && options.address === undefined && !relayOnly;
  if (server === undefined && address === undefined && !local)
    throw new UsageError(
      'no way to the device: give the base station with --server, or the device with --address, or leave --no-local out',
    );
  return {
    productId,
    deviceId,
    pin: resolvePin(options.fingerprint ?? pairing?.fingerprint, device, replace),
    sct: options.sct ?? pairing?.sct ?? device?.ServerConnectToken,
    serverKey: options.serverKey,
    server,
    webSocket:
      options.serverWebsocket ?? (server !== undefined && server.url === device?.ServerUrl ? device.ServerWebSocketUrl : undefined),
    address,
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
  if (address !== undefined) throw new UsageError('--relay-only and --address exclude each other: an address leads past the base station');
  if (server === undefined) throw new UsageError('--relay-only needs a base station: give it with --server');
}

/** The base station as a connection takes it. */
export function stationOptions({ url, fingerprint, roots }: TargetStation): ConnectionOptions {
  if (fingerprint !== null) return { ServerUrl: url, ServerFingerprint: fingerprint };
  return { ServerUrl: url, ...(roots !== '' && { RootCerts: roots }) };
}

/** How a target is called in messages. */
export function nameOf({ productId, deviceId, address }: Pick<Target, 'productId' | 'deviceId' | 'address'>): string {
  if (productId !== undefined && deviceId !== undefined) return `device ${productId}.${deviceId}`;
  return address === undefined ? 'the device' : `the device at ${formatAddress(address)}`;
}

/** `host:port`, an IPv6 address in brackets. */
export function formatAddress({ host, port }: HostPort): string {
  return host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`;
}

/** A pairing string, or a link with one. @throws UsageError */
export function readPairingString(text: string): PairingString {
  try {
    return decodePairing(text);
  } catch (error) {
    throw new UsageError(`${(error as Error).message}; expected p=…,d=…,sct=…,fp=…, as svc device prints it`);
  }
}

function knownDevice(options: TargetOptions, pairing: PairingString | undefined, known: Known): KnownDevice | undefined {
  if (pairing !== undefined) return known.byId(pairing.productId, pairing.deviceId);
  if (options.device !== undefined) return known.byName(options.device) ?? unknownName(options.device, known);
  if (options.product !== undefined || options.deviceId !== undefined) {
    if (options.product === undefined || options.deviceId === undefined) throw new UsageError('--product and --device-id belong together');
    return known.byId(options.product, options.deviceId);
  }
  if (options.address !== undefined) return known.byAddress(formatAddress(options.address));
  if (known.devices.length === 1) return known.devices[0];
  if (known.devices.length === 0) throw new UsageError('which device? None is known yet: pair one with `svc connect <pairing string>`');
  throw new UsageError(`which device? Choose one with --device: ${names(known)}`);
}

function unknownName(name: string, known: Known): never {
  const others = known.devices.length === 0 ? 'none is known yet: pair one with `svc connect <pairing string>`' : `known: ${names(known)}`;
  throw new UsageError(`there is no device ${JSON.stringify(name)} (${others})`);
}

function names(known: Known): string {
  return known.devices.map((device) => device.Name ?? idOf(device)).join(', ');
}

/**
 * The base station of the options, or the one that is known of the device.
 * @param optional the device is reached without one: only what is given counts
 * @throws UsageError, CommandError
 */
export function resolveServer(
  options: Pick<TargetOptions, 'server' | 'serverFingerprint' | 'rootCerts'>,
  device: KnownDevice | undefined,
  known: Known,
  optional: boolean,
): Target['server'] {
  const { serverFingerprint, rootCerts } = options;
  if (serverFingerprint !== undefined && rootCerts !== undefined)
    throw new UsageError('--root-certs has no effect beside --server-fingerprint: give one of them');
  const url = options.server ?? (optional ? undefined : device?.ServerUrl);
  if (url === undefined) {
    for (const [name, value] of Object.entries({ 'server-fingerprint': serverFingerprint, 'root-certs': rootCerts })) {
      if (value !== undefined && device?.ServerUrl === undefined) throw new UsageError(`--${name} needs --server`);
    }
    return undefined;
  }
  const remembered = known.stationFingerprint(url);
  const onPurpose = `remove it from ${known.directory}/known.json`;
  if (serverFingerprint !== undefined && remembered !== serverFingerprint && known.hasSeenStation(url)) {
    throw new CommandError(
      `${url} is known with another fingerprint (${remembered}): compare the one you gave with what svc basestation prints; if its key was changed on purpose, ${onPurpose}`,
    );
  }
  if (rootCerts !== undefined && known.hasSeenStation(url)) {
    throw new CommandError(`${url} is known by its fingerprint, which --root-certs does not replace: to have TLS prove it, ${onPurpose}`);
  }
  // Roots that are given count for more than a fingerprint that was never shown.
  const fingerprint = serverFingerprint ?? (rootCerts === undefined ? remembered : undefined) ?? null;
  return { url, fingerprint, roots: rootCerts ?? known.tlsStation(url) ?? '' };
}

function resolvePin(given: string | undefined, device: KnownDevice | undefined, replace: boolean): string | undefined {
  if (device === undefined || replace) return given ?? device?.Fingerprint;
  if (given !== undefined && given !== device.Fingerprint) {
    throw new CommandError(
      `device ${idOf(device)} is known with another fingerprint (${device.Fingerprint}): if it was set up anew on purpose, pair it again with svc connect --replace`,
    );
  }
  return device.Fingerprint;
}
