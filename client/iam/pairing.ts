/**
 * Pairing with a device (docs/iam.md): the four modes as requests, and the helper that chooses among them.
 *
 * The two modes by password authenticate first, with the empty user name for open pairing; that also proves the device
 * to this client.
 */
import { check, checkOptions, flag, type Kind, oneOf, text, texts } from '../../protocol/arguments.ts';
import { Status } from '../../protocol/coap/index.ts';
import { LocalError, type RemoteError, SvcError } from '../../protocol/errors/index.ts';
import {
  decodeDeviceDetails,
  decodePairing,
  decodeUser,
  encodeFingerprintName,
  encodeOpenPairing,
  type IamUser,
  type PairingMode,
  type PairingString,
  pairingModes,
} from '../../protocol/records/index.ts';
import { IamError, type Meaning, type Meanings } from './errors.ts';
import { fetch, type IamConnection, send } from './requests.ts';

/** Options of every pairing. */
export interface PairingOptions {
  /** Name of this client's key among the user's keys, such as the phone's. */
  readonly fingerprintName?: string;
}

/** Options of `pair`. */
export interface PairOptions extends PairingOptions {
  /** Default: chosen from the modes that the device offers, see `choosePairingMode`. */
  readonly mode?: PairingMode;
  /** A pairing string or link of the device; other options take precedence over it. */
  readonly pairing?: PairingString | string;
  /** The name to take in open pairing, or the invited name. */
  readonly username?: string;
  readonly password?: string;
  /** Called for an input that the chosen mode needs and that is missing; without it a missing input is an error. */
  readonly ask?: (missing: PairingInput, mode: PairingMode) => Promise<string>;
}

/** Inputs that a person may be asked for. */
export type PairingInput = 'user name' | 'password';

/** The result of a pairing. */
export interface PairingResult {
  /** Null when this client was already that user. */
  readonly mode: PairingMode | null;
  readonly user: IamUser;
}

const disabled: Meaning = ['PAIRING_MODE_DISABLED', 'this way of pairing is off'];
const taken: Meaning = ['USERNAME_EXISTS', 'the user name belongs to another client, or this client is another user already'];
const open: Meanings = { [Status.NOT_FOUND]: disabled, [Status.CONFLICT]: taken };

export async function pairLocalOpen(connection: IamConnection, username: string, options: PairingOptions = {}): Promise<void> {
  await post(connection, 'local-open', encodeOpenPairing({ ...options, username }), open);
}

export async function pairLocalInitial(connection: IamConnection, { fingerprintName }: PairingOptions = {}): Promise<void> {
  const paired: Meaning = ['INITIAL_USER_ALREADY_PAIRED', 'the initial user has already been paired'];
  // A body without a name is refused.
  const body = fingerprintName === undefined ? undefined : encodeFingerprintName(fingerprintName);
  await post(connection, 'local-initial', body, { [Status.NOT_FOUND]: disabled, [Status.CONFLICT]: paired });
}

export async function pairPasswordOpen(
  connection: IamConnection,
  username: string,
  password: string,
  options: PairingOptions = {},
): Promise<void> {
  await authenticate(connection, '', password);
  await post(connection, 'password-open', encodeOpenPairing({ ...options, username }), open);
}

export async function pairPasswordInvite(
  connection: IamConnection,
  username: string,
  password: string,
  { fingerprintName }: PairingOptions = {},
): Promise<void> {
  // The empty name stands for open pairing.
  if (username === '') throw new LocalError('INVALID_INPUT', 'an invitation has a user name');
  await authenticate(connection, username, password);
  const body = fingerprintName === undefined ? undefined : encodeFingerprintName(fingerprintName);
  const used: Meaning = ['FINGERPRINT_IN_USE', 'this client is another user already'];
  await post(connection, 'password-invite', body, { [Status.NOT_FOUND]: disabled, [Status.CONFLICT]: used });
}

/**
 * Pairs as `options` say, or as the device offers, and returns the user that this client is now. Does nothing when it
 * already is that user.
 * @throws as the chosen mode; INVALID_INPUT when it needs a user name or password that is missing;
 *   PAIRING_MODE_DISABLED when the device offers no mode that fits; INVALID_ARGUMENT for a broken pairing string
 */
export async function pair(connection: IamConnection, options: PairOptions = {}): Promise<PairingResult> {
  const string = typeof options.pairing === 'string' ? decodePairing(options.pairing) : options.pairing;
  const username = options.username ?? string?.username;
  const password = options.password ?? string?.password;
  const before = await pairedUser(connection);
  if (before !== undefined && (username === undefined || before.username === username)) return { mode: null, user: before };
  const given = { username, password, ...(string !== undefined && { invited: string.username !== undefined }) };
  const mode = options.mode ?? choosePairingMode((await details(connection)).modes, given);
  const { ask = missingInput } = options;
  const asked: Partial<Record<PairingInput, string>> = {};
  for (const missing of missingForPairing(mode, given)) asked[missing] = await ask(missing, mode);
  await carryOut[mode](connection, username ?? asked['user name'] ?? '', password ?? asked.password ?? '', options);
  return { mode, user: await fetch(connection, { method: 'GET', path: ['me'] }, decodeUser, notPaired) };
}

async function missingInput(missing: PairingInput, mode: PairingMode): Promise<never> {
  throw new LocalError('INVALID_INPUT', `pairing by ${mode} needs a ${missing}`);
}

const carryOut: Readonly<
  Record<PairingMode, (connection: IamConnection, username: string, password: string, options: PairingOptions) => Promise<void>>
> = {
  PasswordOpen: pairPasswordOpen,
  LocalOpen: (connection, username, _, options) => pairLocalOpen(connection, username, options),
  PasswordInvite: pairPasswordInvite,
  LocalInitial: (connection, _, __, options) => pairLocalInitial(connection, options),
};

/** The inputs known before a mode is chosen. */
export interface PairingKnowledge {
  readonly username?: string | undefined;
  readonly password?: string | undefined;
  /** Whether the password is that of an invitation, as `u=` of a pairing string says. */
  readonly invited?: boolean;
}

const KNOWLEDGE: Record<keyof PairingKnowledge, Kind> = { username: text, password: text, invited: flag };

/** Returns the inputs that the mode needs and that are missing. */
export function missingForPairing(mode: PairingMode, given: PairingKnowledge): PairingInput[] {
  check('the mode', mode, oneOf(pairingModes));
  checkOptions('a pairing', given, KNOWLEDGE);
  const { username, password } = given;
  const needs = { PasswordOpen: [true, true], LocalOpen: [true, false], PasswordInvite: [true, true], LocalInitial: [false, false] }[mode];
  return [
    ...(needs[0] && username === undefined ? (['user name'] as const) : []),
    ...(needs[1] && password === undefined ? (['password'] as const) : []),
  ];
}

/**
 * Returns the mode that fits the known inputs, of those the device offers now. With a password: invitation or open
 * pairing, whichever it is for. Without a password: with a name, open pairing on the local network first, then the
 * initial user; without a name, in the other order; then a mode whose password must still be requested.
 * @throws LocalError PAIRING_MODE_DISABLED when nothing fits; INVALID_INPUT when a password may be for either
 */
export function choosePairingMode(modes: readonly PairingMode[], given: PairingKnowledge): PairingMode {
  check('the modes', modes, texts);
  checkOptions('a pairing', given, KNOWLEDGE);
  const wanted = preference(given);
  const offered = wanted.filter((mode) => modes.includes(mode));
  const [first] = offered;
  if (first === undefined) {
    const offers = modes.length === 0 ? 'the device offers no pairing to this connection' : `the device offers ${modes.join(', ')}`;
    throw new LocalError('PAIRING_MODE_DISABLED', `${offers}, and what is given is for ${wanted.join(' or ')}`);
  }
  if (given.password !== undefined && offered.length > 1)
    throw new LocalError('INVALID_INPUT', `the password may be for ${offered.join(' or ')}: choose the mode`);
  return first;
}

function preference({ username, password, invited }: PairingKnowledge): readonly PairingMode[] {
  if (password !== undefined) {
    if (invited === undefined) return ['PasswordInvite', 'PasswordOpen'];
    return invited ? ['PasswordInvite'] : ['PasswordOpen'];
  }
  if (invited === true) return ['PasswordInvite'];
  const local: PairingMode[] = username === undefined ? ['LocalInitial', 'LocalOpen'] : ['LocalOpen', 'LocalInitial'];
  return [...local, 'PasswordOpen', 'PasswordInvite'];
}

function details(connection: IamConnection) {
  return fetch(connection, { method: 'GET', path: ['pairing'] }, decodeDeviceDetails);
}

/** The answer of `GET /iam/me` to a client that is not a user. */
export const notPaired: Meanings = { [Status.NOT_FOUND]: ['USER_DOES_NOT_EXIST', 'this client is not paired'] };

/**
 * Returns the user with this client's key. A user by password alone, or bound by the application, is not paired yet.
 */
async function pairedUser(connection: IamConnection): Promise<IamUser | undefined> {
  const user = await fetch(connection, { method: 'GET', path: ['me'] }, decodeUser, notPaired).catch((error: unknown) => {
    if (error instanceof IamError && error.code === 'USER_DOES_NOT_EXIST') return undefined;
    throw error;
  });
  const key = connection.getClientFingerprint();
  return user?.fingerprints.some(({ fingerprint }) => fingerprint === key) === true ? user : undefined;
}

function post(connection: IamConnection, mode: string, body: Uint8Array | undefined, meanings: Meanings): Promise<void> {
  return send(connection, { method: 'POST', path: ['pairing', mode], ...(body !== undefined && { body }) }, meanings);
}

/** Authenticates; maps the codes of `passwordAuthenticate` to those of pairing. */
async function authenticate(connection: IamConnection, username: string, password: string): Promise<void> {
  try {
    await connection.passwordAuthenticate(username, password);
  } catch (error) {
    if (!(error instanceof SvcError)) throw error;
    if (error.code === 'UNAUTHORIZED') throw refused('AUTHENTICATION_ERROR', Status.UNAUTHORIZED, error);
    if (error.code === 'NOT_FOUND') throw refused('PAIRING_MODE_DISABLED', Status.NOT_FOUND, error);
    if (error.code === 'INVALID_ARGUMENT') throw new LocalError('INVALID_INPUT', error.message, { cause: error });
    throw error;
  }
}

function refused(code: 'AUTHENTICATION_ERROR' | 'PAIRING_MODE_DISABLED', status: number, cause: RemoteError): IamError {
  return new IamError(code, cause.message, { status, diagnostic: '' }, { cause });
}
