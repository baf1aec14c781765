/**
 * `svc device`: a real device with a thermostat, a file store and TCP and UDP tunnels, its state in a directory. Runs until SIGINT or SIGTERM.
 *
 * At its first start it makes its key and its server connect token. It prints the pairing string for clients and the line that registers
 * it at the base station; with --init it does only that.
 */
import { resolve } from 'node:path';
import { Command, InvalidArgumentError, Option } from 'commander';
import { Device, type DeviceEvent, nodeEnvironment, type SvcError, type TcpTunnelService, type UdpTunnelService } from '../device/index.ts';
import { checkIds, encodePairingString } from '../protocol/records/index.ts';
import { stderrLog } from '../transport/node/index.ts';
import { type Allowed, isAllowed, readAllowed } from './device-app/allow.ts';
import { DeviceData, type DeviceState } from './device-app/data.ts';
import { installFiles } from './device-app/files.ts';
import { Thermostat } from './device-app/thermostat.ts';
import { deviceAuditCommand } from './device-audit.ts';
import { collect, fingerprint, hostPort, id, LINK_MTU_HELP, linkMtu, listenPort, serverUrl } from './frame/arguments.ts';
import { hint, UsageError } from './frame/errors.ts';
import { Output } from './frame/output.ts';
import { interruption, stopped } from './frame/signals.ts';

interface DeviceCommandOptions {
  data: string;
  product?: string;
  deviceId?: string;
  server?: string;
  serverFingerprint?: string;
  allow: string[];
  tunnel: TcpTunnelService[];
  udpTunnel: UdpTunnelService[];
  localPort?: number;
  p2pPort?: number;
  linkMtu?: number;
  init?: boolean;
  json?: boolean;
}

const APP_NAME = 'svc device';

/** The command `svc device`. */
export function deviceCommand(): Command {
  return new Command('device')
    .description('run a device: a thermostat, a file store and TCP tunnels, its state in a directory')
    .requiredOption('--data <dir>', 'directory of key and state, made at first start')
    .addOption(new Option('--product <id>', 'product id; needed at first start').argParser(id))
    .addOption(new Option('--device-id <id>', 'device id; needed at first start').argParser(id))
    .addOption(
      new Option(
        '--server <url>',
        'base station to attach to, https://host[:port]; remembered. Without one only --address reaches the device',
      ).argParser(serverUrl),
    )
    .addOption(
      new Option('--server-fingerprint <hex>', 'fingerprint of the base station, which it prints at its start; remembered').argParser(
        fingerprint,
      ),
    )
    .addOption(
      new Option(
        '--allow <who>',
        'who may change things, send files and open tunnels: a fingerprint of svc key show, a file of them, or any; repeatable',
      )
        .argParser(collect((text) => text))
        .default([], 'nobody'),
    )
    .addOption(
      new Option('--tunnel <id=type:host:port>', 'TCP service to offer, for example web=http:127.0.0.1:8080; repeatable')
        .argParser(collect(tunnel))
        .default([], 'none'),
    )
    .addOption(
      new Option('--udp-tunnel <id=type:host:port>', 'UDP service to offer, for example names=dns:127.0.0.1:53; repeatable')
        .argParser(collect(tunnel))
        .default([], 'none'),
    )
    .addOption(
      new Option('--local-port <port>', 'UDP port for clients that come directly, 0 for a free one (default: 5592)').argParser(listenPort),
    )
    .addOption(new Option('--p2p-port <port>', 'UDP port towards the base station, 0 for a free one (default: 5593)').argParser(listenPort))
    .addOption(new Option('--link-mtu <bytes>', LINK_MTU_HELP).argParser(linkMtu))
    .option('--init', 'make key and token, print how to register and pair the device, and end')
    .option('--json', 'events as JSON lines on standard output')
    .addCommand(deviceAuditCommand())
    .action(run);
}

async function run(options: DeviceCommandOptions): Promise<void> {
  const output = new Output(options.json === true);
  const allowed = await readAllowed(options.allow);
  const data = await DeviceData.open(resolve(options.data));
  const environment = nodeEnvironment({
    log: stderrLog({ level: process.env.SVC_DEBUG ? 'debug' : 'warn' }),
    ...(options.linkMtu !== undefined && { linkMtu: options.linkMtu }),
  });
  const device = new Device({ environment, appName: APP_NAME, appVersion: Device.version() });
  const state = await identify(device, data, options);
  if (options.init === true) {
    await data.update();
    return announce(output, device, state, false);
  }
  configure(device, data, state, allowed, options);
  const { signal, dispose } = interruption();
  try {
    follow(device, output);
    await device.start();
    await data.update();
    announce(output, device, state, true);
    warn(output, allowed, state);
    await stopped(signal);
    await device.close();
    output.result({ event: 'closed' }, 'closed');
  } finally {
    dispose();
  }
}

/** Who the device is: from the options at first start, from state.json afterwards. Key and token are made when missing. */
async function identify(device: Device, data: DeviceData, options: DeviceCommandOptions): Promise<DeviceState> {
  const ProductId = options.product ?? data.state?.ProductId;
  const DeviceId = options.deviceId ?? data.state?.DeviceId;
  if (ProductId === undefined || DeviceId === undefined)
    throw new UsageError('the first start in a directory needs --product and --device-id');
  checkTogether(ProductId, DeviceId);
  const ServerUrl = options.server ?? data.state?.ServerUrl;
  const ServerFingerprint = options.serverFingerprint ?? (ServerUrl === data.state?.ServerUrl ? data.state?.ServerFingerprint : undefined);
  if ((ServerUrl === undefined) !== (ServerFingerprint === undefined)) {
    throw new UsageError('--server and --server-fingerprint belong together: svc basestation prints its fingerprint at its start');
  }
  device.setPrivateKey(await data.privateKey(() => device.createPrivateKey()));
  const state = data.adopt({
    ProductId,
    DeviceId,
    ServerConnectToken: data.state?.ServerConnectToken ?? device.createServerConnectToken(),
    ...(ServerUrl !== undefined && { ServerUrl }),
    ...(ServerFingerprint !== undefined && { ServerFingerprint }),
  });
  device.setProductId(ProductId);
  device.setDeviceId(DeviceId);
  return state;
}

function configure(device: Device, data: DeviceData, state: DeviceState, allowed: Allowed, options: DeviceCommandOptions): void {
  if (state.ServerUrl !== undefined && state.ServerFingerprint !== undefined) {
    device.setServerUrl(state.ServerUrl);
    device.setServerFingerprint(state.ServerFingerprint);
  } else {
    device.setBasestationAttach(false);
  }
  if (options.localPort !== undefined) device.setLocalPort(options.localPort);
  if (options.p2pPort !== undefined) device.setP2pPort(options.p2pPort);
  device.addServerConnectToken(state.ServerConnectToken);
  device.onAuthorizationRequest(({ connection }) => isAllowed(allowed, connection.clientFingerprint));
  for (const service of options.tunnel) device.addTcpTunnelService(service);
  for (const service of options.udpTunnel) device.addUdpTunnelService(service);
  new Thermostat(state.Thermostat, (Thermostat) => data.update({ Thermostat })).install(device);
  installFiles(device, data.filesDirectory);
}

/** What the device is called by others. */
function announce(output: Output, device: Device, state: DeviceState, started: boolean): void {
  const { ProductId, DeviceId, ServerConnectToken, ServerUrl = 'https://<base station>', ServerFingerprint = '<its fingerprint>' } = state;
  const fp = device.deviceFingerprint;
  const pairingString = encodePairingString({ productId: ProductId, deviceId: DeviceId, sct: ServerConnectToken, fingerprint: fp });
  const adminCommand = `svc admin device add ${ProductId} ${DeviceId} --fingerprint ${fp}`;
  const ports = started ? { localPort: device.localPort, p2pPort: device.p2pPort } : {};
  output.result(
    {
      event: 'started',
      productId: ProductId,
      deviceId: DeviceId,
      fingerprint: fp,
      ...ports,
      sct: ServerConnectToken,
      pairingString,
      adminCommand,
    },
    [
      `device ${ProductId}.${DeviceId}${started ? `, UDP port ${device.localPort} for direct clients` : ''}`,
      `fingerprint        ${fp}`,
      `register it with   ${adminCommand} --data <dir of the base station>`,
      `pair a client with svc connect '${pairingString}' --server ${ServerUrl} --server-fingerprint ${ServerFingerprint}`,
    ],
  );
}

function warn(output: Output, allowed: Allowed, state: DeviceState): void {
  if (allowed.anybody) output.warn('--allow any: everybody who reaches this device may change it, send it files and use its tunnels');
  else if (allowed.fingerprints.size === 0)
    output.note('nobody may change things, send files or open tunnels: allow clients with --allow <fingerprint of svc key show>');
  if (state.ServerUrl === undefined) output.note('no base station: only clients that come directly (--address) reach this device');
}

/** Prints what happens, from now on. */
function follow(device: Device, output: Output): void {
  device.onDeviceEvent((event, reason) => {
    if (event !== 'CLOSED')
      output.result(
        { event: event.toLowerCase().replaceAll('_', '-'), ...(reason !== null && { reason: reason.message, code: reason.code }) },
        eventText(event, reason),
      );
  });
  device.onConnectionEvent((connection, event) => {
    const name = event.toLowerCase().replaceAll('_', '-');
    const client = connection.clientFingerprint;
    output.result(
      { event: `connection-${name}`, connection: connection.ref, client },
      `connection ${connection.ref} ${name}: client ${client.slice(0, 32)}`,
    );
  });
}

function eventText(event: DeviceEvent, reason: SvcError | null): string {
  if (event === 'ATTACHED') return 'attached to the base station';
  const why = reason === null ? '' : `: ${reason.message}`;
  if (event === 'DETACHED') return `detached from the base station${reason === null ? '' : `${why}; trying again`}`;
  return `${event}${why}${reason !== null && hint(reason.code) !== undefined ? `: ${hint(reason.code)}` : ''}`;
}

function tunnel(text: string): TcpTunnelService {
  const match = /^([^=/\s]{1,64})=([^:\s]{1,64}):(.+)$/.exec(text);
  if (match === null) throw new InvalidArgumentError('Expected id=type:host:port, for example web=http:127.0.0.1:8080.');
  const [, serviceId = '', type = '', address = ''] = match;
  return { id: serviceId, type, ...hostPort(address) };
}

/** Each id was looked at alone; together they have a limit too. */
function checkTogether(productId: string, deviceId: string): void {
  try {
    checkIds(productId, deviceId);
  } catch (error) {
    throw new UsageError((error as Error).message);
  }
}
