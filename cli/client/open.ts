/**
 * Opens the connection of a client command: resolves the target, connects, checks the device's key and remembers what is now known.
 *
 * All ways that are known are tried at once: the local network, where the device is looked for by its ids, an address, the base station.
 *
 * At first contact a key that nobody vouched for is shown and asked about on a terminal; elsewhere --fingerprint (or a pairing string with
 * one) is needed, or a password that the device proves to know, and nothing is sent to the device without it. A changed key ends the command.
 */
import { type Connection, type ConnectionEvent, type ConnectionOptions, type Environment, SvcClient } from '../../client/node.ts';
import { formatHostPort } from '../../protocol/records/index.ts';
import { nodeEnvironment, stderrLog } from '../../transport/node/index.ts';
import { ask, canAsk } from '../frame/ask.ts';
import { CommandError, UsageError } from '../frame/errors.ts';
import { warnOfInterfaces } from '../frame/interfaces.ts';
import { Output } from '../frame/output.ts';
import { interruption, unlessInterrupted } from '../frame/signals.ts';
import { explained } from './failure.ts';
import { givenJwt } from './jwt.ts';
import { idOf, Known, type KnownDevice, stateDirectory } from './known.ts';
import { noteUse } from './last-used.ts';
import { withSecrets } from './secrets.ts';
import { isToBeRemembered, stationOptions, type TargetStation } from './station.ts';
import { nameOf, type Target as ResolvedTarget, resolveTarget, type TargetOptions } from './target.ts';
import { placeOfActive } from './way.ts';

type Target = ResolvedTarget & { readonly jwt: ConnectionOptions['ServerJwtToken']; readonly near: boolean; readonly brief: boolean };

/** ms for the search on the local network. */
const SEARCH = 2_000;
/** ms for one dial, and the most of the whole time that it may take. */
const DIAL = 10_000;
const DIAL_SHARE = 0.8;

/** Of a brief command. A message has 64 KiB at most, and memory of 32 MiB, the default, is as much as makes V8 mark its whole heap at once. */
const BRIEF_MEMORY = 8 << 20;
const BRIEF_CONNECTIONS = 4;

/** Where a command runs and writes, and what ends it. */
export interface Frame {
  readonly environment: Environment;
  readonly output: Output;
  readonly signal: AbortSignal;
}

/** What a client command works with. */
export interface Opened {
  readonly connection: Connection;
  readonly known: Known;
  readonly output: Output;
  readonly environment: Environment;
  /** Fires at SIGINT or SIGTERM. */
  readonly signal: AbortSignal;
  /** `product.device`. */
  readonly device: string;
  /** The base station that was given or is known; undefined without one. */
  readonly server: TargetStation | undefined;
  /** The WebSocket to it that was given or is known. */
  readonly webSocket: string | undefined;
  /** Opens a further connection to the same device, which must have the same key. */
  readonly connectAgain: (signal: AbortSignal) => Promise<Connection>;
}

/** A connect that failed. */
export interface FailedConnect {
  /** Still has the results of its channels. */
  readonly connection: Connection;
  readonly error: unknown;
  /** `product.device`; where the ids are not known how it is called in messages. */
  readonly device: string;
  readonly server: TargetStation | undefined;
  /** The WebSocket to it that was given or is known. */
  readonly webSocket: string | undefined;
  /** The device was not attached to the base station, and was waited for. */
  readonly waited: boolean;
}

export interface OpenSettings {
  /** In place of this process. */
  frame?: Frame;
  /** Called before a connect that failed ends the command. */
  failed?: (failure: FailedConnect) => Promise<void>;
  /** Accept another fingerprint than the known one, if it is given now. */
  replace?: boolean;
  /** The base station does not do: what is wanted is possible on the device's local network only. */
  near?: boolean;
  /** It is over before a direct path beside the base station would be found, so none is looked for. On the local network the device is. */
  brief?: boolean;
  /** The work ends by itself, and well, when the signal fires. */
  untilStopped?: boolean;
  /** Name to remember the device by. */
  name?: string | undefined;
  /**
   * Lets a device without a known fingerprint prove itself, in place of a question: by a password. It is believed when the connection is
   * verified afterwards.
   */
  prove?: ((connection: Connection) => Promise<void>) | undefined;
}

/** Connects, runs `work`, closes. The connection is closed on every way out. */
export async function withConnection(
  given: TargetOptions,
  work: (opened: Opened) => Promise<void>,
  settings: OpenSettings = {},
): Promise<void> {
  const output = settings.frame?.output ?? new Output(given.json === true);
  const options = await withSecrets(given, output);
  const known = await Known.open(stateDirectory(options.state));
  const { near = false, brief = false } = settings;
  const target = { ...resolveTarget(options, known, settings), jwt: await givenJwt(options, output), near, brief };
  const { productId: ProductId, deviceId: DeviceId } = target;
  if (settings.name !== undefined && ProductId !== undefined && DeviceId !== undefined)
    known.checkName(settings.name, idOf({ ProductId, DeviceId }));
  if (target.near) requireNear(target);
  requireServerKey(target);
  requireTrust(target, output, settings);
  tellOfUnused(target, output);
  const { signal, dispose } = settings.frame === undefined ? interruption() : { signal: settings.frame.signal, dispose: () => {} };
  const environment = settings.frame?.environment ?? (brief ? small(clientEnvironment(options)) : clientEnvironment(options));
  const { candidatesOn = [] } = options;
  warnOfInterfaces(output, candidatesOn, environment);
  const client = SvcClient.create({ environment, noCandidatesOn: candidatesOn, ...(brief && { maxConnections: BRIEF_CONNECTIONS }) });
  try {
    const connection = await connectFirst(client, known, target, { signal, output, failed: settings.failed });
    if (connection.stationVerified === 'tls' && target.server !== undefined && known.tlsStation(target.server.url) === undefined)
      output.note(`base station ${target.server.url}: proved by TLS, not pinned by a fingerprint`);
    const { prove } = target.pin === undefined ? settings : {};
    if (prove !== undefined) {
      // An invitation can be used once, and what comes of it has to be kept.
      await known.requireRoom();
      await unlessInterrupted(signal, prove(connection));
    }
    const device = await trust(connection, output);
    if (settings.name !== undefined) known.checkName(settings.name, idOf(device));
    await remember(known, target, device, { name: settings.name, connection });
    await noteUse(known.directory, idOf(device), known.devices.map(idOf), environment.clock.wallTime());
    const again = { ...target, productId: device.ProductId, deviceId: device.DeviceId, pin: device.Fingerprint };
    const connectAgain = (stop: AbortSignal): Promise<Connection> => connect(client, known, again, stop);
    const { server, webSocket } = target;
    const working = work({ connection, known, output, environment, signal, device: idOf(device), server, webSocket, connectAgain });
    await (settings.untilStopped === true ? working : unlessInterrupted(signal, working));
  } finally {
    await client.stop();
    dispose();
  }
}

/** This process, as the options of a client command say. */
export function clientEnvironment({ linkMtu }: Pick<TargetOptions, 'linkMtu'>): Environment {
  return nodeEnvironment({
    ...(process.env.SVC_DEBUG && { log: stderrLog({ level: 'debug' }) }),
    ...(linkMtu !== undefined && { linkMtu }),
  });
}

function small(environment: Environment): Environment {
  return { ...environment, createCore: (options) => environment.createCore({ ...options, memory: BRIEF_MEMORY }) };
}

async function connect(client: SvcClient, known: Known, target: Target, signal: AbortSignal): Promise<Connection> {
  const connection = await connectionTo(client, known, target);
  await unlessInterrupted(signal, connection.connect({ signal }));
  return connection;
}

/** A connection with its options, not yet connected. */
async function connectionTo(client: SvcClient, known: Known, target: Target): Promise<Connection> {
  const connection = client.createConnection();
  connection.updateOptions({
    PrivateKey: await known.privateKey(client),
    ConnectTimeout: target.timeout,
    Local: target.local,
    // So that each way still says why it failed, and not the timeout of all.
    MdnsTimeout: Math.min(SEARCH, Math.ceil(target.timeout / 2)),
    DtlsHelloTimeout: Math.min(DIAL, Math.floor(DIAL_SHARE * target.timeout)),
    Remote: target.server !== undefined && !target.near,
    Rendezvous: !target.relayOnly && !target.brief,
    HardNat: target.hardNat,
    IgnoreDeviceNotAttached: target.wait,
    ...(target.keepAliveProfile !== undefined && { KeepAliveProfile: target.keepAliveProfile }),
  });
  if (target.productId !== undefined && target.deviceId !== undefined)
    connection.updateOptions({ ProductId: target.productId, DeviceId: target.deviceId });
  if (target.pin !== undefined) connection.updateOptions({ DeviceFingerprint: target.pin });
  if (target.sct !== undefined) connection.updateOptions({ ServerConnectToken: target.sct });
  if (target.serverKey !== undefined) connection.updateOptions({ ServerKey: target.serverKey });
  if (target.jwt !== undefined) connection.updateOptions({ ServerJwtToken: target.jwt });
  if (target.server !== undefined) connection.updateOptions(stationOptions(target.server));
  if (target.webSocket !== undefined) connection.updateOptions({ ServerWebSocketUrl: target.webSocket });
  if (target.addresses.length > 0) {
    connection.enableDirectCandidates();
    for (const { host, port } of target.addresses) connection.addDirectCandidate(host, port);
    connection.endOfDirectCandidates();
  }
  return connection;
}

async function connectFirst(
  client: SvcClient,
  known: Known,
  target: Target,
  { signal, output, failed }: { signal: AbortSignal; output: Output; failed: OpenSettings['failed'] },
): Promise<Connection> {
  const connection = await connectionTo(client, known, target);
  let waited = false;
  const onEvent = (event: ConnectionEvent): void => {
    if (event !== 'WAITING_FOR_ATTACH') return;
    waited = true;
    output.note(`${nameOf(target)} is not attached to the base station: waiting for it`);
  };
  connection.addConnectionEventsListener({ onEvent });
  try {
    await unlessInterrupted(signal, connection.connect({ signal }));
    return connection;
  } catch (error) {
    const { productId: ProductId, deviceId: DeviceId, server, webSocket } = target;
    const device = ProductId === undefined || DeviceId === undefined ? nameOf(target) : idOf({ ProductId, DeviceId });
    if (!signal.aborted) await failed?.({ connection, error, device, server, webSocket, waited });
    throw explained(error, target, known);
  }
}

/** @throws UsageError for what leads away from the local network, or nowhere */
function requireNear({ relayOnly, wait, local, addresses }: Target): void {
  const only = 'this is possible on the local network only';
  if (relayOnly) throw new UsageError(`${only}: leave --relay-only out`);
  if (wait) throw new UsageError(`${only}, where --wait has no effect: leave it out`);
  if (!local && addresses.length === 0) throw new UsageError(`${only}: leave --no-local out, or give --address`);
}

function requireServerKey({ server, sct, serverKey, jwt }: Target): void {
  if (server !== undefined && sct === undefined && serverKey === undefined && jwt !== undefined)
    throw new UsageError('a token of an issuer goes with the server key that asks for it: give that with --server-key');
}

/** One proof goes to the base station, and none where there is no base station: what else was given has no effect. */
function tellOfUnused({ server, sct, serverKey, jwt }: Target, output: Output): void {
  const given = [
    ['--server-key', serverKey],
    ['the token of an issuer', jwt],
  ].flatMap(([option, value]) => (value === undefined ? [] : [option]));
  if (given.length === 0) return;
  const why =
    server === undefined
      ? 'the connection goes straight to the device, without a base station'
      : 'the server connect token of the device is used (given, of the pairing string, or remembered)';
  if (server === undefined || sct !== undefined)
    output.warn(`${given.join(' and ')} ${given.length === 1 ? 'is' : 'are'} not looked at: ${why}`);
}

/** Before anything is sent: without a pin somebody must be there to ask. */
function requireTrust(target: Target, output: Output, { prove }: OpenSettings): void {
  if (target.pin === undefined && prove === undefined && !canAsk(output)) {
    throw new UsageError(
      `${nameOf(target)} is not known yet: give its fingerprint with --fingerprint, or its pairing string, as svc device prints them at its start`,
    );
  }
}

/** The device as it may be remembered. @throws CommandError when the person says no */
async function trust(connection: Connection, output: Output): Promise<KnownDevice> {
  const { ProductId, DeviceId } = connection.deviceInfo;
  if (typeof ProductId !== 'string' || typeof DeviceId !== 'string') throw new CommandError('the device does not say who it is');
  const fingerprint = connection.getDeviceFingerprint();
  if (connection.verified === 'none') {
    output.note(
      `First contact with ${ProductId}.${DeviceId}. The fingerprint of its key is\n  ${fingerprint}\nCompare it with what svc device printed at its start.`,
    );
    if (!canAsk(output)) throw new CommandError('the device proved nothing by the password: give its fingerprint with --fingerprint');
    if ((await ask('Is it the same? (yes/no) ')).toLowerCase() !== 'yes') throw new CommandError('not trusted: the connection was closed');
  }
  return { ProductId, DeviceId, Fingerprint: fingerprint };
}

async function remember(
  known: Known,
  target: Target,
  device: KnownDevice,
  { name, connection }: { name: string | undefined; connection: Connection },
): Promise<void> {
  const address = reachedOf(target, connection);
  const reached = connection.stationVerified !== null;
  const before = known.byId(device.ProductId, device.DeviceId);
  const isNews =
    target.server !== undefined && isToBeRemembered({ url: target.server.url, from: target.serverFrom, reached }, before, known);
  const server = isNews ? target.server : undefined;
  known.remember({
    ...device,
    ...(name !== undefined && { Name: name }),
    ...(target.sct !== undefined && { ServerConnectToken: target.sct }),
    ...(server !== undefined && { ServerUrl: server.url }),
    ...(server !== undefined && target.webSocket !== undefined && { ServerWebSocketUrl: target.webSocket }),
    ...(address !== undefined && { Address: address }),
  });
  // A connection through the base station has shown what was to be shown of its key.
  if (server !== undefined) rememberStation(known, server, reached);
  await known.save();
}

/** The address that led to the device, of those that were tried; the first one where another way did. */
function reachedOf({ addresses }: Target, connection: Connection): string | undefined {
  const [first, ...others] = addresses.map(formatHostPort);
  const active = placeOfActive(connection);
  return others.find((each) => each === active) ?? first;
}

/** A fingerprint and roots are somebody's word. That the roots of Node prove it has to be seen. */
function rememberStation(known: Known, { url, fingerprint, roots }: TargetStation, proved: boolean): void {
  if (fingerprint !== null) known.rememberStation(url, fingerprint, proved);
  else if (proved || roots !== '') known.rememberTlsStation(url, roots);
}
