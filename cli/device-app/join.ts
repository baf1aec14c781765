/**
 * `svc device --join`: a board becomes a device of a base station by a join string. Each step is on disk before the
 * next:
 *
 * 1. `key.pem`, so that a join whose answer is lost can be repeated with the same key;
 * 2. `join.json`, the join string, so that a start without --join continues;
 * 3. the join at the base station;
 * 4. `state.json`, the device's identity from now on;
 * 5. once the device is attached, `join.json` is removed (`forgetOnceAttached`).
 *
 * A board that is already a device does not become another one: the same join again changes nothing, any other is
 * refused.
 */
import { type Device, type Environment, type JoinResult, joinBaseStation, SvcError } from '../../device/index.ts';
import { CommandError, describe, UsageError } from '../frame/errors.ts';
import type { Output } from '../frame/output.ts';
import { commandLine } from '../frame/shell-word.ts';
import type { DeviceData, DeviceState } from './data.ts';
import type { IdentityOptions } from './identity.ts';
import type { GivenJoin } from './join-string.ts';
import { forgetPendingJoin, type JoinChoices, type PendingJoin, readPendingJoin, savePendingJoin } from './pending-join.ts';

export interface JoinPlace {
  readonly device: Device;
  readonly data: DeviceData;
  readonly environment: Environment;
  readonly output: Output;
  /** Ends the join when it fires. */
  readonly signal: AbortSignal;
  /** Default `joinBaseStation`. */
  readonly joinStation?: typeof joinBaseStation;
}

/**
 * Joins if a join string was given now or is waiting from before, and the directory is not yet a device.
 * @param given the join string of this start
 * @param options of this start; they take precedence over those of the start with the join string
 * @throws UsageError, CommandError: one line with the remedy; the join can be tried again
 */
export async function joinFirst(place: JoinPlace, given: GivenJoin | undefined, options: IdentityOptions): Promise<void> {
  const { data } = place;
  if (data.state !== null) {
    if (given !== undefined) refuseAnother(data.directory, data.state, given);
    return;
  }
  const kept = await readPendingJoin(data.joinFile);
  const waiting = given ?? kept;
  if (waiting === null) return;
  const before = kept !== null && kept.text === waiting.text ? kept.choices : {};
  await join(place, { ...waiting, choices: chosen(waiting, before, options) });
}

/** Removes the join string once the device is attached: its token is a secret, and no longer needed. */
export function forgetOnceAttached(device: Device, data: DeviceData, output: Output): void {
  const stop = device.onDeviceEvent((event) => {
    if (event !== 'ATTACHED') return;
    stop();
    forgetPendingJoin(data.joinFile).catch((error: unknown) => output.warn(describe(error)));
  });
}

async function join(place: JoinPlace, pending: PendingJoin): Promise<void> {
  const { device, data, environment, output, signal, joinStation = joinBaseStation } = place;
  const privateKey = await data.privateKey(() => device.createPrivateKey());
  await savePendingJoin(data.joinFile, pending);
  const { deviceId, server, rootCerts, serverWebsocket } = pending.choices;
  let joined: JoinResult;
  try {
    joined = await joinStation({
      environment,
      joinString: pending.text,
      privateKey,
      signal,
      ...(deviceId !== undefined && { deviceId }),
      ...(server !== undefined && { serverUrl: server }),
      ...(rootCerts !== undefined && { rootCerts }),
      ...(serverWebsocket !== undefined && { serverWebSocketUrl: serverWebsocket }),
    });
  } catch (error) {
    if (signal.aborted || !(error instanceof SvcError)) throw signal.aborted ? signal.reason : error;
    // It will never be accepted, so the next start must not try it again.
    if (error.code === 'TOKEN_REJECTED') await forgetPendingJoin(data.joinFile);
    throw new CommandError(explanation(error, pending));
  }
  const { productId, serverUrl, serverFingerprint } = joined;
  await data.update({
    ProductId: productId,
    DeviceId: joined.deviceId,
    ServerUrl: serverUrl,
    ServerFingerprint: serverFingerprint,
    ServerRootCerts: rootCerts,
    ServerWebSocketUrl: serverWebsocket,
    Joined: true,
  });
  output.result({ event: 'joined', ...joined }, `joined ${serverUrl} as ${productId}.${joined.deviceId}`);
}

/** @throws UsageError where an option contradicts the join string */
function chosen({ join }: GivenJoin, before: JoinChoices, options: IdentityOptions): JoinChoices {
  const { product, serverFingerprint, deviceId = before.deviceId } = options;
  const { server = before.server, rootCerts = before.rootCerts, serverWebsocket = before.serverWebsocket } = options;
  refuseOther('--product', join.productId, product);
  refuseOther('--device-id', join.deviceId, deviceId);
  refuseOther('--server-fingerprint', join.serverFingerprint, serverFingerprint);
  if (serverFingerprint !== undefined && join.serverFingerprint === undefined)
    throw new UsageError('--server-fingerprint has no effect: the join string has the base station authenticated by TLS');
  if (rootCerts !== undefined && join.serverFingerprint !== undefined)
    throw new UsageError('--root-certs has no effect: the join string has the fingerprint of the base station');
  return { deviceId, server, rootCerts, serverWebsocket };
}

function refuseOther(option: string, expected: string | undefined, given: string | undefined): void {
  if (given !== undefined && expected !== undefined && given !== expected)
    throw new UsageError(`${option} ${given}: the join string says ${expected}; leave the option out`);
}

/** @throws UsageError unless the join string is the one that made this device, as far as that is known */
function refuseAnother(directory: string, state: DeviceState, { join }: GivenJoin): void {
  const { ProductId, DeviceId, ServerUrl, ServerFingerprint } = state;
  const sameIds = join.productId === ProductId && (join.deviceId ?? DeviceId) === DeviceId;
  const sameStation =
    join.serverFingerprint === undefined ? ServerUrl === `https://${join.server}` : join.serverFingerprint === ServerFingerprint;
  if (sameIds && sameStation) return;
  const station = ServerUrl === undefined ? '' : ` of ${ServerUrl}`;
  throw new UsageError(
    `${directory} is already the device ${ProductId}.${DeviceId}${station}: give a new directory with --data, or start it without --join`,
  );
}

const UNREACHABLE: readonly string[] = ['CONNECTION_REFUSED', 'DNS', 'TIMEOUT'];

/** Returns the message of an error with its remedy. */
function explanation(error: SvcError, { join, choices: { server, deviceId } }: PendingJoin): string {
  const address = server ?? `https://${join.server}`;
  const invite = commandLine('svc admin device invite', [join.productId]);
  const again = 'the join string is kept, so the next start needs no --join';
  if (UNREACHABLE.includes(error.code))
    return `${error.message}: ${address} was tried. Check that the base station runs and that UDP reaches it, or give another address with --server (${again})`;
  switch (error.code) {
    case 'TOKEN_REJECTED':
      return `the base station does not accept this join string: it has expired, was revoked or was used by another device. Ask for a new one: ${invite}`;
    case 'FINGERPRINT_MISMATCH':
      return `another base station answers at ${address}: an attacker may be in between, or it was set up again. Give its address with --server, or ask for a new join string: ${invite}`;
    case 'CERTIFICATE_VALIDATION_FAILED':
      return `${error.message}: set this machine's clock, or give the roots of the certificate with --root-certs FILE (${again})`;
    case 'DEVICE_ID_IN_USE':
    case 'WRONG_DEVICE_ID':
      return join.deviceId === undefined
        ? `the device id ${deviceId ?? ''} is taken: give another one with --device-id (${again})`
        : `the device id ${join.deviceId} of the join string belongs to another device. Ask for a new join string: ${invite}`;
    case 'TOO_MANY_REQUESTS':
      return `${error.message}: try again in a minute (${again})`;
    default:
      return `${describe(error)} (${again})`;
  }
}
