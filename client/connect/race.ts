/**
 * One connect over all channels that are enabled: each tries on its own and side by side, the first that authenticates wins, the others are
 * stopped.
 *
 * When all fail: a wrong key of the device is FINGERPRINT_MISMATCH, a device without room DEVICE_INTERNAL_ERROR, the end of the time allowed
 * TIMEOUT, anything else NO_CHANNELS with the error of each channel. A wrong key on one channel does not stop the others: somebody in the
 * way of one address must not be able to keep the device from being reached.
 */
import type { PrivateKey } from '../../protocol/crypto-host.ts';
import { asSvcError, type ErrorCode, isErrorCode, LocalError, NoChannelsError, type SvcError } from '../../protocol/errors/index.ts';
import type { Environment } from '../../transport/environment.ts';
import type { ConnectTarget, Host } from '../../transport/host/index.ts';
import type { Session } from '../../transport/session/index.ts';
import type { StationAddress, StationConnector } from '../../transport/station/index.ts';
import type { EffectiveOptions } from '../options.ts';
import { connectDirect, type DirectCandidates } from './direct.ts';
import { connectRemote, StationMismatch, stationAddress } from './relay.ts';

export interface ChannelContext {
  readonly environment: Environment;
  readonly identity: PrivateKey;
  /** Null when direct candidates are not enabled. */
  readonly candidates: DirectCandidates | null;
  host(): Promise<Host>;
  connector(station: StationAddress): Promise<StationConnector>;
}

/** Why each channel failed: the `cause` of a NoChannelsError. Undefined for a channel that was not tried. */
export interface ChannelFailures {
  remote?: SvcError;
  direct?: SvcError;
}

type Attempt = (target: ConnectTarget & { signal: AbortSignal }) => Promise<Session>;

/**
 * @param signal stops the connect with STOPPED
 * @throws see Connection.connect
 */
export async function connectChannels(context: ChannelContext, options: EffectiveOptions, signal: AbortSignal): Promise<Session> {
  if (options.IgnoreDeviceNotAttached)
    throw new LocalError('NOT_IMPLEMENTED', 'the connection option IgnoreDeviceNotAttached is not in this version');
  const attempts = enabledChannels(context, options);
  const rest = new AbortController();
  let timedOut = false;
  const cancelTimeout = context.environment.clock.schedule(options.ConnectTimeout, () => {
    timedOut = true;
    rest.abort();
  });
  try {
    const session = await race(attempts, { ...target(context, options), signal: AbortSignal.any([signal, rest.signal]) });
    session.setKeepAlive({
      interval: options.KeepAliveInterval,
      retryInterval: options.KeepAliveRetryInterval,
      maxRetries: options.KeepAliveMaxRetries,
    });
    return session;
  } catch (failures) {
    if (signal.aborted) throw new LocalError('STOPPED', 'the connect was stopped');
    if (timedOut) throw new LocalError('TIMEOUT', `no channel to the device within ${options.ConnectTimeout / 1000} s`);
    throw connectError(failures as ChannelFailures);
  } finally {
    cancelTimeout();
    rest.abort();
  }
}

/** @throws LocalError INVALID_STATE when what the enabled channels need is missing */
function enabledChannels(context: ChannelContext, options: EffectiveOptions): Map<keyof ChannelFailures, Attempt> {
  const attempts = new Map<keyof ChannelFailures, Attempt>();
  const { candidates } = context;
  if (candidates !== null)
    attempts.set('direct', async (target) => connectDirect(await context.host(), context.environment.network, candidates, target));
  if (!options.Remote || (candidates !== null && options.ServerUrl === undefined)) return attempts;
  requireOption(options, 'ProductId');
  requireOption(options, 'DeviceId');
  requireOption(options, 'ServerUrl');
  attempts.set('remote', async (target) => {
    const station = stationAddress(options);
    return connectRemote(await context.host(), await context.connector(station), options, target);
  });
  return attempts;
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

/** The first session, or a rejection with the ChannelFailures. */
function race(attempts: ReadonlyMap<keyof ChannelFailures, Attempt>, target: ConnectTarget & { signal: AbortSignal }): Promise<Session> {
  return new Promise((resolve, reject) => {
    const failures: ChannelFailures = {};
    let running = attempts.size;
    let won = false;
    if (running === 0) reject(failures);
    for (const [channel, attempt] of attempts) {
      attempt(target)
        .then((session) => {
          if (won) session.close();
          won = true;
          resolve(session);
        })
        .catch((error: unknown) => {
          failures[channel] = asSvcError(error);
        })
        .finally(() => {
          if (--running === 0) reject(failures);
        });
    }
  });
}

function connectError(failures: ChannelFailures): SvcError {
  const all = [failures.direct, failures.remote].filter((error) => error !== undefined);
  const decisive =
    all.find((error) => error.code === 'FINGERPRINT_MISMATCH' && !(error instanceof StationMismatch)) ??
    all.find(({ code }) => code === 'DEVICE_INTERNAL_ERROR');
  if (decisive !== undefined) return decisive;
  return new NoChannelsError({ local: 'NONE', remote: codeOf(failures.remote), direct: codeOf(failures.direct) }, { cause: failures });
}

function codeOf(error: SvcError | undefined): ErrorCode {
  if (error === undefined) return 'NONE';
  return isErrorCode(error.code) ? error.code : 'UNKNOWN';
}

function requireOption(options: EffectiveOptions, name: 'ProductId' | 'DeviceId' | 'ServerUrl'): void {
  if (options[name] === undefined) throw new LocalError('INVALID_STATE', `the connection option ${name} is missing`);
}
