/** What a connect that failed comes down to for a person, where the error alone does not say it, and what to do. */
import { type ErrorCode, NoChannelsError, SvcError } from '../../client/node.ts';
import { formatHostPort } from '../../protocol/records/index.ts';
import { CommandError, describe } from '../frame/errors.ts';
import type { Known } from './known.ts';
import type { TargetStation } from './station.ts';
import { nameOf, type Target } from './target.ts';

/** What comes of asking by https where there is none: a base station without a certificate answers it on its own host alone. */
const NO_TLS: readonly string[] = ['BAD_RESPONSE', 'CONNECTION_REFUSED', 'TIMEOUT'];

type FailedTarget = Target & { readonly near: boolean };

/** Nothing answers at the address of a base station. */
const UNREACHED: readonly ErrorCode[] = ['TIMEOUT', 'CONNECTION_REFUSED', 'DNS', 'BAD_RESPONSE'];
/** A base station that does not know what a pairing string says of it. */
const FOREIGN: readonly ErrorCode[] = ['FINGERPRINT_MISMATCH', 'TOKEN_REJECTED', 'UNKNOWN_PRODUCT_ID', 'UNKNOWN_DEVICE_ID'];

/** The error of a connect with its remedy, or as it is. */
export function explained(error: unknown, target: FailedTarget, known: Known): unknown {
  if (error instanceof SvcError && error.code === 'FINGERPRINT_MISMATCH') return changedKey(target, known);
  if (isAbsent(error, target)) return absent(target);
  if (!(error instanceof NoChannelsError)) return error;
  const remedies = [...(isUnproved(error, target.server, known) ? [howToProve(target.server)] : []), ...elsewhere(error, target)];
  return remedies.length === 0 ? error : new CommandError([describe(error), ...remedies].join('; '));
}

/** What was tried that nobody typed now, and how to state something else. */
function elsewhere(error: NoChannelsError, { server, serverFrom, addresses, pairing }: FailedTarget): string[] {
  const { remoteChannelErrorCode: remote, directCandidatesChannelErrorCode: direct } = error;
  const remedies: string[] = [];
  const source = serverFrom === 'state' ? 'the address that is remembered' : 'the address in the pairing string';
  if (server !== undefined && serverFrom !== 'option' && UNREACHED.includes(remote)) {
    // What is remembered of the key belongs to the address; a pairing string brings it along.
    const options = serverFrom === 'state' && server.fingerprint !== null ? '--server and --server-fingerprint' : '--server';
    remedies.push(`the base station was tried at ${server.url}, ${source}: if it is reached at another one, state that with ${options}`);
  }
  if (pairing && FOREIGN.includes(remote))
    remedies.push('the pairing string is an old one, or of another base station or device: ask for a new one');
  if (pairing && addresses.length > 0 && direct !== 'OK' && direct !== 'NONE')
    remedies.push(
      `the device was tried at ${addresses.map(formatHostPort).join(' and ')}: if it is reached at another address, state that with --address`,
    );
  return remedies;
}

/** Nothing but the local network was tried, and the device did not answer there. */
function isAbsent(error: unknown, { server, addresses, near }: FailedTarget): boolean {
  const alone = addresses.length === 0 && (near || server === undefined);
  return alone && error instanceof NoChannelsError && error.localChannelErrorCode === 'NOT_FOUND';
}

function absent(target: FailedTarget): CommandError {
  const elsewhere = target.near ? 'this is possible there only' : 'from elsewhere give the base station with --server';
  return new CommandError(
    `${nameOf(target)} does not answer on the local network (NOT_FOUND): svc discover lists what is announced there; where it is not announced give its address with --address; ${elsewhere}`,
  );
}

/** The base station was never reached, and what was tried to prove it is TLS. */
function isUnproved(error: unknown, server: TargetStation | undefined, known: Known): server is TargetStation {
  if (!(error instanceof NoChannelsError) || server === undefined || server.fingerprint !== null) return false;
  return known.tlsStation(server.url) === undefined && NO_TLS.includes(error.remoteChannelErrorCode);
}

/** The error of a look at a base station alone, with its remedy, or as it is. */
export function explainedStation(error: SvcError, station: TargetStation, known: Known): unknown {
  const isNew = station.fingerprint === null && known.tlsStation(station.url) === undefined;
  return isNew && NO_TLS.includes(error.code) ? new CommandError(`${describe(error)}; ${howToProve(station)}`) : error;
}

function howToProve({ url }: TargetStation): string {
  return `${url} is not known by a fingerprint: where TLS cannot prove it, give --server-fingerprint, which svc basestation prints at its start`;
}

function changedKey(target: FailedTarget, known: Known): CommandError {
  const { pin } = target;
  if (!known.devices.some(({ Fingerprint }) => Fingerprint === pin))
    return new CommandError(
      `${nameOf(target)} does not have the fingerprint that was given (${pin}): compare it with the one that svc device prints. Somebody may be in between`,
    );
  return new CommandError(
    `${nameOf(target)} does not have the key it is known by (${pin}): connection refused. Somebody may be in between; if the device was set up again, pair it again with svc pair --replace`,
  );
}
