/** Rules for names, texts and counts (docs/iam.md). Lengths are bytes of UTF-8; bounds are inclusive. */
import { amount, text as anyText, check, checkOptions, type Kind } from '../../protocol/arguments.ts';
import { utf8Length } from '../../protocol/cbor/index.ts';
import { LocalError } from '../../protocol/errors/index.ts';
import { isFingerprint } from '../../protocol/identity/index.ts';
import { opaqueString } from '../../protocol/password/opaque-string.ts';
import type { UserPush } from '../../protocol/records/index.ts';

/** Limits. All can be set while the device runs (`Iam.setLimits`). */
export interface IamLimits {
  readonly maxUsername: number;
  readonly maxDisplayName: number;
  readonly minPassword: number;
  readonly maxPassword: number;
  readonly maxPushToken: number;
  readonly maxPushProjectId: number;
  readonly maxOauthSubject: number;
  readonly maxSct: number;
  readonly maxFriendlyName: number;
  readonly maxFingerprintName: number;
  /** For every new user, created or paired. A state with more users can be loaded. */
  readonly maxUsers: number;
  readonly maxFingerprintsPerUser: number;
}

/** A decoder of the user record accepts up to 1024 fingerprints. */
export const defaultIamLimits: IamLimits = {
  maxUsername: 64,
  maxDisplayName: 64,
  minPassword: 4,
  maxPassword: 64,
  maxPushToken: 1023,
  maxPushProjectId: 255,
  maxOauthSubject: 64,
  maxSct: 64,
  maxFriendlyName: 64,
  maxFingerprintName: 64,
  maxUsers: 1_000,
  maxFingerprintsPerUser: 1024,
};

const KINDS = Object.fromEntries(Object.keys(defaultIamLimits).map((name) => [name, amount])) as Record<keyof IamLimits, Kind>;

/** Share of `maxUsers` up to which local clients may become users uninvited. */
const LOCAL_OPEN_SHARE = 3 / 4;
const USERNAME = /^[a-z0-9_.-]+$/;

/** The checks: each throws LocalError INVALID_ARGUMENT that says what is wrong; those of counts throw OUT_OF_MEMORY. */
export class Rules {
  readonly limits: IamLimits;

  constructor(limits: IamLimits) {
    checkOptions('access control', limits, KINDS);
    this.limits = limits;
  }

  /**
   * Checks a username. Never empty: the empty name is that of open pairing in a password authentication. Never `.` or
   * `..`: no CoAP path can have them as segments (RFC 7252 §5.10.1), so no client could read or delete such a user.
   */
  username(text: string): void {
    this.#length('username', text, 1, this.limits.maxUsername);
    if (!USERNAME.test(text)) throw invalid('a username has only the characters a-z, 0-9, "_", "." and "-"');
    if (text === '.' || text === '..') throw invalid('a username is not "." or ".."');
  }

  displayName(text: string): void {
    this.#length('display name', text, 0, this.limits.maxDisplayName);
  }

  /** Returns the form of a password that counts, which has the limits. */
  password(text: string): string {
    const password = opaqueString('the password', text);
    this.#length('password', password, this.limits.minPassword, this.limits.maxPassword);
    return password;
  }

  sct(text: string): void {
    this.#length('server connect token', text, 1, this.limits.maxSct);
  }

  oauthSubject(text: string): void {
    this.#length('OAuth subject', text, 0, this.limits.maxOauthSubject);
  }

  friendlyName(text: string): void {
    this.#length('friendly name', text, 0, this.limits.maxFriendlyName);
  }

  fingerprintName(text: string): void {
    this.#length('name of a fingerprint', text, 0, this.limits.maxFingerprintName);
  }

  push({ token, projectId }: UserPush): void {
    if (token !== undefined) this.#length('push token', token, 0, this.limits.maxPushToken);
    if (projectId !== undefined) this.#length('push project id', projectId, 0, this.limits.maxPushProjectId);
  }

  fingerprint(text: string): void {
    if (!isFingerprint(text)) throw invalid('a fingerprint has 64 lower-case hex digits');
  }

  users(count: number): void {
    if (count > this.limits.maxUsers) throw new LocalError('OUT_OF_MEMORY', `the limit of ${this.limits.maxUsers} users is reached`);
  }

  /**
   * Checks the lower limit of local open pairing: it leaves room for the owner when strangers have taken all they can.
   */
  usersByLocalOpen(count: number): void {
    const { maxUsers } = this.limits;
    const most = Math.ceil(maxUsers * LOCAL_OPEN_SHARE);
    if (count > most)
      throw new LocalError('OUT_OF_MEMORY', `local open pairing is for ${most} of ${maxUsers} users, and that limit is reached`);
  }

  fingerprints(count: number): void {
    const { maxFingerprintsPerUser } = this.limits;
    if (count > maxFingerprintsPerUser) {
      throw new LocalError('OUT_OF_MEMORY', `the limit of ${maxFingerprintsPerUser} fingerprints of a user is reached`);
    }
  }

  #length(what: string, text: string, min: number, max: number): void {
    check(`the ${what}`, text, anyText);
    const length = utf8Length(text);
    if (length < min) throw invalid(min === 1 ? `the ${what} is empty` : `the ${what} is shorter than ${min} bytes`);
    if (length > max) throw invalid(`the ${what} is longer than ${max} bytes`);
  }
}

function invalid(what: string): LocalError {
  return new LocalError('INVALID_ARGUMENT', what);
}
