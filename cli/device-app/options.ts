/** The options of `svc device`. */
import { type Command, InvalidArgumentError, Option } from 'commander';
import type { KeepAliveProfile, TcpTunnelService, UdpTunnelService } from '../../device/index.ts';
import { DEFAULT_LOCAL_PORT, DEFAULT_P2P_PORT } from '../../device/settings.ts';
import { type LogLevel, logLevels } from '../../platform/environment.ts';
import { type PairingMode, pairingModes } from '../../protocol/records/index.ts';
import {
  collect,
  fingerprintOrNone,
  hostPort,
  id,
  integer,
  keepAliveProfile,
  LINK_MTU_HELP,
  linkMtu,
  listenPort,
  ROOT_CERTS_HELP,
  rootCerts,
  SERVER_WEBSOCKET_HELP,
  serverUrl,
  webSocketUrl,
} from '../frame/arguments.ts';
import { defaultDataDirectory } from '../frame/data-directory.ts';
import type { FirstAccess } from './access.ts';
import type { IdentityOptions } from './identity.ts';
import { type RendezvousFlags, withRendezvous } from './rendezvous.ts';

/** The options as commander parses them. */
export interface DeviceCommandOptions extends RendezvousFlags, IdentityOptions {
  data: string;
  join?: string;
  config?: string;
  iam?: FirstAccess;
  pairing?: PairingMode[];
  allow: string[];
  tunnel: TcpTunnelService[];
  udpTunnel: UdpTunnelService[];
  tunnelConnections?: number;
  tunnelConnectionsPerClient?: number;
  localPort?: number;
  p2pPort?: number;
  linkMtu?: number;
  keepAliveProfile?: KeepAliveProfile;
  mdns: boolean;
  logLevel?: LogLevel;
  init?: boolean;
  json?: boolean;
}

const TCP_EXAMPLE = 'web=http:127.0.0.1:8080';
const UDP_EXAMPLE = 'names=dns:127.0.0.1:53';

/** Adds the options. */
export function withDeviceOptions(command: Command): Command {
  command
    .addOption(
      new Option('--data <dir>', 'directory of key, users and state, created at first start; one per device').default(
        defaultDataDirectory('device'),
      ),
    )
    .addOption(
      new Option(
        '--join <file>',
        'at first start: join a base station by a join string, which svc admin device invite prints there; - reads it from standard input, or asks for it at a terminal',
      )
        .argParser(joinFile)
        .conflicts('init'),
    )
    .addOption(new Option('--product <id>', 'product id; needed at first start without --join').argParser(id))
    .addOption(new Option('--device-id <id>', 'device id; needed at first start, unless a join string has one').argParser(id))
    .addOption(
      new Option(
        '--server <url>',
        'base station to attach to, host:port or https://host:port; remembered. Without one the device is reached only on the local network',
      ).argParser(serverUrl),
    )
    .addOption(
      new Option(
        '--server-fingerprint <hex>',
        'fingerprint of the base station, which it prints at its start, or none; remembered, also when --server changes. Without one TLS must authenticate the base station',
      ).argParser(fingerprintOrNone),
    )
    .addOption(new Option('--root-certs <file>', ROOT_CERTS_HELP).argParser(rootCerts))
    .addOption(new Option('--server-websocket <url>', `${SERVER_WEBSOCKET_HELP}; remembered`).argParser(webSocketUrl))
    .option('--config <file>', 'JSON file of what the device always offers (default: device.json in its directory, if it exists)')
    .addOption(
      new Option('--iam <kind>', 'first users: an invited administrator (default), or any client that pairs').choices([
        'production',
        'demo',
      ]),
    )
    .addOption(
      new Option('--pairing <modes>', `pairing modes to turn on, turning the others off: ${pairingModes.join(',')} or none`).argParser(
        modes,
      ),
    )
    .addOption(
      new Option(
        '--allow <client>',
        'clients to make administrators without pairing: a fingerprint printed by svc key show, or a file of them; repeatable',
      )
        .argParser(collect((text) => text))
        .default([], 'none'),
    )
    .addOption(
      new Option('--tunnel <id=type:host:port>', `TCP service to offer in this run, for example ${TCP_EXAMPLE}; repeatable`)
        .argParser(collect(tunnel(TCP_EXAMPLE)))
        .default([], 'none'),
    )
    .addOption(
      new Option('--udp-tunnel <id=type:host:port>', `UDP service to offer in this run, for example ${UDP_EXAMPLE}; repeatable`)
        .argParser(collect(tunnel(UDP_EXAMPLE)))
        .default([], 'none'),
    )
    .addOption(
      new Option(
        '--tunnel-connections <n>',
        'concurrent connections to all services, each with a file descriptor (default: 768)',
      ).argParser(tunnelConnections),
    )
    .addOption(
      new Option('--tunnel-connections-per-client <n>', 'the same of one client (default: as many as are free)').argParser(
        tunnelConnections,
      ),
    )
    .addOption(
      new Option('--local-port <port>', `UDP port for direct clients, 0 for a free one (default: ${DEFAULT_LOCAL_PORT})`).argParser(
        listenPort,
      ),
    )
    .addOption(
      new Option('--p2p-port <port>', `UDP port towards the base station, 0 for a free one (default: ${DEFAULT_P2P_PORT})`).argParser(
        listenPort,
      ),
    )
    .addOption(keepAliveProfile('the channel to the base station'))
    .addOption(new Option('--link-mtu <bytes>', LINK_MTU_HELP).argParser(linkMtu))
    .option('--no-mdns', 'do not announce the device on the local network')
    .addOption(new Option('--log-level <level>', 'least severe messages on standard error (default: warn)').choices(logLevels))
    .option('--init', 'create key and users, print how to register and pair the device, and end')
    .option('--json', 'print events as JSON lines');
  return withRendezvous(command);
}

function tunnelConnections(text: string): number {
  return integer(text, 0, 100_000, 'a number of connections is from 0 to 100000');
}

function tunnel(example: string): (text: string) => TcpTunnelService {
  return (text) => {
    const match = /^([^=/\s]{1,64})=([^:\s]{1,64}):(.+)$/.exec(text);
    if (match === null) throw new InvalidArgumentError(`Expected id=type:host:port, for example ${example}.`);
    const [, serviceId = '', type = '', address = ''] = match;
    return { id: serviceId, type, ...hostPort(address) };
  };
}

function modes(text: string): PairingMode[] {
  const names = text === 'none' ? [] : text.split(',');
  return names.map((name) => {
    const mode = pairingModes.find((each) => each === name);
    if (mode === undefined) throw new InvalidArgumentError(`Expected none, or some of ${pairingModes.join(',')}.`);
    return mode;
  });
}

/** Checks the value of --join: Commander takes the next option for a missing value. */
function joinFile(text: string): string {
  if (text.startsWith('--')) throw new InvalidArgumentError('Expected a file with the join string, or - for standard input.');
  return text;
}
