/**
 * The four ways to become a user (docs/iam.md): which are open to a caller now, and what each does.
 *
 * The order of checks: NOT_FOUND when the mode is off (for Local Initial also without an initial user), FORBIDDEN when
 * policies or circumstances forbid it, UNAUTHORIZED without the password authentication it needs; only then the
 * request's content is checked. An endpoint calls `requirePairing` before it decodes a body, and the pairing itself
 * checks again against the newest state.
 */
import { LocalError } from '../../protocol/errors/index.ts';
import { type IamUser, type PairingMode, pairingModes } from '../../protocol/records/index.ts';
import type { Caller } from './caller.ts';
import type { IamDraft } from './draft.ts';
import type { Rules } from './rules.ts';
import type { IamState, PairingFlags } from './state.ts';

/** Whether a caller's role allows an action. */
export type Check = (caller: Caller, action: string) => boolean;

/** The setting that turns each mode on. */
export const pairingFlags: Readonly<Record<PairingMode, keyof PairingFlags>> = {
  PasswordOpen: 'passwordOpenPairing',
  LocalOpen: 'localOpenPairing',
  PasswordInvite: 'passwordInvitePairing',
  LocalInitial: 'localInitialPairing',
};

/** Returns the modes open to the caller now, in the record's order. */
export function availablePairingModes(state: IamState, caller: Caller, check: Check): PairingMode[] {
  return pairingModes.filter((mode) => {
    if (mode === 'LocalInitial' && isPaired(initialUser(state))) return false;
    return refusal(state, mode, caller, check) === undefined;
  });
}

/**
 * @throws LocalError NOT_FOUND, FORBIDDEN or UNAUTHORIZED when the caller cannot pair this way, whatever its request
 *   contains
 */
export function requirePairing(state: IamState, mode: PairingMode, caller: Caller, check: Check): void {
  const refused = refusal(state, mode, caller, check) ?? unauthenticated(mode, caller);
  if (refused !== undefined) throw refused;
}

/** A request for open pairing. */
interface OpenPairingRequest {
  readonly username: string;
  /** Name of the key. */
  readonly name?: string | undefined;
}

/**
 * Local Open: adds a user of that name, while uninvited users are below their limit. Again with the same name and key
 * it changes nothing.
 */
export function pairLocalOpen(draft: IamDraft, rules: Rules, caller: Caller, asked: OpenPairingRequest): IamUser {
  const { size } = draft.state.users;
  const user = pairOpen(draft, 'LocalOpen', caller, asked);
  if (draft.state.users.size > size) rules.usersByLocalOpen(draft.state.users.size);
  return user;
}

/** Password Open: adds a user of that name. Again with the same name and key it changes nothing. */
export function pairPasswordOpen(draft: IamDraft, caller: Caller, asked: OpenPairingRequest): IamUser {
  return pairOpen(draft, 'PasswordOpen', caller, asked);
}

/** Local Initial: the caller becomes the user prepared for the first client, once. */
export function pairLocalInitial(draft: IamDraft, { fingerprint }: Caller, name?: string): IamUser {
  const user = initialUser(draft.state);
  if (user === undefined) throw new LocalError('NOT_FOUND', 'there is no initial user');
  if (isPaired(user)) throw new LocalError('IN_USE', 'the initial user is already paired');
  draft.addUserFingerprint(user.username, fingerprint, name);
  draft.notePairing(user.username, 'LocalInitial', fingerprint);
  return draft.user(user.username);
}

/** Password Invite: the caller becomes the user it authenticated as, which uses up the password. */
export function pairPasswordInvite(draft: IamDraft, { fingerprint, passwordUsername = '' }: Caller, name?: string): IamUser {
  const owner = draft.state.users.byFingerprint(fingerprint);
  if (owner !== undefined && owner.username === passwordUsername) return owner;
  if (owner !== undefined) throw new LocalError('IN_USE', 'this key belongs to another user');
  const entry = draft.state.users.entry(passwordUsername);
  if (entry === undefined) throw new LocalError('INVALID_STATE', 'the invited user was deleted');
  // Two connections may have authenticated by one invitation: the first of them gets it.
  if (entry.verifier === undefined) throw new LocalError('UNAUTHORIZED', 'the invitation was used or withdrawn');
  draft.addUserFingerprint(passwordUsername, fingerprint, name);
  draft.setUserVerifier(passwordUsername, undefined);
  draft.notePairing(passwordUsername, 'PasswordInvite', fingerprint);
  return draft.user(passwordUsername);
}

function pairOpen(
  draft: IamDraft,
  mode: 'LocalOpen' | 'PasswordOpen',
  { fingerprint }: Caller,
  { username, name }: OpenPairingRequest,
): IamUser {
  const { users, openPairingRole } = draft.state;
  const owner = users.byFingerprint(fingerprint);
  if (owner !== undefined && owner.username === username) return owner;
  if (owner !== undefined) throw new LocalError('IN_USE', 'this key belongs to another user');
  const user = draft.createUser(username, {
    ...(openPairingRole === undefined ? {} : { role: openPairingRole }),
    fingerprints: [{ fingerprint, ...(name === undefined ? {} : { name }) }],
  });
  draft.notePairing(username, mode, fingerprint);
  return user;
}

function refusal(state: IamState, mode: PairingMode, caller: Caller, check: Check): LocalError | undefined {
  if (!state[pairingFlags[mode]]) return new LocalError('NOT_FOUND', 'this pairing mode is off');
  if (mode === 'LocalInitial' && initialUser(state) === undefined) return new LocalError('NOT_FOUND', 'there is no initial user');
  if (!check(caller, `IAM:Pairing${mode}`)) return new LocalError('FORBIDDEN', 'policies do not allow this pairing');
  if (mode.startsWith('Local') && !caller.isLocal) return new LocalError('FORBIDDEN', 'this pairing is for local connections');
  if (mode.endsWith('Open') && state.openPairingRole === undefined) return new LocalError('FORBIDDEN', 'there is no role for open pairing');
  if (mode === 'PasswordOpen' && state.openPairingPasswordSealed === undefined) {
    return new LocalError('FORBIDDEN', 'there is no password for open pairing');
  }
  return undefined;
}

/** Checks the password authentication: the empty name is that of open pairing, any other an invited user's. */
function unauthenticated(mode: PairingMode, { passwordUsername }: Caller): LocalError | undefined {
  if (mode === 'PasswordOpen' && passwordUsername === '') return undefined;
  if (mode === 'PasswordInvite' && passwordUsername !== undefined && passwordUsername !== '') return undefined;
  if (mode.startsWith('Local')) return undefined;
  return new LocalError(
    'UNAUTHORIZED',
    `this pairing needs password authentication ${mode === 'PasswordOpen' ? 'without a username' : 'as a user'}`,
  );
}

function initialUser({ users, initialPairingUsername }: IamState): IamUser | undefined {
  return initialPairingUsername === undefined ? undefined : users.user(initialPairingUsername);
}

function isPaired(user: IamUser | undefined): boolean {
  return user !== undefined && (user.fingerprints.length > 0 || user.oauthSubject !== undefined);
}
