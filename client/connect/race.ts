/**
 * One connect over all channels that are enabled: each tries on its own and side by side, the first that authenticates wins, the others are
 * stopped.
 *
 * When all fail: a wrong key of the device is FINGERPRINT_MISMATCH, a device without room DEVICE_INTERNAL_ERROR, the end of the time allowed
 * TIMEOUT, anything else NO_CHANNELS with the error of each channel. A wrong key on one channel does not stop the others: somebody in the
 * way of one address must not be able to keep the device from being reached.
 */
import type { PrivateKey } from '../../protocol/crypto-host.ts';
import {
  type ChannelErrors,
  type ErrorCode,
  isErrorCode,
  LocalError,
  NoChannelsError,
  type SvcError,
} from '../../protocol/errors/index.ts';
import type { Environment } from '../../transport/environment.ts';
import type { ConnectTarget, Host } from '../../transport/host/index.ts';
import { abortable, mostTelling, Race } from '../../transport/race.ts';
import type { Session } from '../../transport/session/index.ts';
import type { ConfiguredStation, StationConnector } from '../../transport/station/index.ts';
import type { EffectiveOptions } from '../options.ts';
import { connectDirect, type DirectCandidates } from './direct.ts';
import { configuredStation, connectRemote, StationMismatch } from './relay.ts';

export interface ChannelContext {
  readonly environment: Environment;
  readonly identity: PrivateKey;
  /** Null when direct candidates are not enabled. */
  readonly candidates: DirectCandidates | null;
  host(): Promise<Host>;
  connector(station: ConfiguredStation): Promise<StationConnector>;
  /** All channels failed, each with this. */
  onChannelErrors(errors: ChannelErrors): void;
}

/** Why each channel failed: the `cause` of a NoChannelsError. Undefined for a channel that was not tried. */
export interface ChannelFailures {
  remote?: SvcError;
  direct?: SvcError;
}

type Channel = keyof ChannelFailures;
type Connect = (target: ConnectTarget & { signal: AbortSignal }) => Promise<Session>;

/**
 * @param signal stops the connect with STOPPED
 * @throws see Connection.connect
 */
export async function connectChannels(context: ChannelContext, options: EffectiveOptions, signal: AbortSignal): Promise<Session> {
  requireImplemented(options);
  const race = startRace(context, options);
  const late = new LocalError('TIMEOUT', `no channel to the device within ${options.ConnectTimeout / 1000} s`);
  const cancelTimeout = context.environment.clock.schedule(options.ConnectTimeout, () => race.stop(late));
  signal.addEventListener('abort', race.cancel, { once: true });
  if (signal.aborted) race.cancel();
  try {
    const session = await race.result;
    session.setKeepAlive({
      interval: options.KeepAliveInterval,
      retryInterval: options.KeepAliveRetryInterval,
      maxRetries: options.KeepAliveMaxRetries,
    });
    return session;
  } finally {
    cancelTimeout();
    signal.removeEventListener('abort', race.cancel);
  }
}

/**
 * An option that asks for what is not in this version is refused, never ignored: its user would wait for something that cannot come. That is decided
 * here and not where options are given, since a later call may take them back.
 * @throws LocalError NOT_IMPLEMENTED
 */
function requireImplemented({ ScanLocalConnect, MdnsTimeout, IgnoreDeviceNotAttached }: EffectiveOptions): void {
  if (ScanLocalConnect) throw unimplemented('ScanLocalConnect', 'does not look for devices on the local network');
  if (MdnsTimeout !== undefined) throw unimplemented('MdnsTimeout', 'does not look for devices on the local network');
  if (IgnoreDeviceNotAttached) throw unimplemented('IgnoreDeviceNotAttached', 'does not wait for a device that is not attached');
}

function unimplemented(option: keyof EffectiveOptions, what: string): LocalError {
  return new LocalError('NOT_IMPLEMENTED', `the connection option ${option} is not implemented: this version ${what}`);
}

/** All enabled channels side by side. */
function startRace(context: ChannelContext, options: EffectiveOptions): Race<Session> {
  const channels = enabledChannels(context, options);
  const names = [...channels.keys()];
  const race = new Race<Session>({
    environment: context.environment,
    delay: 0,
    discard: (session) => void session.close(),
    summarize: (failures) => connectError(context, Object.fromEntries(failures.map(({ attempt, error }) => [names[attempt], error]))),
  });
  const common = target(context, options);
  for (const connect of channels.values()) race.add(() => abortable((signal) => connect({ ...common, signal })));
  race.end();
  return race;
}

/** @throws LocalError INVALID_STATE when what the enabled channels need is missing, or has no effect */
function enabledChannels(context: ChannelContext, options: EffectiveOptions): Map<Channel, Connect> {
  const channels = new Map<Channel, Connect>();
  const { candidates } = context;
  if (candidates !== null)
    channels.set('direct', async (target) => connectDirect(await context.host(), context.environment.network, candidates, target));
  if (!options.Remote || (candidates !== null && options.ServerUrl === undefined)) return channels;
  requireOption(options, 'ProductId');
  requireOption(options, 'DeviceId');
  requireOption(options, 'ServerUrl');
  if (options.RootCerts !== undefined && options.ServerFingerprint !== undefined)
    throw new LocalError('INVALID_STATE', 'the connection option RootCerts has no effect beside ServerFingerprint: give one of them');
  channels.set('remote', async (target) => {
    const station = configuredStation(options, context.environment);
    return connectRemote(await context.host(), await context.connector(station), options, target);
  });
  return channels;
}

function target(context: ChannelContext, { ProductId, DeviceId, DeviceFingerprint, DtlsHelloTimeout }: EffectiveOptions): ConnectTarget {
  const named = ProductId !== undefined && DeviceId !== undefined;
  return {
    identity: context.identity,
    name: named ? `device:${ProductId}.${DeviceId}` : 'device',
    ...(named && { expect: { ProductId, DeviceId } }),
    ...(DeviceFingerprint !== undefined && { pin: DeviceFingerprint }),
    timeout: DtlsHelloTimeout,
  };
}

function connectError(context: ChannelContext, failures: ChannelFailures): SvcError {
  const all = [failures.direct, failures.remote].filter((error) => error !== undefined);
  const summary = { local: 'NONE', remote: codeOf(failures.remote), direct: codeOf(failures.direct) } as const;
  context.onChannelErrors(summary);
  return mostTelling(all, rank) ?? new NoChannelsError(summary, { cause: failures });
}

/** What says more than that each channel failed: a wrong key of the device, and a device without room. */
function rank(error: SvcError): number {
  if (error.code === 'FINGERPRINT_MISMATCH' && !(error instanceof StationMismatch)) return 0;
  return error.code === 'DEVICE_INTERNAL_ERROR' ? 1 : Number.POSITIVE_INFINITY;
}

function codeOf(error: SvcError | undefined): ErrorCode {
  if (error === undefined) return 'NONE';
  return isErrorCode(error.code) ? error.code : 'UNKNOWN';
}

function requireOption(options: EffectiveOptions, name: 'ProductId' | 'DeviceId' | 'ServerUrl'): void {
  if (options[name] === undefined) throw new LocalError('INVALID_STATE', `the connection option ${name} is missing`);
}
