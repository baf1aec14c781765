/** `svc basestation`: runs a base station until it is stopped. */
import { Command, InvalidArgumentError, Option } from 'commander';
import type { LogLevel } from '../platform/environment.ts';
import { nodeEnvironment, stderrLog } from '../platform/node/index.ts';
import { LocalError } from '../protocol/errors/index.ts';
import { formatHostPort, isHostPort } from '../protocol/records/index.ts';
import { defaultRouteLimits } from '../protocol/relay/index.ts';
import { defaultKeepAlive } from '../runtime/host/defaults.ts';
import { DEFAULT_SERVER_PORT, parseServerUrl } from '../runtime/station/index.ts';
import { isIpEntry } from '../server/administration/index.ts';
import { defaultSettings, type ProxyHeader, type RunningBasestation, type StationSettings, startBasestation } from '../server/index.ts';
import { address, collect, integer, listenPort, serverUrl } from './frame/arguments.ts';
import { defaultDataDirectory } from './frame/data-directory.ts';
import { describe, UsageError } from './frame/errors.ts';
import { heldLog } from './frame/held-log.ts';
import { namingPorts, reachableHost } from './frame/listening.ts';
import { Output } from './frame/output.ts';
import { interruption, stopped } from './frame/signals.ts';
import { stationEvents } from './frame/station-events.ts';
import { sayHowToJoin } from './how-to-join.ts';

interface Options {
  data: string;
  port: number;
  host?: string;
  /** False: none from now on. */
  url?: string | false;
  stunPort?: number;
  stunAddress?: string;
  httpHost?: string;
  tlsCert?: string;
  tlsKey?: string;
  keepAlive?: number;
  connections: number;
  connectionsPerAddress: number;
  connectsPerDevice: number;
  routes: number;
  websockets: number;
  websocketsPerAddress: number;
  trustedProxy?: string[];
  proxyHeader: ProxyHeader;
  jwksAllow?: string[];
  logLevel: LogLevel;
  json?: boolean;
}

/** The command `svc basestation`. */
export function basestationCommand(): Command {
  return new Command('basestation')
    .description('run a base station: devices attach to it, clients connect through it')
    .option('--data <directory>', 'directory of its key and database; created at the first start', defaultDataDirectory('basestation'))
    .option('--url <url>', 'host:port or https://host:port where devices reach it, for join strings; remembered', publicUrl)
    .option('--no-url', 'forget --url: join strings name the address of this machine')
    .option(
      '--port <number>',
      'port for UDP and WebSockets (devices, clients) and for REST; 0 = a free port',
      listenPort,
      DEFAULT_SERVER_PORT,
    )
    .option('--host <address>', 'numeric address to listen on, with UDP and for WebSockets; default all', address)
    .option(
      '--stun-port <number>',
      'UDP port of STUN, which shows devices and clients how their NAT maps; 0 = none. Default: the port after --port',
      stunPort,
    )
    .option('--stun-address <address>', 'second address of this host for STUN, on the port after --stun-port', address)
    .option(
      '--http-host <address>',
      'numeric address for REST; default loopback; elsewhere, without TLS, keys travel in the clear',
      address,
    )
    .option(
      '--tls-cert <file>',
      'certificate chain (PEM): REST and WebSockets over TLS, on all addresses. Reloaded when it changes, and at SIGHUP',
    )
    .option('--tls-key <file>', 'private key of the certificate (PEM)')
    .option('--keep-alive <ms>', 'longest keep-alive interval of attached devices; default: as long as their NATs allow', keepAlive)
    .option('--connections <n>', 'concurrent devices and clients, a quarter kept for devices', atMost(100_000), defaultSettings.connections)
    .option(
      '--connections-per-address <n>',
      'the same, per IPv4 address or IPv6 /64',
      atMost(100_000),
      defaultSettings.connectionsPerAddress,
    )
    .option('--connects-per-device <n>', 'connects per second to one device', atMost(10_000), defaultSettings.connectsPerDevice)
    .option('--routes <n>', 'concurrent relayed connections', atMost(1_000_000), defaultRouteLimits.routes)
    .option('--websockets <n>', 'concurrent WebSockets, in addition to UDP', atMost(100_000), defaultSettings.webSockets)
    .option(
      '--websockets-per-address <n>',
      'the same, per IPv4 address or IPv6 /64: clients behind a firewall that blocks UDP share one',
      atMost(100_000),
      defaultSettings.webSocketsPerAddress,
    )
    .option(
      '--trusted-proxy <address>',
      "address or prefix of a reverse proxy that reports its clients' addresses; repeatable. Without it all its clients share the limit of its address",
      collect(ipEntry),
    )
    .addOption(
      new Option('--proxy-header <name>', 'the only header of trusted proxies that is used: it must be one that they set themselves')
        .choices(['x-forwarded-for', 'forwarded'])
        .default('x-forwarded-for'),
    )
    .option(
      '--jwks-allow <address>',
      'private address or prefix where a token issuer may publish its keys; repeatable. Default: none',
      collect(ipEntry),
    )
    .addOption(
      new Option('--log-level <level>', 'least severe messages on standard error')
        .choices(['error', 'warn', 'info', 'debug', 'trace'])
        .default('info'),
    )
    .option('--json', 'print events as JSON lines: attached, detached and joined devices, refused requests')
    .addHelpText('after', '\nExample:\n  svc basestation\n  svc admin device invite')
    .action(run);
}

async function run(options: Options, command: Command): Promise<void> {
  checkOptions(options, command);
  const { tlsCert, tlsKey } = options;
  if ((tlsCert === undefined) !== (tlsKey === undefined)) throw new UsageError('--tls-cert and --tls-key belong together: give both');
  const output = new Output(options.json === true);
  const interrupt = interruption();
  let station: RunningBasestation | undefined;
  // Without a certificate the signal ends the process, as usual.
  const reload = (): void => void station?.reloadCertificates();
  if (tlsCert !== undefined) process.on('SIGHUP', reload);
  const toStderr = stderrLog({ level: options.logLevel });
  const log = heldLog(output.json ? stationEvents(toStderr, nodeEnvironment().clock, (event) => output.result(event, '')) : toStderr);
  try {
    station = await namingPorts({ '--port': options.port }, () =>
      startBasestation({
        data: options.data,
        ...(options.url !== undefined && { url: options.url || null }),
        port: options.port,
        ...(options.host === undefined ? {} : { host: options.host }),
        ...(options.httpHost === undefined ? {} : { httpHost: options.httpHost }),
        ...(tlsCert === undefined || tlsKey === undefined ? {} : { tls: { certFile: tlsCert, keyFile: tlsKey } }),
        settings: settingsOf(options),
        ...(options.jwksAllow === undefined ? {} : { jwksAllow: options.jwksAllow }),
        ...(options.trustedProxy === undefined ? {} : { trustedProxies: options.trustedProxy }),
        proxyHeader: options.proxyHeader,
        log,
      }),
    ).catch((error: unknown) => {
      throw withOption(error, options);
    });
    announce(output, station);
    log.release();
    if (!output.json)
      await sayHowToJoin(output, options.data, station.start, output.isTerminal).catch((error: unknown) => output.warn(describe(error)));
    await stopped(AbortSignal.any([interrupt.signal, station.lost]));
    await station.close();
    station.lost.throwIfAborted();
    output.result({ event: 'closed' }, 'base station closed');
  } finally {
    log.release();
    process.off('SIGHUP', reload);
    interrupt.dispose();
  }
}

/**
 * Refuses options without effect. The default of a per-address limit may exceed the total: then the total is the limit.
 */
function checkOptions({ connections, connectionsPerAddress, websockets, websocketsPerAddress }: Options, command: Command): void {
  if (command.getOptionValueSource('proxyHeader') === 'cli' && command.getOptionValueSource('trustedProxy') === undefined)
    throw new UsageError('--proxy-header has no effect without --trusted-proxy: name the proxies whose header is trusted');
  if (command.getOptionValueSource('websocketsPerAddress') === 'cli' && websocketsPerAddress > websockets)
    throw new UsageError(
      `--websockets-per-address ${websocketsPerAddress} is more than --websockets ${websockets}: one address cannot have more than all`,
    );
  if (command.getOptionValueSource('connectionsPerAddress') === 'cli' && connectionsPerAddress > connections)
    throw new UsageError(
      `--connections-per-address ${connectionsPerAddress} is more than --connections ${connections}: one address cannot have more than all`,
    );
}

function settingsOf(options: Options): Partial<StationSettings> {
  const { stunPort = null, stunAddress = null, keepAlive, connections, connectionsPerAddress, connectsPerDevice, routes } = options;
  const { websockets, websocketsPerAddress } = options;
  return {
    stunPort,
    stunAddress,
    ...(keepAlive !== undefined && { keepAlive: { ...defaultKeepAlive, interval: keepAlive } }),
    connections,
    connectionsPerAddress,
    connectsPerDevice,
    webSockets: websockets,
    webSocketsPerAddress: websocketsPerAddress,
    routes: { routes },
  };
}

function announce(output: Output, { port, fingerprint, http, stun }: RunningBasestation): void {
  const place = formatHostPort({ host: reachableHost(http.host), port: http.port });
  const ready = `base station ready on UDP port ${port} and ${http.secure ? 'https' : 'http'}://${place}, fingerprint ${fingerprint}`;
  const text = stun.length === 0 ? ready : [ready, `STUN on UDP port ${stun.map(stunPlace).join(' and ')}`];
  output.result({ event: 'listening', port, httpPort: http.port, httpHost: http.host, secure: http.secure, fingerprint, stun }, text);
}

/** A UDP port that needs rights, with the option that chooses another; `namingPorts` names one that is taken. */
function withOption(error: unknown, { port }: Options): unknown {
  if (!(error instanceof LocalError) || error.code !== 'PRIVILEGED_PORT' || error.message.includes('--port')) return error;
  return new LocalError(error.code, `this user may not open UDP port ${port}: choose one above 1023 with --port`);
}

function stunPlace({ address, port }: RunningBasestation['stun'][number]): string {
  return address === undefined ? String(port) : `${port} of ${address}`;
}

/** A URL that fits into a join string. */
function publicUrl(text: string): string {
  const url = serverUrl(text);
  const { host, port } = parseServerUrl(url)!;
  if (host === '0.0.0.0' || host === '::')
    throw new InvalidArgumentError(
      `${host} stands for all addresses of this machine: expected a name or the one address where devices reach it.`,
    );
  if (!isHostPort(formatHostPort({ host, port: port ?? DEFAULT_SERVER_PORT })))
    throw new InvalidArgumentError('Expected https://host or https://host:port with a name of up to 249 characters.');
  return url;
}

function stunPort(text: string): number {
  return integer(text, 0, 65535, 'a port for STUN is a number from 1 to 65535, or 0 for none');
}

function ipEntry(text: string): string {
  if (!isIpEntry(text)) throw new InvalidArgumentError('Expected an IPv4 or IPv6 address or prefix, for example 10.1.0.0/16.');
  return text;
}

function keepAlive(text: string): number {
  return integer(text, 200, 60_000, 'a keep-alive interval is 200 to 60000 milliseconds');
}

function atMost(most: number): (text: string) => number {
  return (text) => integer(text, 1, most, `expected a number from 1 to ${most}`);
}
