/**
 * `svc device`: a real device with a thermostat, a file store, TCP and UDP tunnels, its users and state in a directory.
 * Runs until SIGINT or SIGTERM.
 *
 * At its first start it creates its key and its access control, and joins its base station if it has a join string. It
 * prints how to pair with it and, without a join string, the commands that register it at the base station; with --init
 * it does only that. The parts are in `device-app/`, the subcommands in files beside this one.
 */
import { resolve } from 'node:path';
import { Command } from 'commander';
import { Device, nodeEnvironment, type TcpTunnelService } from '../device/index.ts';
import { DEFAULT_LOCAL_PORT, DEFAULT_P2P_PORT } from '../device/settings.ts';
import { stderrLog, takesNoWrites } from '../platform/node/index.ts';
import { pairKeys, setPairing } from './device-app/access.ts';
import { readAllowed } from './device-app/allow.ts';
import { announce, follow, warn } from './device-app/announce.ts';
import { type DeviceConfiguration, readDeviceConfiguration } from './device-app/configuration.ts';
import { DeviceData } from './device-app/data.ts';
import { installFiles } from './device-app/files.ts';
import { withInvitation } from './device-app/first-invitation.ts';
import { forgetOnceAttached, type JoinPlace, joinFirst } from './device-app/join.ts';
import { type GivenJoin, givenJoin } from './device-app/join-string.ts';
import { inviteBy, type OpenDevice, openDevice } from './device-app/open.ts';
import { type DeviceCommandOptions, withDeviceOptions } from './device-app/options.ts';
import { serveOwner } from './device-app/owner-socket.ts';
import { givenRendezvous, rendezvousOf, warnOfOff } from './device-app/rendezvous.ts';
import { Room } from './device-app/room.ts';
import { listenFirst, type Services, showStartScreen } from './device-app/start-screen.ts';
import { deviceAuditCommand } from './device-audit.ts';
import { deviceExplainCommand } from './device-explain.ts';
import { deviceInviteCommand } from './device-invite.ts';
import { collectAfterStart } from './frame/collect.ts';
import { describe, UsageError } from './frame/errors.ts';
import { warnOfInterfaces } from './frame/interfaces.ts';
import { namingPorts } from './frame/listening.ts';
import { Output } from './frame/output.ts';
import { interruption, stopped } from './frame/signals.ts';

const APP_NAME = 'svc device';
/** For clients that search for thermostats only. */
const MDNS_SUBTYPE = 'thermostat';

/** The command `svc device`. */
export function deviceCommand(): Command {
  const command = new Command('device')
    .description('run a device: a thermostat, a file store, TCP and UDP tunnels, its users and state in a directory')
    .addHelpText('after', '\nExamples:\n  svc device --join -\n  svc device --tunnel web=http:127.0.0.1:8080')
    .addCommand(deviceInviteCommand())
    .addCommand(deviceExplainCommand())
    .addCommand(deviceAuditCommand());
  return withDeviceOptions(command).action(run);
}

async function run(options: DeviceCommandOptions): Promise<void> {
  const output = new Output(options.json === true);
  const allowed = await readAllowed(options.allow);
  const given = options.join === undefined ? undefined : await givenJoin(options.join, output);
  const data = await DeviceData.open(resolve(options.data));
  const configuration = await readDeviceConfiguration(options.config, data.configurationFile);
  refuseTwins('--tunnel', configuration.tcpTunnels, options.tunnel);
  refuseTwins('--udp-tunnel', configuration.udpTunnels, options.udpTunnel);
  const rendezvous = rendezvousOf(configuration.rendezvous, options);
  if (options.init === true) warnOfUnused(output, options);
  else warnOfOff(output, rendezvous.mode, options);
  // Without the lock nothing can be created, only served.
  const makes = options.init === true || data.state === null;
  const readOnly = (): void => output.warn(`${data.directory} is not writable: the device serves what it has, and refuses every change`);
  const lock = await data.lock(makes ? {} : { unwritable: readOnly });
  try {
    await data.reread();
    const log = stderrLog({ level: options.logLevel ?? (process.env.SVC_DEBUG ? 'debug' : 'warn') });
    const environment = nodeEnvironment({ log, ...(options.linkMtu !== undefined && { linkMtu: options.linkMtu }) });
    if (options.init !== true) warnOfInterfaces(output, rendezvous.noCandidatesOn, environment);
    const { keepAliveProfile: profile } = options;
    const device = new Device({
      environment,
      appName: APP_NAME,
      appVersion: Device.version(),
      rendezvous,
      ...(profile !== undefined && { keepAliveProfile: profile }),
    });
    if (options.init !== true) await joinWhereAsked({ device, data, environment, output }, given, options);
    let opened = await openDevice(device, data, options, environment);
    if (options.iam !== undefined && !opened.access.isNew)
      output.note('--iam has effect only at the first start: this device keeps its users');
    try {
      if (options.pairing !== undefined) await setPairing(opened.access.iam, options.pairing);
      await pairKeys(opened.access.iam, allowed);
      opened = await withInvitation(opened, output);
      if (options.init === true) await initialize(output, opened);
      else await serve(output, opened, configuration, options, lock.lost);
    } finally {
      await opened.audit.close();
    }
  } finally {
    await lock.release();
  }
}

/** Joins the base station if a join string was given. Ctrl-C ends it; the next start continues. */
async function joinWhereAsked(
  place: Omit<JoinPlace, 'signal'>,
  given: GivenJoin | undefined,
  options: DeviceCommandOptions,
): Promise<void> {
  const { signal, dispose } = interruption();
  try {
    await joinFirst({ ...place, signal }, given, options);
  } finally {
    dispose();
  }
}

async function initialize(output: Output, opened: OpenDevice): Promise<void> {
  await opened.data.update();
  await announce(output, opened, false);
}

async function serve(
  output: Output,
  opened: OpenDevice,
  configuration: DeviceConfiguration,
  options: DeviceCommandOptions,
  lost: AbortSignal,
): Promise<void> {
  const { device, data, access, environment } = opened;
  const { iam } = access;
  const services = offered(configuration, options);
  configure(device, services, options);
  await installFiles(device, data.filesDirectory, { clock: environment.clock });
  const room = new Room({ device, iam, data, configuration, log: environment.log, output });
  const { signal, dispose } = interruption();
  try {
    forgetOnceAttached(device, data, output);
    const show = output.isScreen ? screen(output, opened, services) : lines(output, opened);
    const { localPort = DEFAULT_LOCAL_PORT, p2pPort = DEFAULT_P2P_PORT } = options;
    await namingPorts({ '--local-port': localPort, '--p2p-port': p2pPort }, () => device.start());
    const stopOwner = await serveOwner(data.directory, environment.log, (request) => inviteBy(opened, request));
    try {
      await saveIdentity(data, output);
      await show();
      room.begin();
      collectAfterStart();
      await stopped(AbortSignal.any([signal, lost]));
    } finally {
      room.end();
      stopOwner();
      await device.close();
      await iam.settled();
    }
    lost.throwIfAborted();
    output.result({ event: 'closed' }, 'closed');
  } finally {
    dispose();
  }
}

/**
 * Output at a terminal: the screen, then events. Call it before the start.
 * @returns the function that shows the screen
 */
function screen(output: Output, opened: OpenDevice, services: Services): () => Promise<void> {
  const { device, state, access, environment } = opened;
  const first = state.ServerUrl === undefined ? async () => null : listenFirst(device);
  return async () => {
    await showStartScreen(output, opened, services, await first(environment));
    follow(device, access.iam, output);
    warn(output, access.iam, state);
  };
}

/** Output elsewhere: all events. */
function lines(output: Output, opened: OpenDevice): () => Promise<void> {
  follow(opened.device, opened.access.iam, output);
  return async () => {
    await announce(output, opened, true);
    warn(output, opened.access.iam, opened.state);
  };
}

/** Saves the identity from the options; on a disk that accepts no writes it applies to this run only. */
async function saveIdentity(data: DeviceData, output: Output): Promise<void> {
  await data.update().catch((error: unknown) => {
    if (!takesNoWrites(error)) throw error;
    output.warn(describe(error));
  });
}

function configure(device: Device, services: Services, options: DeviceCommandOptions): void {
  if (options.localPort !== undefined) device.setLocalPort(options.localPort);
  if (options.p2pPort !== undefined) device.setP2pPort(options.p2pPort);
  if (options.mdns) {
    device.enableMdns();
    device.mdnsAddSubtype(MDNS_SUBTYPE);
  }
  const { tunnelConnections: all, tunnelConnectionsPerClient: each } = options;
  if (all !== undefined) device.limitTunnelConnections(all);
  if (each !== undefined) device.limitTunnelConnectionsPerClient(each);
  for (const service of services.tcpTunnels) device.addTcpTunnelService(service);
  for (const service of services.udpTunnels) device.addUdpTunnelService(service);
}

/** Services of the file and the options. */
function offered({ tcpTunnels, udpTunnels }: DeviceConfiguration, { tunnel, udpTunnel }: DeviceCommandOptions): Services {
  return { tcpTunnels: [...tcpTunnels, ...tunnel], udpTunnels: [...udpTunnels, ...udpTunnel] };
}

/** @throws UsageError when one of the options has the id of another service */
function refuseTwins(option: string, configured: readonly TcpTunnelService[], given: readonly TcpTunnelService[]): void {
  const all = [...configured, ...given];
  const twin = given.find(({ id }, index) => all.findIndex((other) => other.id === id) < configured.length + index);
  if (twin !== undefined) throw new UsageError(`${option} ${twin.id}: another service has this id`);
}

/** Warns of options without effect: with --init nothing is served, and some options apply to one run only. */
function warnOfUnused(output: Output, options: DeviceCommandOptions): void {
  const { config, tunnel, udpTunnel, localPort, p2pPort, linkMtu, mdns, keepAliveProfile: profile } = options;
  const services = { '--config': config, '--tunnel': tunnel[0], '--udp-tunnel': udpTunnel[0] };
  const network = { '--local-port': localPort, '--p2p-port': p2pPort, '--link-mtu': linkMtu, '--no-mdns': mdns ? undefined : true };
  const limits = {
    '--tunnel-connections': options.tunnelConnections,
    '--tunnel-connections-per-client': options.tunnelConnectionsPerClient,
  };
  const given = { ...services, ...network, ...limits, '--keep-alive-profile': profile };
  const unused = Object.entries({ ...given, ...givenRendezvous(options) }).flatMap(([option, value]) =>
    value === undefined ? [] : [option],
  );
  if (unused.length > 0)
    output.warn(`with --init, ${unused.join(', ')} ${unused.length === 1 ? 'has' : 'have'} no effect: give that at each start`);
}
