/**
 * Opens the connection of a client command: resolves the target, connects, checks the device's key and remembers the
 * device and its base station.
 *
 * All known channels are tried at once: the local network, where the device is searched for by its ids, an address, the
 * base station.
 *
 * At first contact a key that nothing vouches for is shown on a terminal for confirmation. Elsewhere the command needs
 * --fingerprint, or a pairing string with one, or a password that the device proves it knows, and sends nothing to the
 * device before that. A changed key ends the command.
 */
import { type Connection, type ConnectionOptions, type Environment, SvcClient } from '../../client/node.ts';
import { nodeEnvironment, stderrLog } from '../../platform/node/index.ts';
import { formatHostPort } from '../../protocol/records/index.ts';
import { ask, canAsk } from '../frame/ask.ts';
import { CommandError, UsageError } from '../frame/errors.ts';
import { warnOfInterfaces } from '../frame/interfaces.ts';
import { Output } from '../frame/output.ts';
import { interruption, unlessInterrupted } from '../frame/signals.ts';
import { explained } from './failure.ts';
import { givenJwt } from './jwt.ts';
import { idOf, Known, type KnownDevice, type KnownStation, NO_STATION, stateDirectory } from './known.ts';
import { noteUse } from './last-used.ts';
import { withSecrets } from './secrets.ts';
import { isToBeRemembered, keyOf, otherStation, stationOptions, type TargetStation } from './station.ts';
import { nameOf, type Target as ResolvedTarget, resolveTarget, type TargetOptions } from './target.ts';
import { placeOfActive } from './way.ts';

type Target = ResolvedTarget & { readonly jwt: ConnectionOptions['ServerJwtToken']; readonly near: boolean; readonly brief: boolean };

/** ms for the search on the local network. */
const SEARCH = 2_000;
/** ms for one dial, and the largest share of the whole time that it may take. */
const DIAL = 10_000;
const DIAL_SHARE = 0.8;

/**
 * Core memory of a brief command. A message has at most 64 KiB, and the default of 32 MiB is enough to make V8 mark its
 * whole heap at once.
 */
const BRIEF_MEMORY = 8 << 20;
const BRIEF_CONNECTIONS = 4;

/** The surroundings of a command: environment, output, and the signal that ends it. */
export interface Frame {
  readonly environment: Environment;
  readonly output: Output;
  /** Fires at SIGINT or SIGTERM. */
  readonly signal: AbortSignal;
}

/** The resources of a client command. */
export interface OpenConnection extends Frame {
  readonly connection: Connection;
  readonly known: Known;
  /** `product.device`; its name in messages where the ids are unknown. */
  readonly device: string;
  /** The given or known base station; undefined without one. */
  readonly server: TargetStation | undefined;
  /** The given or known WebSocket to it. */
  readonly webSocket: string | undefined;
  /** Opens a further connection to the same device, which must have the same key. */
  readonly connectAgain: (signal: AbortSignal) => Promise<Connection>;
}

/** A failed connect. */
export interface FailedConnect extends Pick<OpenConnection, 'device' | 'server' | 'webSocket'> {
  /** The failed connection, which still has the results of its channels. */
  readonly connection: Connection;
  readonly error: unknown;
  /** Whether the connect waited for the device, which was not attached to the base station. */
  readonly waited: boolean;
}

export interface OpenSettings {
  /** Replaces the surroundings of this process. */
  frame?: Frame;
  /** Called before a failed connect ends the command. */
  failed?: (failure: FailedConnect) => Promise<void>;
  /** Accepts a fingerprint given now that differs from the known one. */
  replace?: boolean;
  /** Allows only the device's local network, not the base station. */
  near?: boolean;
  /**
   * The command ends before a direct path could replace the base station, so it searches for none. The local network is
   * still searched.
   */
  brief?: boolean;
  /** Whether the signal ends the work normally. */
  untilStopped?: boolean;
  /** Name to remember the device by. */
  name?: string | undefined;
  /**
   * Lets a device without a known fingerprint authenticate by a password, instead of asking the person. It is trusted
   * if the connection is verified afterwards.
   */
  prove?: ((connection: Connection) => Promise<void>) | undefined;
}

/** Connects, runs `work`, and always closes the connection. */
export async function withConnection(
  given: TargetOptions,
  work: (opened: OpenConnection) => Promise<void>,
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
  noteOtherStation(target, known, options, output);
  warnOfUnused(target, output);
  const { signal, dispose } = settings.frame === undefined ? interruption() : { signal: settings.frame.signal, dispose: () => {} };
  const environment = settings.frame?.environment ?? (brief ? small(clientEnvironment(options)) : clientEnvironment(options));
  const { candidatesOn = [] } = options;
  warnOfInterfaces(output, candidatesOn, environment);
  const client = SvcClient.create({ environment, noCandidatesOn: candidatesOn, ...(brief && { maxConnections: BRIEF_CONNECTIONS }) });
  try {
    const connection = await connectFirst(client, known, target, { signal, output, failed: settings.failed });
    if (connection.stationVerified === 'tls' && target.server !== undefined && known.station(target.server.url)?.Roots === undefined)
      output.note(`base station ${target.server.url}: authenticated by TLS, not pinned by a fingerprint`);
    const { prove } = target.pin === undefined ? settings : {};
    if (prove !== undefined) {
      // An invitation can be used only once, so its result must be storable.
      await known.requireRoom();
      await unlessInterrupted(signal, prove(connection));
    }
    const device = await trust(connection, output);
    if (settings.name !== undefined) known.checkName(settings.name, idOf(device));
    await remember(known, target, device, { name: settings.name, connection, output });
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

/** Returns the environment of this process, with the options of a client command. */
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
    // Shorter than the whole time, so that each channel still reports why it failed, and not the timeout of all.
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
  connection.on('waiting', () => {
    waited = true;
    output.note(`${nameOf(target)} is not attached to the base station: waiting for it`);
  });
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

/** @throws UsageError for options that lead away from the local network, or nowhere */
function requireNear({ relayOnly, wait, local, addresses }: Target): void {
  const only = 'this works only on the local network';
  if (relayOnly) throw new UsageError(`${only}: leave --relay-only out`);
  if (wait) throw new UsageError(`${only}, where --wait has no effect: leave it out`);
  if (!local && addresses.length === 0) throw new UsageError(`${only}: leave --no-local out, or give --address`);
}

function requireServerKey({ server, sct, serverKey, jwt }: Target): void {
  if (server !== undefined && sct === undefined && serverKey === undefined && jwt !== undefined)
    throw new UsageError('a token of an issuer needs the server key that requires it: give it with --server-key');
}

/** Warns of unused proofs: only one is sent to a base station, and none without a base station. */
function warnOfUnused({ server, sct, serverKey, jwt }: Target, output: Output): void {
  const given = [
    ['--server-key', serverKey],
    ['the token of an issuer', jwt],
  ].flatMap(([option, value]) => (value === undefined ? [] : [option]));
  if (given.length === 0) return;
  const why =
    server === undefined
      ? 'the connection goes directly to the device, without a base station'
      : 'the server connect token of the device is used (given, from the pairing string, or remembered)';
  if (server === undefined || sct !== undefined)
    output.warn(`${given.join(' and ')} ${given.length === 1 ? 'is' : 'are'} not used: ${why}`);
}

/** Checks, before anything is sent, that the device can be verified: without a pin a terminal is needed. */
function requireTrust(target: Target, output: Output, { prove, replace }: OpenSettings): void {
  if (target.pin === undefined && prove === undefined && !canAsk(output)) {
    const why = replace === true ? 'needs a new fingerprint' : 'is not known yet';
    throw new UsageError(
      `${nameOf(target)} ${why}: give its fingerprint with --fingerprint, or its pairing string, both printed by svc device`,
    );
  }
}

/** Returns the device to remember, once it is trusted. @throws CommandError when the person declines */
async function trust(connection: Connection, output: Output): Promise<KnownDevice> {
  const { ProductId, DeviceId } = connection.deviceInfo;
  if (typeof ProductId !== 'string' || typeof DeviceId !== 'string') throw new CommandError('the device did not send its ids');
  const fingerprint = connection.getDeviceFingerprint();
  if (connection.verified === 'none') {
    output.note([
      `First contact with ${ProductId}.${DeviceId}. The fingerprint of its key is`,
      `  ${fingerprint}`,
      'Compare it with what svc device printed at its start.',
    ]);
    if (!canAsk(output)) throw new CommandError('the password did not verify the device: give its fingerprint with --fingerprint');
    if ((await ask('Is it the same? (yes/no) ')).toLowerCase() !== 'yes') throw new CommandError('not trusted: the connection was closed');
  }
  return { ProductId, DeviceId, Fingerprint: fingerprint };
}

async function remember(
  known: Known,
  target: Target,
  device: KnownDevice,
  { name, connection, output }: { name: string | undefined; connection: Connection; output: Output },
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
    ...(target.sct !== undefined && { Tokens: { [target.server === undefined ? NO_STATION : keyOf(target.server)]: target.sct } }),
    ...(server !== undefined && { ServerUrl: server.url }),
    ...(server !== undefined && target.webSocket !== undefined && { ServerWebSocketUrl: target.webSocket }),
    ...(address !== undefined && { Address: address }),
  });
  // A connection through the base station has proved its key.
  if (server !== undefined) rememberStation(known, server, { reached, output });
  await known.save();
}

/** The tried address that led to the device; the first one where another channel did. */
function reachedOf({ addresses }: Target, connection: Connection): string | undefined {
  const [first, ...others] = addresses.map(formatHostPort);
  const active = placeOfActive(connection);
  return others.find((each) => each === active) ?? first;
}

/**
 * Remembers the base station. A person stated a fingerprint or roots; the roots of Node must first have proved it, and
 * so must another proof than the known one.
 */
function rememberStation(
  known: Known,
  { url, fingerprint, roots, replaces }: TargetStation,
  { reached, output }: { reached: boolean; output: Output },
): void {
  const station = fingerprint === null ? { Roots: roots } : { Fingerprint: fingerprint, Seen: reached };
  if (replaces !== undefined && (replaces.Seen === true || replaces.Roots !== undefined)) {
    const what = `base station ${url}, known ${proofText(replaces)}`;
    output.note(reached ? `${what}: now ${proofText(station)}` : `${what}: it was not reached, so this stays`);
    if (reached) known.replaceStation(url, station);
  } else if (reached || fingerprint !== null || roots !== '') known.rememberStation(url, station);
}

function proofText({ Fingerprint, Roots }: KnownStation): string {
  return Roots === undefined ? `by its fingerprint ${Fingerprint}` : 'by TLS';
}

/** Says that a pairing string or an option leads to another base station than before. */
function noteOtherStation({ productId, deviceId, server }: Target, known: Known, { state }: TargetOptions, output: Output): void {
  if (productId === undefined || deviceId === undefined) return;
  const text = otherStation(known.byId(productId, deviceId), server, known, state);
  if (text !== undefined) output.note(text);
}
