/**
 * The user record of `/iam/users/:username` and `/iam/me` (docs/iam.md): a map with `Username`, `DisplayName?`,
 * `Role?`, `Fingerprints` (each with `Name?`, `Added?`, `LastUsed?`), `Fingerprint?`, `Sct?`, `SctOmitted?`,
 * `Administers?`, `Push?`, `NotificationCategories`, `OauthSubject?`. It never contains the password.
 *
 * `Fingerprint` repeats the last of `Fingerprints`. It is written, and not read.
 */
import { text as anyText, bytesOf, checkOptions, flag, isText, type Kind, texts as manyTexts, options } from '../arguments.ts';
import {
  arrayField,
  type CborMap,
  type CborValue,
  decode,
  encode,
  map,
  optionalArrayField,
  optionalBool,
  optionalMapField,
  optionalText,
  text,
  texts,
} from '../cbor/index.ts';
import { defined } from '../defined.ts';

/** Key of a client that is paired to the user. */
export interface UserFingerprint {
  /** Full hex. */
  readonly fingerprint: string;
  readonly name?: string;
  /** Day (YYYY-MM-DD, UTC, by the device's clock) on which it was paired or added; absent where that is not known. */
  readonly added?: string;
}

/** Destination of the user's push notifications. */
export interface UserPush {
  readonly token?: string;
  readonly projectId?: string;
}

/** Absent fields are not set. */
export interface IamUser {
  readonly username: string;
  readonly displayName?: string;
  readonly role?: string;
  readonly fingerprints: readonly UserFingerprint[];
  readonly sct?: string;
  readonly push?: UserPush;
  readonly notificationCategories: readonly string[];
  readonly oauthSubject?: string;
}

/** A key in the device's answers. */
export interface FingerprintRecord extends UserFingerprint {
  /** Day of the latest connection since the device was started; absent without one. */
  readonly lastUsed?: string;
}

/** A user in the device's answers. */
export interface UserRecord extends IamUser {
  readonly fingerprints: readonly FingerprintRecord[];
  /**
   * True when the base station has no room for the user's server connect token: its clients reach the device only
   * locally (PROTOCOL.md §7).
   */
  readonly sctOmitted?: true;
  /** Whether the user's role allows creating users and assigning roles. Absent where the device does not report it. */
  readonly administers?: boolean;
}

const FINGERPRINT = { min: 64, max: 64 };
const DAY = { min: 10, max: 10 };
/** Texts of 1,024 bytes or more are refused (docs/iam.md). */
const TEXT = { max: 1023 };
const MAX_FINGERPRINTS = 1024;
const MAX_CATEGORIES = 1024;

const KINDS: Record<keyof UserRecord, Kind> = {
  username: anyText,
  displayName: anyText,
  role: anyText,
  fingerprints: [(value) => Array.isArray(value) && value.every((each) => isText(each?.fingerprint)), 'an array of fingerprints'],
  sct: anyText,
  sctOmitted: flag,
  administers: flag,
  push: options('a push registration', { token: anyText, projectId: anyText }),
  notificationCategories: manyTexts,
  oauthSubject: anyText,
};

/** Body of the answer to `GET /iam/users/:username` and `/iam/me`. */
export function encodeUser(user: UserRecord): Uint8Array {
  checkOptions('the record of a user', user, KINDS, ['username', 'fingerprints', 'notificationCategories']);
  return encode(userMap(user));
}

/** @throws RemoteError PARSE */
export function decodeUser(payload: Uint8Array): UserRecord {
  const body = map(decode(bytesOf('the record of a user', payload)));
  const sctOmitted: true | undefined = optionalBool(body, 'SctOmitted') === true ? true : undefined;
  const push = optionalMapField(body, 'Push');
  return defined({
    username: text(body, 'Username', { min: 1, max: TEXT.max }),
    displayName: optionalText(body, 'DisplayName', TEXT),
    role: optionalText(body, 'Role', TEXT),
    fingerprints: readFingerprints(body),
    sct: optionalText(body, 'Sct', TEXT),
    sctOmitted: sctOmitted,
    administers: optionalBool(body, 'Administers'),
    push: push === undefined ? undefined : readPush(push),
    notificationCategories: texts(optionalArrayField(body, 'NotificationCategories', MAX_CATEGORIES) ?? [], 'NotificationCategories', TEXT),
    oauthSubject: optionalText(body, 'OauthSubject', TEXT),
  });
}

/** Body of `PUT /iam/users/:username/push`. */
export function encodePush({ token, projectId }: Required<UserPush>): Uint8Array {
  return encode({ Token: token, ProjectId: projectId });
}

/** Both are required. @throws RemoteError PARSE */
export function decodePush(payload: Uint8Array): Required<UserPush> {
  const body = map(decode(payload));
  return { token: text(body, 'Token', TEXT), projectId: text(body, 'ProjectId', TEXT) };
}

function userMap(user: UserRecord): CborValue {
  return {
    Username: user.username,
    DisplayName: user.displayName,
    Role: user.role,
    Fingerprints: user.fingerprints.map(({ fingerprint, name, added, lastUsed }) => ({
      Fingerprint: fingerprint,
      Name: name,
      Added: added,
      LastUsed: lastUsed,
    })),
    Fingerprint: user.fingerprints.at(-1)?.fingerprint,
    Sct: user.sct,
    SctOmitted: user.sctOmitted,
    Administers: user.administers,
    Push: user.push === undefined ? undefined : { Token: user.push.token, ProjectId: user.push.projectId },
    NotificationCategories: user.notificationCategories,
    OauthSubject: user.oauthSubject,
  };
}

function readFingerprints(body: CborMap): FingerprintRecord[] {
  return arrayField(body, 'Fingerprints', MAX_FINGERPRINTS).map((entry, i) => {
    const from = map(entry, `Fingerprints[${i}]`);
    return defined({
      fingerprint: text(from, 'Fingerprint', FINGERPRINT),
      name: optionalText(from, 'Name', TEXT),
      added: optionalText(from, 'Added', DAY),
      lastUsed: optionalText(from, 'LastUsed', DAY),
    });
  });
}

function readPush(from: CborMap): UserPush {
  return defined({ token: optionalText(from, 'Token', TEXT), projectId: optionalText(from, 'ProjectId', TEXT) });
}
