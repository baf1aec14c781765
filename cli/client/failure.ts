/** Explains a failed connect to a person, with a remedy, where the error alone does not. */
import { type ErrorCode, NoChannelsError, SvcError } from '../../client/node.ts';
import { formatHostPort } from '../../protocol/records/index.ts';
import { CommandError, describe } from '../frame/errors.ts';
import type { Known } from './known.ts';
import type { TargetStation } from './station.ts';
import { nameOf, type Target } from './target.ts';

/** Errors of an https request to a base station without a certificate, which serves plain http on its own host only. */
const NO_TLS: readonly string[] = ['BAD_RESPONSE', 'CONNECTION_REFUSED', 'TIMEOUT'];

type FailedTarget = Target & { readonly near: boolean };

/** Errors when nothing answers at the address of a base station. */
const UNREACHED: readonly ErrorCode[] = ['TIMEOUT', 'CONNECTION_REFUSED', 'DNS', 'BAD_RESPONSE'];
/** Errors when the base station does not recognize the content of a pairing string. */
const FOREIGN: readonly ErrorCode[] = ['FINGERPRINT_MISMATCH', 'TOKEN_REJECTED', 'UNKNOWN_PRODUCT_ID', 'UNKNOWN_DEVICE_ID'];

/** Returns the error of a connect with its remedy, or unchanged. */
export function explained(error: unknown, target: FailedTarget, known: Known): unknown {
  if (error instanceof SvcError && error.code === 'FINGERPRINT_MISMATCH') return changedKey(target, known);
  if (isAbsent(error, target)) return absent(target);
  if (!(error instanceof NoChannelsError)) return error;
  const remedies = [
    ...(isUnproved(error, target.server, known) ? [howToProve(target.server)] : []),
    ...admission(error, target, known),
    ...elsewhere(error, target),
  ];
  return remedies.length === 0 ? error : new CommandError([describe(error), ...remedies].join('; '));
}

/** How to be admitted by a base station for which this client has nothing to show. A token is sent only to its own. */
function admission(
  { remoteChannelErrorCode }: NoChannelsError,
  { server, sct, serverKey, productId, deviceId }: FailedTarget,
  known: Known,
): string[] {
  if (remoteChannelErrorCode !== 'INVALID_STATE' || server === undefined || sct !== undefined || serverKey !== undefined) return [];
  const tokens = (productId !== undefined && deviceId !== undefined && known.byId(productId, deviceId)?.Tokens) || {};
  const remedies = [
    `this client has no server connect token for ${server.url}: a pairing string with one (sct=) brings it; or give it with --sct-file, or a server key with --server-key-file`,
  ];
  if (Object.keys(tokens).length > 0)
    remedies.push(
      'the remembered token of the device belongs to a base station with another key: with that key in --server-fingerprint it is sent',
    );
  return remedies;
}

/** Describes the values that were tried without being typed now, and how to replace them. */
function elsewhere(error: NoChannelsError, { server, serverFrom, addresses, pairing }: FailedTarget): string[] {
  const { remoteChannelErrorCode: remote, directCandidatesChannelErrorCode: direct } = error;
  const remedies: string[] = [];
  const source = serverFrom === 'state' ? 'the remembered address' : 'the address in the pairing string';
  if (server !== undefined && serverFrom !== 'option' && UNREACHED.includes(remote)) {
    // A remembered key belongs to its address; a pairing string brings its own.
    const options = serverFrom === 'state' && server.fingerprint !== null ? '--server and --server-fingerprint' : '--server';
    remedies.push(`the base station was tried at ${server.url}, ${source}: if its address is another, give it with ${options}`);
  }
  if (pairing && FOREIGN.includes(remote))
    remedies.push('the pairing string is outdated, or of another base station or device: ask for a new one');
  if (pairing && addresses.length > 0 && direct !== 'OK' && direct !== 'NONE')
    remedies.push(
      `the device was tried at ${addresses.map(formatHostPort).join(' and ')}: if its address is another, give it with --address`,
    );
  return remedies;
}

/** Whether only the local network was tried, and the device did not answer there. */
function isAbsent(error: unknown, { server, addresses, near }: FailedTarget): boolean {
  const alone = addresses.length === 0 && (near || server === undefined);
  return alone && error instanceof NoChannelsError && error.localChannelErrorCode === 'NOT_FOUND';
}

function absent(target: FailedTarget): CommandError {
  const elsewhere = target.near ? 'this works only there' : 'from another network, give the base station with --server';
  return new CommandError(
    `${nameOf(target)} does not answer on the local network (NOT_FOUND): svc discover lists the devices there; give the address of another one with --address; ${elsewhere}`,
  );
}

/** Whether the base station was never reached, and was to be authenticated by TLS. */
function isUnproved(error: unknown, server: TargetStation | undefined, known: Known): server is TargetStation {
  if (!(error instanceof NoChannelsError) || server === undefined || server.fingerprint !== null) return false;
  return known.station(server.url)?.Roots === undefined && NO_TLS.includes(error.remoteChannelErrorCode);
}

/** Returns the error of a check of a base station alone with its remedy, or unchanged. */
export function explainedStation(error: SvcError, station: TargetStation, known: Known): unknown {
  const isNew = station.fingerprint === null && known.station(station.url)?.Roots === undefined;
  return isNew && NO_TLS.includes(error.code) ? new CommandError(`${describe(error)}; ${howToProve(station)}`) : error;
}

function howToProve({ url }: TargetStation): string {
  return `${url} has no known fingerprint: if it has no TLS certificate, give --server-fingerprint, as svc basestation prints it`;
}

function changedKey(target: FailedTarget, known: Known): CommandError {
  const { pin } = target;
  if (!known.devices.some(({ Fingerprint }) => Fingerprint === pin))
    return new CommandError(
      `${nameOf(target)} does not have the given fingerprint (${pin}): compare it with the one that svc device prints. An attacker may be in between`,
    );
  return new CommandError(
    `${nameOf(target)} does not have its known key (${pin}): connection refused. An attacker may be in between; if the device was set up again, \`svc pair - --replace\` reads its new pairing string`,
  );
}
