/**
 * One connect over all enabled channels: they run in parallel, the first that authenticates wins, and the others are
 * stopped. None waits for another.
 *
 * When all fail: a wrong key of the device is FINGERPRINT_MISMATCH, a device at its connection limit
 * DEVICE_INTERNAL_ERROR, the end of the time allowed TIMEOUT, anything else NO_CHANNELS with the error of each channel.
 * A wrong key on one channel does not stop the others: an attacker on the path to one address, or one that announces
 * the device on the local network, must not be able to block the device. Nor may it hide why: what answers on the local
 * network decides the error only where the base station has not answered.
 */

import type { Environment } from '../../platform/environment.ts';
import type { PrivateKey } from '../../protocol/crypto-provider.ts';
import {
  asSvcError,
  type ChannelErrors,
  type ErrorCode,
  isErrorCode,
  LocalError,
  NoChannelsError,
  type SvcError,
} from '../../protocol/errors/index.ts';
import type { MdnsBrowser } from '../../runtime/discovery/index.ts';
import type { ConnectTarget, Host } from '../../runtime/host/index.ts';
import { abortable, mostTelling, Race } from '../../runtime/race.ts';
import type { Session } from '../../runtime/session/index.ts';
import type { ConfiguredStation, StationConnector } from '../../runtime/station/index.ts';
import type { EffectiveOptions } from '../options.ts';
import { connectDirect, type DirectCandidates } from './direct.ts';
import { connectLocal, type LocalSearch } from './local.ts';
import { canAskAgain, configuredStation, connectRemote, StationMismatch } from './relay.ts';

export interface ChannelContext {
  readonly environment: Environment;
  readonly identity: PrivateKey;
  /** Null when direct candidates are not enabled. */
  readonly candidates: DirectCandidates | null;
  readonly browser: MdnsBrowser;
  host(): Promise<Host>;
  connector(station: ConfiguredStation): Promise<StationConnector>;
  /**
   * Reports the state of each channel, at the beginning and after each change: NONE for a channel not tried,
   * OPERATION_IN_PROGRESS for one under way, even after the connect has ended, its error when it failed, OK when it led
   * to the device. Also passes the errors of those that failed.
   */
  onChannels(results: ChannelErrors, failures: ChannelFailures): void;
  /** Called when the device is not attached and the channel through the base station waits for it. */
  onWaiting(): void;
}

/**
 * Why each channel failed: the `cause` of a NoChannelsError. Undefined for a channel that was not tried, or has not
 * failed.
 */
export interface ChannelFailures {
  readonly local?: SvcError;
  readonly remote?: SvcError;
  readonly direct?: SvcError;
}

type Channel = keyof ChannelFailures;
type Connect = (target: ConnectTarget & { signal: AbortSignal }) => Promise<Session>;
type Won = { readonly channel: Channel; readonly session: Session };
type Note = (channel: Channel, result: 'OPERATION_IN_PROGRESS' | 'OK' | SvcError) => void;

/** @param signal stops the connect with STOPPED @throws see Connection.connect */
export async function connectChannels(given: ChannelContext, options: EffectiveOptions, signal: AbortSignal): Promise<Session> {
  let hasWaited = false;
  let latest: ChannelErrors | null = null;
  const context: ChannelContext = {
    ...given,
    onWaiting: () => {
      hasWaited = true;
      given.onWaiting();
    },
    onChannels: (results, failures) => {
      latest = results;
      given.onChannels(results, failures);
    },
  };
  const channels = enabledChannels(context, options);
  const note = noteResults(context, channels.keys());
  const race = startRace(context, options, channels, note);
  const cancelTimeout = context.environment.clock.schedule(options.ConnectTimeout, () => race.stop(late(options, hasWaited, latest)));
  signal.addEventListener('abort', race.cancel, { once: true });
  if (signal.aborted) race.cancel();
  try {
    const { channel, session } = await race.result;
    note(channel, 'OK');
    return session;
  } finally {
    cancelTimeout();
    signal.removeEventListener('abort', race.cancel);
  }
}

function late({ ConnectTimeout }: EffectiveOptions, hasWaited: boolean, results: ChannelErrors | null): LocalError {
  const time = `no channel to the device within ${ConnectTimeout / 1000} s`;
  if (hasWaited) return new LocalError('TIMEOUT', `${time}: it did not attach to the base station in that time`);
  const names = Object.entries(WAYS).filter(([channel]) => results?.[channel as Channel] === 'OPERATION_IN_PROGRESS');
  return new LocalError('TIMEOUT', names.length === 0 ? time : `${time}; still being tried: ${names.map(([, name]) => name).join(', ')}`);
}

/** Names of the channels in messages. */
const WAYS: Readonly<Record<Channel, string>> = { local: 'the local network', remote: 'the base station', direct: 'the address' };

/** Starts all enabled channels. */
function startRace(context: ChannelContext, options: EffectiveOptions, channels: Map<Channel, Connect>, note: Note): Race<Won> {
  const names = [...channels.keys()];
  const race = new Race<Won>({
    environment: context.environment,
    delay: 0,
    discard: ({ session }) => void session.close(),
    summarize: (failures) => connectError(Object.fromEntries(failures.map(({ attempt, error }) => [names[attempt], error]))),
  });
  const common = target(context, options);
  for (const [channel, connect] of channels) {
    const run = async (signal: AbortSignal): Promise<Won> => {
      try {
        return { channel, session: await connect({ ...common, signal }) };
      } catch (error) {
        // An error after the signal comes from the end of the race, and is not a result of the channel.
        if (!signal.aborted) note(channel, asSvcError(error));
        throw error;
      }
    };
    race.add(() => abortable(run));
  }
  race.end();
  return race;
}

/** Reports the results of the channels. @returns the function that takes one result */
function noteResults({ onChannels }: ChannelContext, channels: Iterable<Channel>): Note {
  let results: ChannelErrors = { local: 'NONE', remote: 'NONE', direct: 'NONE' };
  let failures: ChannelFailures = {};
  const note: Note = (channel, result) => {
    const failed = typeof result !== 'string';
    results = { ...results, [channel]: failed ? codeOf(result) : result };
    if (failed) failures = { ...failures, [channel]: result };
    onChannels(results, failures);
  };
  onChannels(results, failures);
  for (const channel of channels) note(channel, 'OPERATION_IN_PROGRESS');
  return note;
}

/** @throws LocalError INVALID_STATE when something that the enabled channels need is missing, or has no effect */
function enabledChannels(context: ChannelContext, options: EffectiveOptions): Map<Channel, Connect> {
  const channels = new Map<Channel, Connect>();
  const { candidates } = context;
  if (isLocalPossible(context, options)) {
    const search = localSearch(options);
    channels.set('local', async (target) => connectLocal(await context.host(), context.browser, search, target));
  }
  if (candidates !== null)
    channels.set('direct', async (target) => connectDirect(await context.host(), context.environment.network, candidates, target));
  if (!options.Remote || (candidates !== null && options.ServerUrl === undefined)) return channels;
  requireIds(options);
  requireOption(options, 'ServerUrl');
  if (options.RootCerts !== undefined && options.ServerFingerprint !== undefined && !options.ServerWebSocketVerify)
    throw new LocalError('INVALID_STATE', 'the connection option RootCerts has no effect with ServerFingerprint: give one of them');
  if (options.ServerWebSocketVerify && /^ws:/i.test(options.ServerWebSocketUrl ?? ''))
    throw new LocalError(
      'INVALID_STATE',
      'the connection option ServerWebSocketVerify has no effect on a ws:// URL, which has no certificate: give a wss:// ServerWebSocketUrl',
    );
  channels.set('remote', async (target) => {
    const station = configuredStation(options, context.environment);
    return connectRemote(await context.host(), await context.connector(station), options, target, context.onWaiting);
  });
  return channels;
}

/**
 * Without multicast DNS, as in a browser, the channel is off and its result NONE: NOT_FOUND would say that the device
 * is not there. With direct candidates the ids may be missing, and then nothing can be searched for.
 */
function isLocalPossible({ environment, candidates }: ChannelContext, options: EffectiveOptions): boolean {
  const { Local, ProductId, DeviceId } = options;
  return Local && environment.mdns !== undefined && (candidates === null || (ProductId !== undefined && DeviceId !== undefined));
}

/** @throws LocalError INVALID_STATE */
function localSearch(options: EffectiveOptions): LocalSearch {
  const { ProductId: productId, DeviceId: deviceId } = requireIds(options);
  return { productId, deviceId, timeout: options.MdnsTimeout, scanAll: options.ScanLocalConnect };
}

function target(context: ChannelContext, options: EffectiveOptions): ConnectTarget {
  const { ProductId, DeviceId, DeviceFingerprint, DtlsHelloTimeout } = options;
  const named = ProductId !== undefined && DeviceId !== undefined;
  return {
    identity: context.identity,
    name: named ? `device:${ProductId}.${DeviceId}` : 'device',
    ...(named && { expect: { ProductId, DeviceId } }),
    ...(DeviceFingerprint !== undefined && { pin: DeviceFingerprint }),
    timeout: DtlsHelloTimeout,
    rests: canAskAgain(options, context.environment),
  };
}

/** Errors of the channel through the base station that are not its answer. */
const UNANSWERED: readonly string[] = [
  'BAD_RESPONSE',
  'CERTIFICATE_VALIDATION_FAILED',
  'CONNECTION_REFUSED',
  'DNS',
  'INVALID_STATE',
  'NOT_IMPLEMENTED',
  'STOPPED',
  'TIMEOUT',
];

function connectError(failures: ChannelFailures): SvcError {
  const { direct, local, remote } = failures;
  const answered = remote !== undefined && !(remote instanceof StationMismatch) && !UNANSWERED.includes(remote.code);
  const all = [direct, answered ? undefined : local, remote].filter((error) => error !== undefined);
  const summary = { local: codeOf(local), remote: codeOf(remote), direct: codeOf(direct) };
  return mostTelling(all, rank) ?? new NoChannelsError(summary, { cause: failures });
}

/** Ranks errors that say more than that each channel failed: a wrong key of the device, and a device at its limit. */
function rank(error: SvcError): number {
  if (error.code === 'FINGERPRINT_MISMATCH' && !(error instanceof StationMismatch)) return 0;
  return error.code === 'DEVICE_INTERNAL_ERROR' ? 1 : Number.POSITIVE_INFINITY;
}

function codeOf(error: SvcError | undefined): ErrorCode {
  if (error === undefined) return 'NONE';
  return isErrorCode(error.code) ? error.code : 'UNKNOWN';
}

/** @throws LocalError INVALID_STATE */
function requireIds(options: EffectiveOptions): { ProductId: string; DeviceId: string } {
  return { ProductId: requireOption(options, 'ProductId'), DeviceId: requireOption(options, 'DeviceId') };
}

function requireOption(options: EffectiveOptions, name: 'ProductId' | 'DeviceId' | 'ServerUrl'): string {
  const value = options[name];
  if (value === undefined) throw new LocalError('INVALID_STATE', `the connection option ${name} is missing`);
  return value;
}
