/**
 * The state as JSON (docs/iam.md). It is written as version 3; versions 1 and 2 are read and become version 3 with the
 * next save.
 *
 *     {Version: 3, OpenPairingPasswordSealed?, OpenPairingSct?,
 *      LocalOpenPairing, PasswordOpenPairing, PasswordInvitePairing, LocalInitialPairing,
 *      OpenPairingRole?, InitialPairingUsername?, FriendlyName?,
 *      Users: [{Username, DisplayName?, Fingerprints: [{Fingerprint, Name?, Added?}], ServerConnectToken?,
 *               PasswordVerifier?: {Kdf: 1, Salt, Value}, Role?, Push?: {Token?, ProjectId?},
 *               NotificationCategories?: […], OauthSubject?}]}
 *
 * Version 2 has the passwords in cleartext, `OpenPairingPassword` and `Password`; version 1 also one `Fingerprint`
 * instead of `Fingerprints`. Salt and Value are base64. A missing flag counts as false. A document of another shape is
 * refused, with the place of the error. So is one with an invalid user: skipping it would delete it with the next
 * save.
 */
import { defined } from '../../protocol/defined.ts';
import type { IamUser, UserFingerprint, UserPush } from '../../protocol/records/index.ts';
import { JsonField } from './json-fields.ts';
import type { Rules } from './rules.ts';
import type { IamSecrets, IamState } from './state.ts';
import { checkState } from './state-check.ts';
import { type PasswordVerifier, type UserEntry, Users } from './users.ts';

const VERSION = 3;
const SALT_LENGTH = 16;
const VALUE_LENGTH = { min: 16, max: 64 };
const BASE64 = /^[A-Za-z0-9+/]*={0,2}$/;

const settings = [
  'OpenPairingSct',
  'LocalOpenPairing',
  'PasswordOpenPairing',
  'PasswordInvitePairing',
  'LocalInitialPairing',
  'OpenPairingRole',
  'InitialPairingUsername',
  'FriendlyName',
  'Users',
];
const userFields = ['Username', 'DisplayName', 'ServerConnectToken', 'Role', 'Push', 'NotificationCategories', 'OauthSubject'];

/** Members that differ between versions. */
const versions: Readonly<Record<number, { readonly settings: readonly string[]; readonly user: readonly string[] }>> = {
  1: { settings: ['OpenPairingPassword'], user: ['Fingerprint', 'Password'] },
  2: { settings: ['OpenPairingPassword'], user: ['Fingerprints', 'Password'] },
  3: { settings: ['OpenPairingPasswordSealed'], user: ['Fingerprints', 'PasswordVerifier'] },
};

/** A state ready for `JSON.stringify`. */
export interface StateDocument {
  readonly Version: 3;
  readonly [name: string]: unknown;
}

/** Rules that a state is checked against, and the secrets that convert its clear passwords. */
export interface ReadStateOptions {
  readonly rules: Rules;
  readonly notificationCategories: readonly string[];
  readonly secrets: Pick<IamSecrets, 'makeVerifier' | 'seal'>;
}

/**
 * @param document a parsed JSON value, which is not modified.
 * @throws LocalError PARSE or INVALID_ARGUMENT with the place of the error
 */
export async function readState(document: unknown, { rules, notificationCategories, secrets }: ReadStateOptions): Promise<IamState> {
  const root = new JsonField(document);
  const versionField = root.required('Version');
  const version = versions[versionField.integer];
  if (version === undefined) return versionField.reject(`is ${versionField.integer}, and only versions 1 to ${VERSION} can be read`);
  root.only(['Version', ...settings, ...version.settings]);
  const fields = root.required('Users').array.map((field) => field.only([...userFields, ...version.user]));
  const entries = fields.map((field) => defined({ user: readUser(field), verifier: readVerifier(field) }));
  const state = { ...readSettings(root), users: tableOf(entries, fields) };
  // Costly derivations come last, so that a refused file causes none.
  checkState(state, rules, new Set(notificationCategories));
  const clear = readClearPasswords(root, fields, rules);
  const users = await withVerifiers(state.users, clear.users, secrets);
  const sealed = clear.openPairing === undefined ? undefined : await secrets.seal(clear.openPairing);
  return { ...state, ...defined({ openPairingPasswordSealed: sealed }), users };
}

/** Returns the document that `readState` accepts. */
export function stateDocument(state: IamState): StateDocument {
  return {
    Version: VERSION,
    OpenPairingPasswordSealed: state.openPairingPasswordSealed,
    OpenPairingSct: state.openPairingSct,
    LocalOpenPairing: state.localOpenPairing,
    PasswordOpenPairing: state.passwordOpenPairing,
    PasswordInvitePairing: state.passwordInvitePairing,
    LocalInitialPairing: state.localInitialPairing,
    OpenPairingRole: state.openPairingRole,
    InitialPairingUsername: state.initialPairingUsername,
    FriendlyName: state.friendlyName,
    Users: Array.from(state.users.entries, userDocument),
  };
}

function userDocument({ user, verifier }: UserEntry): unknown {
  return {
    Username: user.username,
    DisplayName: user.displayName,
    Fingerprints: user.fingerprints.map(({ fingerprint, name, added }) => ({ Fingerprint: fingerprint, Name: name, Added: added })),
    ServerConnectToken: user.sct,
    PasswordVerifier:
      verifier === undefined ? undefined : { Kdf: verifier.kdf, Salt: toBase64(verifier.salt), Value: toBase64(verifier.value) },
    Role: user.role,
    Push: user.push === undefined ? undefined : { Token: user.push.token, ProjectId: user.push.projectId },
    NotificationCategories: user.notificationCategories,
    OauthSubject: user.oauthSubject,
  };
}

function readSettings(root: JsonField): Omit<IamState, 'users'> {
  const flag = (name: string) => root.optional(name)?.boolean ?? false;
  return defined({
    localOpenPairing: flag('LocalOpenPairing'),
    passwordOpenPairing: flag('PasswordOpenPairing'),
    passwordInvitePairing: flag('PasswordInvitePairing'),
    localInitialPairing: flag('LocalInitialPairing'),
    openPairingPasswordSealed: root.optional('OpenPairingPasswordSealed')?.text,
    openPairingSct: root.optional('OpenPairingSct')?.text,
    openPairingRole: root.optional('OpenPairingRole')?.text,
    initialPairingUsername: root.optional('InitialPairingUsername')?.text,
    friendlyName: root.optional('FriendlyName')?.text,
  });
}

function readUser(field: JsonField): IamUser {
  return defined({
    username: field.required('Username').text,
    displayName: field.optional('DisplayName')?.text,
    role: field.optional('Role')?.text,
    fingerprints: readFingerprints(field),
    sct: field.optional('ServerConnectToken')?.text,
    push: readPush(field.optional('Push')),
    notificationCategories: field.optional('NotificationCategories')?.texts ?? [],
    oauthSubject: field.optional('OauthSubject')?.text,
  });
}

function readFingerprints(field: JsonField): UserFingerprint[] {
  const only = field.optional('Fingerprint')?.text;
  if (only !== undefined) return [{ fingerprint: only }];
  return (field.optional('Fingerprints')?.array ?? []).map((each) => {
    each.only(['Fingerprint', 'Name', 'Added']);
    const added = each.optional('Added');
    if (added !== undefined && !/^\d{4}-\d\d-\d\d$/.test(added.text)) added.reject('a day is YYYY-MM-DD');
    return defined({ fingerprint: each.required('Fingerprint').text, name: each.optional('Name')?.text, added: added?.text });
  });
}

function readPush(field: JsonField | undefined): UserPush | undefined {
  field?.only(['Token', 'ProjectId']);
  if (field === undefined) return undefined;
  return defined({ token: field.optional('Token')?.text, projectId: field.optional('ProjectId')?.text });
}

function readVerifier(user: JsonField): PasswordVerifier | undefined {
  const field = user.optional('PasswordVerifier')?.only(['Kdf', 'Salt', 'Value']);
  if (field === undefined) return undefined;
  const kdf = field.required('Kdf');
  if (kdf.integer !== 1) return kdf.reject('must be 1');
  return {
    kdf: 1,
    salt: readBytes(field.required('Salt'), SALT_LENGTH, SALT_LENGTH),
    value: readBytes(field.required('Value'), VALUE_LENGTH.min, VALUE_LENGTH.max),
  };
}

function readBytes(field: JsonField, min: number, max: number): Uint8Array {
  const text = field.text;
  if (!BASE64.test(text) || text.length % 4 !== 0) return field.reject('must be base64');
  const bytes = new Uint8Array(Buffer.from(text, 'base64'));
  return bytes.length < min || bytes.length > max ? field.reject(`must have ${min === max ? min : `${min} to ${max}`} bytes`) : bytes;
}

/** Builds the table of users. A conflict between two of them is reported at the place of the second. */
function tableOf(entries: readonly UserEntry[], fields: readonly JsonField[]): Users {
  const [names, fingerprints] = [new Set<string>(), new Set<string>()];
  entries.forEach(({ user }, index) => {
    if (names.has(user.username)) fields[index]?.reject('an earlier user has the same name');
    names.add(user.username);
    for (const { fingerprint } of user.fingerprints) {
      if (fingerprints.has(fingerprint)) fields[index]?.reject('a fingerprint is listed twice');
      fingerprints.add(fingerprint);
    }
  });
  return Users.of(entries);
}

/** Parses the clear passwords of versions 1 and 2. */
function readClearPasswords(
  root: JsonField,
  users: readonly JsonField[],
  rules: Rules,
): { openPairing: string | undefined; users: Map<string, string> } {
  const read = (field: JsonField | undefined) => {
    field?.check(() => rules.password(field.text));
    return field?.text;
  };
  const found = new Map<string, string>();
  for (const user of users) {
    const password = read(user.optional('Password'));
    if (password !== undefined) found.set(user.required('Username').text, password);
  }
  return { openPairing: read(root.optional('OpenPairingPassword')), users: found };
}

async function withVerifiers(
  users: Users,
  passwords: ReadonlyMap<string, string>,
  { makeVerifier }: Pick<IamSecrets, 'makeVerifier'>,
): Promise<Users> {
  const verifiers = new Map<string, PasswordVerifier>();
  for (const [username, password] of passwords) verifiers.set(username, await makeVerifier(password));
  if (verifiers.size === 0) return users;
  return Users.of(Array.from(users.entries, (entry) => ({ ...entry, ...defined({ verifier: verifiers.get(entry.user.username) }) })));
}

function toBase64(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('base64');
}
