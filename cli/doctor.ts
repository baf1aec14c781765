/**
 * `svc doctor`: explains which path a connection to a device takes, and why it is not direct; without a device it
 * checks this host and a base station.
 *
 * 1. Connects as `svc connect` does.
 * 2. Waits until the connection is direct, or the first attempt to make it direct is over.
 * 3. Prints the findings of both ends, with advice. If the connect failed: the result of each channel, and whether the
 *    base station is reachable.
 *
 * It changes nothing at either end.
 */
import { isIPv4 } from 'node:net';
import { Command, Option } from 'commander';
import type { Connection, PathsReport } from '../client/node.ts';
import { explainedStation } from './client/failure.ts';
import { Known, stateDirectory } from './client/known.ts';
import { clientEnvironment, type FailedConnect, type Frame, type OpenConnection, withConnection } from './client/open.ts';
import { resolveServer, type TargetStation } from './client/station.ts';
import { givenPairing, namesDevice, type TargetOptions, withTarget } from './client/target.ts';
import { wayOf } from './client/way.ts';
import { adviceOn, udpAdvice } from './doctor/advice.ts';
import { type ConnectedFinding, documentOf, type Findings, linesOf, type StationFinding } from './doctor/report.ts';
import { checkStation, type StationCheck } from './doctor/station.ts';
import { port } from './frame/arguments.ts';
import { CommandError, describe, UsageError } from './frame/errors.ts';
import { warnOfInterfaces } from './frame/interfaces.ts';
import { Output } from './frame/output.ts';
import { shellWord, stateOption } from './frame/shell-word.ts';
import { interruption, unlessInterrupted } from './frame/signals.ts';
import { offeredServices } from './tunnel/offered.ts';

export interface DoctorOptions extends TargetOptions {
  stunPort?: number;
}

/** ms between two checks of a connection that still searches for a direct path. */
const LOOK = 50;
/** The least MaxData (PROTOCOL.md §5.4), bytes. */
const MIN_CREDIT = 2 * 66_560;
/** An attempt that follows within this time, ms, belongs to the first: ports are guessed again. */
const SOON = 1_000;

const NOTE = `
Without a device, svc doctor --server checks only the network of this host and the base station.
--timeout applies to the connect, and again to the first attempt to find a direct path or, if the connect fails, to the check of the base station.

docs/paths.md explains each line, each code and what to do about it. Exit code 0 when it is connected, over any path.`;

/** The command `svc doctor`. */
export function doctorCommand(): Command {
  const command = new Command('doctor')
    .description('explain which path a connection to a device takes, and why it is not direct; with --server alone: check the base station')
    .argument('[device]', 'as --device')
    .addOption(
      new Option(
        '--stun-port <port>',
        'UDP port of STUN, where no connection has named it (default: that of the base station + 1)',
      ).argParser(port),
    );
  command.addHelpText('after', NOTE);
  return withTarget(command).action(async (device: string | undefined, options: DoctorOptions) => {
    const { signal, dispose } = interruption();
    try {
      const frame = { environment: clientEnvironment(options), output: new Output(options.json === true), signal };
      await doctor(device, options, frame);
    } finally {
      dispose();
    }
  });
}

/** @throws UsageError, CommandError; the error of the connect, after the findings were printed */
export async function doctor(given: string | undefined, options: DoctorOptions, frame: Frame): Promise<void> {
  if (given !== undefined && options.device !== undefined) throw new UsageError('give the device once: as argument or with --device');
  givenPairing(given);
  const device = given ?? options.device;
  const target = { ...options, ...(device !== undefined && { device }) };
  if (!namesDevice(target)) {
    if (options.server !== undefined) {
      refuseUnused(options);
      return examineStation(target, frame);
    }
    await requireKnown(options);
  }
  frame.output.aside('connecting to the device');
  const settings = { frame, failed: async (failure: FailedConnect) => print(frame, await findingsWithout(failure, target, frame)) };
  await withConnection(target, async (opened) => print(frame, await findingsOf(opened, target, frame)), settings);
}

/** @throws UsageError */
async function requireKnown({ state }: DoctorOptions): Promise<void> {
  const { devices } = await Known.open(stateDirectory(state));
  if (devices.length > 0) return;
  throw new UsageError('which device? None is known yet: give its pairing string, or check a base station alone with --server');
}

/** @throws UsageError for options about reaching a device */
function refuseUnused(options: DoctorOptions): void {
  const { relayOnly, wait, hardNat, local, sct, sctFile, serverKey, serverKeyFile, jwt, jwtFile, fingerprint, keepAliveProfile } = options;
  const given = Object.entries({
    '--relay-only': relayOnly,
    '--wait': wait,
    '--no-hard-nat': hardNat === false,
    '--no-local': local === false,
    '--sct': sct,
    '--sct-file': sctFile,
    '--server-key': serverKey,
    '--server-key-file': serverKeyFile,
    '--jwt': jwt,
    '--jwt-file': jwtFile,
    '--fingerprint': fingerprint,
    '--keep-alive-profile': keepAliveProfile,
  }).flatMap(([option, value]) => (value === undefined || value === false ? [] : [option]));
  if (given.length === 0) return;
  const [have, them] = given.length === 1 ? ['has', 'it'] : ['have', 'them'];
  throw new UsageError(`${given.join(', ')} ${have} effect only with a device: name one, or leave ${them} out`);
}

function print({ output }: Frame, findings: Findings): void {
  output.result(documentOf(findings), linesOf(findings));
}

async function examineStation(options: DoctorOptions, frame: Frame): Promise<void> {
  const known = await Known.open(stateDirectory(options.state));
  const station = resolveServer(options, {}, known)!;
  warnOfInterfaces(frame.output, options.candidatesOn ?? [], frame.environment);
  const check = await checkOf(station, options.serverWebsocket, options, frame);
  const problem = check.error === null ? null : explainedStation(check.error, station, known);
  print(frame, {
    device: null,
    interfaces: interfacesOf(options, frame),
    station: stationFinding(check, problem),
    localNat: check.nat,
    connected: null,
    channels: null,
  });
  if (problem !== null) throw new CommandError(`no way to the base station: ${describe(problem)}`);
}

async function findingsOf(opened: OpenConnection, options: DoctorOptions, frame: Frame): Promise<Findings> {
  const { connection, device, server, output } = opened;
  if (connection.getType() === 'RELAY' && options.relayOnly !== true) output.note('connected; searching for a direct path');
  const report = await firstAttempt(connection, options.timeout, frame);
  const { station, nat } = await stationOf(opened, report, options, frame);
  return {
    device,
    interfaces: interfacesOf(options, frame),
    station,
    localNat: report.localNat ?? nat,
    connected: {
      ...connectedFinding(connection, report, { device, url: server?.url ?? null }, options),
      // A client that may not see them gets none.
      udpServices: (await offeredServices(connection, 'udp').catch(() => [])).map(({ id, lost = 0 }) => ({ id, lost })),
    },
    channels: null,
  };
}

/** Returns the paths once the connection is direct, the first attempt is over, or the time is. */
async function firstAttempt(connection: Connection, timeout: number, { environment: { clock }, signal }: Frame): Promise<PathsReport> {
  const end = clock.now() + timeout;
  for (;;) {
    const report = connection.paths();
    if (isSettled(report) || clock.now() >= end) return report;
    await unlessInterrupted(signal, new Promise<void>((resolve) => void clock.schedule(LOOK, resolve)));
  }
}

function isSettled({ whyNotDirect, nextAttempt }: PathsReport): boolean {
  if (whyNotDirect === null || whyNotDirect.code === 'DISABLED' || whyNotDirect.code === 'PEER_TOO_OLD') return true;
  return whyNotDirect.code !== 'IN_PROGRESS' && nextAttempt !== null && nextAttempt > SOON;
}

function connectedFinding(
  connection: Connection,
  report: PathsReport,
  { device, url }: { device: string; url: string | null },
  options: DoctorOptions,
): Omit<ConnectedFinding, 'udpServices'> {
  const { paths, pairs, remoteNat, whyNotDirect, nextAttempt, station, keepAlive } = report;
  const { over, text } = wayOf(connection);
  const { relayOnly, hardNat, state } = options;
  const outside = pairs.find(({ kind, address }) => kind === 'reflexive' && isIPv4(address))?.address;
  const devicePort = pairs.find(({ kind }) => kind === 'host' || kind === 'near')?.port;
  const facts = {
    device: `${device.startsWith('-') ? '-d ' : ''}${shellWord(device)}${stateOption(state)}`,
    stunPort: station?.stun[0]?.port,
    relayOnly: relayOnly === true,
    noHardNat: hardNat === false,
    outside,
    devicePort,
  };
  const isUdpSilent = whyNotDirect?.code === 'UDP_BLOCKED' && station?.over === 'websocket';
  const why = whyNotDirect === null ? null : { ...whyNotDirect, advice: isUdpSilent ? udpAdvice(url) : adviceOn(whyNotDirect.code, facts) };
  const cramped = connection.stats().sendCredit! <= MIN_CREDIT;
  return { over, way: text, paths, pairs, remoteNat, whyNotDirect: why, nextAttempt, keepAlive, cramped };
}

/** The connection's own data, as far as known; a separate check if no attempt has reached the base station. */
async function stationOf(
  { connection, server, webSocket }: OpenConnection,
  { station, whyNotDirect }: PathsReport,
  options: DoctorOptions,
  frame: Frame,
): Promise<{ station: StationFinding | null; nat: StationCheck['nat'] }> {
  if (station !== null && whyNotDirect?.code !== 'DISABLED') {
    const { address, port, observed, stun, over, proxy } = station;
    const verified = connection.stationVerified;
    warnOfStunPort(options, frame, 'the base station has named its STUN ports');
    return { station: { url: server?.url ?? null, verified, at: { address, port }, over, proxy, observed, error: null, stun }, nat: null };
  }
  if (server === undefined) {
    warnOfStunPort(options, frame, 'no base station is known');
    return { station: null, nat: null };
  }
  const check = await checkOf(server, webSocket, options, frame);
  return { station: { ...stationFinding(check), observed: station?.observed ?? null }, nat: check.nat };
}

function warnOfStunPort({ stunPort }: DoctorOptions, { output }: Frame, why: string): void {
  if (stunPort !== undefined) output.warn(`--stun-port ${stunPort} is not used: ${why}`);
}

async function findingsWithout(
  { connection, device, server, webSocket, waited }: FailedConnect,
  options: DoctorOptions,
  frame: Frame,
): Promise<Findings> {
  if (server === undefined) warnOfStunPort(options, frame, 'no base station is known');
  const check = server === undefined ? null : await checkOf(server, webSocket, options, frame);
  const codes = {
    local: connection.getLocalChannelErrorCode(),
    remote: connection.getRemoteChannelErrorCode(),
    direct: connection.getDirectCandidatesChannelErrorCode(),
  };
  return {
    device,
    interfaces: interfacesOf(options, frame),
    station: check === null ? null : stationFinding(check),
    localNat: check?.nat ?? null,
    connected: null,
    channels: { codes, failures: connection.channelFailures, waited },
  };
}

/** @param webSocket to it, given or remembered; undefined: derived from its URL */
function checkOf(
  station: TargetStation,
  webSocket: string | undefined,
  { stunPort, candidatesOn: excluded = [], timeout }: DoctorOptions,
  frame: Frame,
): Promise<StationCheck> {
  frame.output.aside(`checking the base station at ${station.url}`);
  return checkStation(frame.environment, { station, webSocket, stunPort, excluded, timeout, signal: frame.signal });
}

/** @param explained the error with its remedy */
function stationFinding({ url, verified, at, over, proxy, error, stun }: StationCheck, explained: unknown = error): StationFinding {
  const problem = error === null ? null : { code: error.code, text: describe(explained) };
  return { url, verified: at === null ? null : verified, at, over, proxy, observed: null, error: problem, stun };
}

function interfacesOf({ candidatesOn = [] }: DoctorOptions, { environment: { network } }: Frame): Findings['interfaces'] {
  return (network.interfaces?.() ?? []).map((each) => ({ ...each, counts: !candidatesOn.includes(each.name) }));
}
