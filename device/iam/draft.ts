/**
 * A draft of the state, which the function passed to `Iam.update` changes. Each operation checks rules and limits
 * against the newest state and, when one is broken, throws without a change; nothing counts before the whole update is
 * saved.
 *
 * Errors, all LocalError: INVALID_ARGUMENT for a value outside its rule, NOT_FOUND for an unknown user, role or
 * fingerprint, IN_USE for a name or key that is taken, OUT_OF_MEMORY for a limit on users or fingerprints,
 * INVALID_STATE after the update.
 */
import { LocalError } from '../../protocol/errors/index.ts';
import type { IamUser, PairingMode, UserFingerprint, UserPush } from '../../protocol/records/index.ts';
import type { IamChange, StateSetting, UserSetting } from './changes.ts';
import type { Rules } from './rules.ts';
import type { IamSecrets, IamState, PairingFlags } from './state.ts';
import type { PasswordVerifier, UserEntry } from './users.ts';

/** The rules that changes are checked against. */
export interface DraftContext {
  readonly rules: Rules;
  readonly roles: ReadonlySet<string>;
  readonly notificationCategories: ReadonlySet<string>;
  readonly makeToken: IamSecrets['makeToken'];
  /** Today (YYYY-MM-DD), for the keys that are added; undefined where that is not known. */
  readonly today: string | undefined;
}

/** Settings whose values no listener receives. */
const SECRET: ReadonlySet<StateSetting> = new Set(['open-pairing-password', 'open-pairing-sct']);

const flagSettings: Readonly<Record<keyof PairingFlags, StateSetting>> = {
  localOpenPairing: 'local-open-pairing',
  passwordOpenPairing: 'password-open-pairing',
  passwordInvitePairing: 'password-invite-pairing',
  localInitialPairing: 'local-initial-pairing',
};

type TextField = 'openPairingPasswordSealed' | 'openPairingSct' | 'openPairingRole' | 'initialPairingUsername' | 'friendlyName';

export class IamDraft {
  readonly #context: DraftContext;
  readonly #changes: IamChange[] = [];
  #state: IamState;
  #open = true;

  constructor(state: IamState, context: DraftContext) {
    this.#state = state;
    this.#context = context;
  }

  /** The current state, including the changes of this update. */
  get state(): IamState {
    return this.#state;
  }

  /** @throws LocalError NOT_FOUND */
  user(username: string): IamUser {
    return this.#entry(username).user;
  }

  /**
   * Creates a user with a fresh server connect token, without password.
   * @param fields further fields of the record; none by default
   */
  createUser(username: string, fields: { role?: string; fingerprints?: readonly UserFingerprint[] } = {}): IamUser {
    const { rules, makeToken } = this.#context;
    rules.username(username);
    const { fingerprints = [], ...rest } = fields;
    for (const each of fingerprints) this.#checkFingerprint(each);
    rules.fingerprints(fingerprints.length);
    const user: IamUser = {
      username,
      fingerprints: fingerprints.map((each) => this.#dated(each)),
      sct: makeToken(),
      notificationCategories: [],
      ...rest,
    };
    const users = this.#state.users.adding({ user });
    rules.users(users.size);
    this.#replace({ ...this.#state, users }, { kind: 'user-created', username, user });
    return user;
  }

  deleteUser(username: string): void {
    const previous = this.user(username);
    this.#replace({ ...this.#state, users: this.#state.users.removing(username) }, { kind: 'user-deleted', username, previous });
  }

  /** Renames a user. The same name is IN_USE, like any name that is taken. The initial user stays the initial user. */
  setUserUsername(username: string, to: string): void {
    this.#context.rules.username(to);
    const entry = this.#entry(username);
    if (this.#state.users.user(to) !== undefined) throw new LocalError('IN_USE', `there is already a user "${to}"`);
    if (this.#state.initialPairingUsername === username) this.#state = { ...this.#state, initialPairingUsername: to };
    this.#replaceUser('username', entry, { ...entry.user, username: to });
  }

  /** Sets the display name; undefined clears it, here and below. */
  setUserDisplayName(username: string, displayName: string | undefined): void {
    if (displayName !== undefined) this.#context.rules.displayName(displayName);
    this.#setUser(username, 'display-name', 'displayName', displayName);
  }

  /** Sets the verifier of a password of allowed length: see `Iam.setUserPassword`. */
  setUserVerifier(username: string, verifier: PasswordVerifier | undefined): void {
    const { user } = this.#entry(username);
    const users = this.#state.users.replacing(username, verifier === undefined ? { user } : { user, verifier });
    this.#replace({ ...this.#state, users }, { kind: 'user-changed', username, setting: 'password', previous: user, user });
  }

  /** Sets a role of the configuration; undefined leaves the user without a role: it is denied everything. */
  setUserRole(username: string, role: string | undefined): void {
    this.user(username);
    if (role !== undefined) this.#checkRole(role);
    this.#setUser(username, 'role', 'role', role);
  }

  setUserSct(username: string, sct: string | undefined): void {
    if (sct !== undefined) this.#context.rules.sct(sct);
    this.#setUser(username, 'sct', 'sct', sct);
  }

  setUserOauthSubject(username: string, oauthSubject: string | undefined): void {
    if (oauthSubject !== undefined) this.#context.rules.oauthSubject(oauthSubject);
    this.#setUser(username, 'oauth-subject', 'oauthSubject', oauthSubject);
  }

  setUserPush(username: string, push: UserPush | undefined): void {
    if (push !== undefined) this.#context.rules.push(push);
    this.#setUser(username, 'push', 'push', push);
  }

  /** Replaces the whole set; each category must exist on the device. */
  setUserNotificationCategories(username: string, categories: readonly string[]): void {
    const unknown = categories.find((each) => !this.#context.notificationCategories.has(each));
    if (unknown !== undefined) throw new LocalError('INVALID_ARGUMENT', 'one or more categories invalid');
    this.#setUser(username, 'notification-categories', 'notificationCategories', [...new Set(categories)]);
  }

  /** Sets or removes the first fingerprint. */
  setUserFingerprint(username: string, fingerprint: string | undefined): void {
    const { fingerprints } = this.user(username);
    if (fingerprint !== undefined) this.#checkFree(fingerprint);
    this.#setFingerprints(username, [...(fingerprint === undefined ? [] : [this.#dated({ fingerprint })]), ...fingerprints.slice(1)]);
  }

  addUserFingerprint(username: string, fingerprint: string, name?: string): void {
    const added = { fingerprint, ...(name === undefined ? {} : { name }) };
    this.#checkFingerprint(added);
    const { fingerprints } = this.user(username);
    this.#checkFree(fingerprint);
    this.#context.rules.fingerprints(fingerprints.length + 1);
    this.#setFingerprints(username, [...fingerprints, this.#dated(added)]);
  }

  removeUserFingerprint(username: string, fingerprint: string): void {
    const { fingerprints } = this.user(username);
    const others = fingerprints.filter((each) => each.fingerprint !== fingerprint);
    if (others.length === fingerprints.length) throw new LocalError('NOT_FOUND', `user "${username}" has no such fingerprint`);
    this.#setFingerprints(username, others);
  }

  setFlag(flag: keyof PairingFlags, on: boolean): void {
    this.#replace({ ...this.#state, [flag]: on }, { kind: 'settings-changed', setting: flagSettings[flag], value: on });
  }

  /** Sets the sealed password: see `Iam.setOpenPairingPassword`. */
  setOpenPairingPasswordSealed(sealed: string | undefined): void {
    this.#setText('open-pairing-password', 'openPairingPasswordSealed', sealed);
  }

  setOpenPairingSct(sct: string | undefined): void {
    if (sct !== undefined) this.#context.rules.sct(sct);
    this.#setText('open-pairing-sct', 'openPairingSct', sct);
  }

  setOpenPairingRole(role: string | undefined): void {
    if (role !== undefined) this.#checkRole(role);
    this.#setText('open-pairing-role', 'openPairingRole', role);
  }

  /** Sets the initial user, which need not exist yet. */
  setInitialPairingUsername(username: string | undefined): void {
    if (username !== undefined) this.#context.rules.username(username);
    this.#setText('initial-pairing-username', 'initialPairingUsername', username);
  }

  setFriendlyName(name: string | undefined): void {
    if (name !== undefined) this.#context.rules.friendlyName(name);
    this.#setText('friendly-name', 'friendlyName', name);
  }

  /** Reports a pairing to listeners, after the user has its key. */
  notePairing(username: string, mode: PairingMode, fingerprint: string): void {
    this.#changes.push({ kind: 'user-paired', username, mode, fingerprint });
  }

  /** Ends the draft: returns the new state and what changed. Nothing can be changed afterwards. */
  finish(): { readonly state: IamState; readonly changes: readonly IamChange[] } {
    this.#open = false;
    return { state: this.#state, changes: this.#changes };
  }

  #entry(username: string): UserEntry {
    const entry = this.#state.users.entry(username);
    if (entry === undefined) throw new LocalError('NOT_FOUND', `there is no user "${username}"`);
    return entry;
  }

  #setUser<Field extends keyof IamUser>(username: string, setting: UserSetting, field: Field, value: IamUser[Field] | undefined): void {
    const entry = this.#entry(username);
    const { [field]: _, ...others } = entry.user;
    this.#replaceUser(setting, entry, (value === undefined ? others : { ...others, [field]: value }) as IamUser);
  }

  #setFingerprints(username: string, fingerprints: readonly UserFingerprint[]): void {
    this.#setUser(username, 'fingerprint', 'fingerprints', fingerprints);
  }

  #replaceUser(setting: UserSetting, entry: UserEntry, user: IamUser): void {
    const previous = entry.user;
    const users = this.#state.users.replacing(previous.username, { ...entry, user });
    this.#replace({ ...this.#state, users }, { kind: 'user-changed', username: user.username, setting, previous, user });
  }

  #setText(setting: StateSetting, field: TextField, value: string | undefined): void {
    const { [field]: _, ...others } = this.#state;
    const shown = value === undefined || SECRET.has(setting) ? {} : { value };
    this.#replace(value === undefined ? others : { ...others, [field]: value }, { kind: 'settings-changed', setting, ...shown });
  }

  #replace(state: IamState, change: IamChange): void {
    if (!this.#open) throw new LocalError('INVALID_STATE', 'the update that this draft belongs to has ended');
    this.#state = state;
    this.#changes.push(change);
  }

  #dated(added: UserFingerprint): UserFingerprint {
    const { today } = this.#context;
    return today === undefined ? added : { ...added, added: today };
  }

  #checkFingerprint({ fingerprint, name }: UserFingerprint): void {
    this.#context.rules.fingerprint(fingerprint);
    if (name !== undefined) this.#context.rules.fingerprintName(name);
  }

  #checkFree(fingerprint: string): void {
    this.#context.rules.fingerprint(fingerprint);
    const owner = this.#state.users.byFingerprint(fingerprint);
    if (owner !== undefined) throw new LocalError('IN_USE', `the fingerprint belongs to user "${owner.username}"`);
  }

  #checkRole(role: string): void {
    if (!this.#context.roles.has(role)) throw new LocalError('NOT_FOUND', `there is no role "${role}"`);
  }
}
