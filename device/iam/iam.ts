/**
 * Access control of a device: its users, their permissions, and how clients become users. A model without IO.
 *
 * The state is an immutable value. A change is a function over a draft of the newest state. Changes run one after the
 * other; the new state is saved, and only then published, reported to listeners and acknowledged. Changes that wait for
 * a save share the next one. When a save fails, its changes are dropped.
 *
 * Decisions use the published state and need no promise. The parts are in other files of this folder: policies and
 * their evaluation, rules and limits, users, draft, pairing.
 */

import { aLog, type Log, silentLog } from '../../platform/environment.ts';
import { callback, check, checkOptions, type Kind, object, plainObject, texts } from '../../protocol/arguments.ts';
import { asSvcError, LocalError } from '../../protocol/errors/index.ts';
import type { IamUser, PairingMode } from '../../protocol/records/index.ts';
import { Emitter } from '../../runtime/emitter.ts';
import type { KeptDocument } from '../kept-document.ts';
import { type Caller, type Demand, requestAttributes, resolveCaller } from './caller.ts';
import type { ChangeAuthor, IamChange, IamChangeListener, IamRecorder } from './changes.ts';
import { checkConfiguration } from './configuration.ts';
import { type DraftContext, IamDraft } from './draft.ts';
import { type Decision, Evaluator } from './evaluate.ts';
import { dayOf } from './key-use.ts';
import { availablePairingModes, pairLocalInitial, pairLocalOpen, pairPasswordInvite, pairPasswordOpen, requirePairing } from './pairing.ts';
import type { Attributes, IamConfiguration } from './policy.ts';
import { defaultIamLimits, type IamLimits, Rules } from './rules.ts';
import type { IamSecrets, IamState } from './state.ts';
import { checkState } from './state-check.ts';
import { type StateDocument, stateDocument } from './state-document.ts';
import type { PasswordVerifier } from './users.ts';

export interface IamOptions {
  readonly configuration: IamConfiguration;
  readonly state: IamState;
  readonly secrets: IamSecrets;
  /** Default limits for those left out. */
  readonly limits?: Partial<IamLimits>;
  /** Categories of notifications that users can choose from; not part of the state. */
  readonly notificationCategories?: readonly string[];
  /**
   * Makes the new state durable: a change counts when it resolves, and does not when it rejects. Default: the state is
   * only in memory.
   */
  readonly save?: (document: StateDocument) => Promise<void>;
  /** Like `save`, for a new configuration. */
  readonly saveConfiguration?: (configuration: IamConfiguration) => Promise<void>;
  /** Stores the count of password attempts. Without it, a restart resets the count. */
  readonly passwordThrottle?: KeptDocument;
  /** Unix ms: the days on which keys of users were added. Default: they are not stored. */
  readonly now?: () => number;
  readonly log?: Log;
}

/** A password as it is stored: that of open pairing in cleartext, or a user's verifier. */
export type StoredPassword = { readonly kdf: 0; readonly password: string } | PasswordVerifier;

/** A queued change. */
interface QueuedChange {
  readonly change: (draft: IamDraft) => unknown;
  readonly by: Caller | undefined;
  readonly demand: Demand | undefined;
  readonly resolve: (result: unknown) => void;
  readonly reject: (error: unknown) => void;
}

const KINDS: Record<keyof IamOptions, Kind> = {
  configuration: object,
  state: object,
  secrets: object,
  limits: plainObject,
  notificationCategories: texts,
  save: callback,
  saveConfiguration: callback,
  now: callback,
  passwordThrottle: object,
  log: aLog,
};

export class Iam {
  /** For the device: where it stores the count of password attempts. */
  readonly passwordThrottle: KeptDocument | undefined;
  readonly #secrets: IamSecrets;
  readonly #save: (document: StateDocument) => Promise<void>;
  readonly #saveConfiguration: (configuration: IamConfiguration) => Promise<void>;
  readonly #events: Emitter<{ change: IamChange }>;
  readonly #recorders = new Set<IamRecorder>();
  readonly #log: Log;
  readonly #now: (() => number) | undefined;
  #configuration: IamConfiguration;
  #evaluator: Evaluator;
  #state: IamState;
  /** The state that is being saved. */
  #pending: IamState | null = null;
  #rules: Rules;
  #categories: ReadonlySet<string>;
  #waiting: QueuedChange[] = [];
  /** Settles when no change waits any longer. */
  #work: Promise<void> | null = null;
  /** Settles when no password is being derived or sealed. */
  #derived: Promise<unknown> = Promise.resolve();
  /** Settles when no configuration is being saved. */
  #configuring: Promise<void> = Promise.resolve();

  /**
   * @throws LocalError INVALID_ARGUMENT when the configuration is invalid or the state breaks a limit: the message says
   *   where
   */
  constructor(options: IamOptions) {
    checkOptions('access control', options, KINDS, ['configuration', 'state', 'secrets']);
    checkConfiguration(options.configuration);
    this.passwordThrottle = options.passwordThrottle;
    this.#secrets = options.secrets;
    this.#save = options.save ?? (async () => {});
    this.#saveConfiguration = options.saveConfiguration ?? (async () => {});
    this.#log = options.log ?? silentLog;
    this.#now = options.now;
    this.#events = new Emitter(this.#log);
    this.#configuration = options.configuration;
    this.#evaluator = new Evaluator(options.configuration);
    this.#rules = new Rules({ ...defaultIamLimits, ...options.limits });
    this.#categories = new Set(options.notificationCategories);
    this.#state = options.state;
    checkState(this.#state, this.#rules, this.#categories);
  }

  // Decisions

  /** Whether the caller may perform the action: by its user's role, or by the UnpairedRole. Never throws. */
  check(caller: Caller, action: string, attributes: Attributes = {}): boolean {
    return this.#allows(this.#state, caller, { action, attributes });
  }

  /** Returns the verdict of `check`, with the statement that decided, or why there is none. */
  explain(caller: Caller, action: string, attributes: Attributes = {}): Decision {
    const user = this.resolveCaller(caller);
    return this.#evaluator.explain(this.#roleOf(user), action, requestAttributes(caller, user, attributes));
  }

  /** Whether a role lets its users create users and set their roles, over any connection. */
  administers(role: string | undefined): boolean {
    const stranger = { fingerprint: '', isLocal: false };
    const lookup = requestAttributes(stranger, undefined, { 'IAM:Username': '' });
    return ['IAM:CreateUser', 'IAM:SetUserRole'].every((action) => this.#evaluator.allows(role, action, lookup));
  }

  /**
   * Returns the user that the caller acts as: by key, else by password authentication, else bound by the application.
   */
  resolveCaller(caller: Caller): IamUser | undefined {
    return resolveCaller(this.#state.users, caller);
  }

  // Queries

  /** The published state; the value never changes. */
  get state(): IamState {
    return this.#state;
  }

  get configuration(): IamConfiguration {
    return this.#configuration;
  }

  get limits(): IamLimits {
    return this.#rules.limits;
  }

  /** The checks with the current limits, for a value checked before policies are checked. */
  get rules(): Rules {
    return this.#rules;
  }

  get notificationCategories(): readonly string[] {
    return [...this.#categories];
  }

  user(username: string): IamUser | undefined {
    return this.#state.users.user(username);
  }

  /** Names of all users, in the order they were added. */
  get usernames(): readonly string[] {
    return this.#state.users.names;
  }

  get users(): readonly IamUser[] {
    return this.#state.users.all;
  }

  userByFingerprint(fingerprint: string): IamUser | undefined {
    return this.#state.users.byFingerprint(fingerprint);
  }

  hasPassword(username: string): boolean {
    return this.#state.users.hasVerifier(username);
  }

  /** Ids of all roles. */
  get roles(): readonly string[] {
    return this.#configuration.roles.map(({ id }) => id);
  }

  /** All tokens that the base station must accept: that of open pairing and the users'. */
  get serverConnectTokens(): readonly string[] {
    const tokens = [this.#state.openPairingSct, ...this.users.map(({ sct }) => sct)];
    return [...new Set(tokens.filter((token) => token !== undefined))];
  }

  /**
   * Returns the stored password of that name; '' is open pairing. undefined: no such user, or no
   * password.
   */
  async passwordOf(username: string): Promise<StoredPassword | undefined> {
    if (username !== '') return this.#state.users.entry(username)?.verifier;
    const password = await this.openPairingPassword();
    return password === undefined ? undefined : { kdf: 0, password };
  }

  /** Returns the password of open pairing in cleartext, for settings and the pairing string. */
  async openPairingPassword(): Promise<string | undefined> {
    const { openPairingPasswordSealed } = this.#state;
    return openPairingPasswordSealed === undefined ? undefined : this.#secrets.unseal(openPairingPasswordSealed);
  }

  // Changes

  /**
   * Changes the state: calls the function with a draft of the newest one, and resolves with its return value once
   * everything is saved. When it throws, nothing is changed.
   * @param change synchronous; several operations of one function are saved together or not at all
   * @param by the caller that requested it, passed to listeners; left out for the application itself
   * @param demand what policies must still allow `by` when its turn comes: earlier changes may have removed the
   *   permission
   * @throws what the function throws; LocalError FORBIDDEN when policies no longer allow it; FAILED when the save fails
   */
  update<T>(change: (draft: IamDraft) => T, by?: Caller, demand?: Demand): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      check('the change', change, callback);
      this.#waiting.push({ change, by, demand, resolve: resolve as (result: unknown) => void, reject });
      this.#work ??= this.#carryOut();
    });
  }

  /** Resolves when every change requested so far is saved or refused. */
  async settled(): Promise<void> {
    await this.#derived;
    await this.#work;
  }

  /**
   * Sets a user's password; undefined clears it; `by` and `demand` as for `update`.
   * @throws LocalError INVALID_ARGUMENT outside the limits, NOT_FOUND, FORBIDDEN
   */
  async setUserPassword(username: string, password: string | undefined, by?: Caller, demand?: Demand): Promise<void> {
    if (password !== undefined) this.#rules.password(password);
    // Avoids a costly derivation for a user that does not exist.
    if (this.user(username) === undefined && this.#work === null) throw new LocalError('NOT_FOUND', `there is no user "${username}"`);
    const verifier = await this.#inTurn(async () => (password === undefined ? undefined : this.#secrets.makeVerifier(password)));
    await this.update((draft) => draft.setUserVerifier(username, verifier), by, demand);
  }

  /** Sets the password of open pairing; undefined clears it. @throws LocalError INVALID_ARGUMENT outside the limits */
  async setOpenPairingPassword(password: string | undefined, by?: Caller): Promise<void> {
    const opaque = password === undefined ? undefined : this.#rules.password(password);
    const sealed = await this.#inTurn(async () => (opaque === undefined ? undefined : this.#secrets.seal(opaque)));
    await this.update((draft) => draft.setOpenPairingPasswordSealed(sealed), by);
  }

  /**
   * Replaces policies and roles. Users keep a role that no longer exists, and are then denied everything.
   * @throws LocalError INVALID_ARGUMENT; the error of the save
   */
  async setConfiguration(configuration: IamConfiguration, by?: Caller): Promise<void> {
    checkConfiguration(configuration);
    const evaluator = new Evaluator(configuration);
    const replaced = this.#configuring.then(async () => {
      await this.#saveConfiguration(configuration);
      this.#configuration = configuration;
      this.#evaluator = evaluator;
      await this.#publish([{ kind: 'configuration-changed', ...this.#author(this.#state, by) }]);
    });
    this.#configuring = replaced.catch(() => {});
    await replaced;
  }

  /**
   * Sets limits; those left out keep their values.
   * @throws LocalError INVALID_ARGUMENT when the current state breaks one: it could not be loaded again
   */
  setLimits(limits: Partial<IamLimits>): void {
    check('the limits', limits, plainObject);
    const rules = new Rules({ ...this.limits, ...limits });
    this.#checkStates(rules, this.#categories);
    this.#rules = rules;
  }

  /**
   * @throws LocalError INVALID_ARGUMENT when a user has a category that is not among them: remove it from the user
   *   first
   */
  setNotificationCategories(categories: readonly string[]): void {
    check('the notification categories', categories, texts);
    const known = new Set(categories);
    this.#checkStates(this.#rules, known);
    this.#categories = known;
  }

  /** Calls `listener` for every change after it is saved. Returns the function that removes the listener. */
  onChange(listener: IamChangeListener): () => void {
    check('the listener', listener, callback);
    return this.#events.on('change', listener);
  }

  /**
   * Passes every change to a recorder after it is saved and before it is acknowledged: `update` resolves when all
   * recorders have. A recorder's rejection is logged and stops nothing, since the change is already made. Returns the
   * function that removes it.
   */
  record(recorder: IamRecorder): () => void {
    check('the recorder', recorder, callback);
    const own: IamRecorder = (changes) => recorder(changes);
    this.#recorders.add(own);
    return () => this.#recorders.delete(own);
  }

  // Pairing

  /** The modes by which the caller can pair now, in the order of the record. */
  availablePairingModes(caller: Caller): readonly PairingMode[] {
    return availablePairingModes(this.#state, caller, this.#mayPair);
  }

  /**
   * Checks what an endpoint checks before it decodes a body.
   * @throws LocalError NOT_FOUND, FORBIDDEN, UNAUTHORIZED, in this order
   */
  requirePairing(mode: PairingMode, caller: Caller): void {
    requirePairing(this.#state, mode, caller, this.#mayPair);
  }

  /**
   * Adds a user with the role of open pairing; again with the same name and key it changes nothing.
   * @throws LocalError as requirePairing; INVALID_ARGUMENT; IN_USE when name or key belongs to another user;
   *   OUT_OF_MEMORY from three quarters of `maxUsers` on
   */
  pairLocalOpen(caller: Caller, username: string, fingerprintName?: string): Promise<IamUser> {
    return this.#pair('LocalOpen', caller, (draft) => pairLocalOpen(draft, this.#rules, caller, { username, name: fingerprintName }));
  }

  /** @throws LocalError as pairLocalOpen, but OUT_OF_MEMORY at `maxUsers` */
  pairPasswordOpen(caller: Caller, username: string, fingerprintName?: string): Promise<IamUser> {
    return this.#pair('PasswordOpen', caller, (draft) => pairPasswordOpen(draft, caller, { username, name: fingerprintName }));
  }

  /** @throws LocalError as requirePairing; IN_USE when the initial user is paired or the key belongs to another user */
  pairLocalInitial(caller: Caller, fingerprintName?: string): Promise<IamUser> {
    return this.#pair('LocalInitial', caller, (draft) => pairLocalInitial(draft, caller, fingerprintName));
  }

  /**
   * @throws LocalError as requirePairing; IN_USE when the key belongs to another user; INVALID_STATE when the user was
   *   deleted
   */
  pairPasswordInvite(caller: Caller, fingerprintName?: string): Promise<IamUser> {
    return this.#pair('PasswordInvite', caller, (draft) => pairPasswordInvite(draft, caller, fingerprintName));
  }

  #pair(mode: PairingMode, caller: Caller, pair: (draft: IamDraft) => IamUser): Promise<IamUser> {
    return this.update((draft) => {
      requirePairing(draft.state, mode, caller, (who, action) => this.#allows(draft.state, who, { action }));
      return pair(draft);
    }, caller);
  }

  #mayPair = (caller: Caller, action: string): boolean => this.#allows(this.#state, caller, { action });

  #allows({ users }: IamState, caller: Caller, { action, attributes = {} }: Demand): boolean {
    const user = resolveCaller(users, caller);
    return this.#evaluator.allows(this.#roleOf(user), action, requestAttributes(caller, user, attributes));
  }

  #require(state: IamState, by: Caller | undefined, demand: Demand | undefined): void {
    if (by === undefined || demand === undefined || this.#allows(state, by, demand)) return;
    throw new LocalError('FORBIDDEN', 'Access denied');
  }

  /**
   * Runs one derivation after the other: of two passwords for one name the later counts, and only one at a time uses
   * scrypt's memory.
   */
  #inTurn<T>(derive: () => Promise<T>): Promise<T> {
    const turn = this.#derived.then(derive);
    this.#derived = turn.catch(() => {});
    return turn;
  }

  #roleOf(user: IamUser | undefined): string | undefined {
    return user === undefined ? this.#configuration.unpairedRole : user.role;
  }

  /** Checks the published state, and the one being saved. */
  #checkStates(rules: Rules, notificationCategories: ReadonlySet<string>): void {
    for (const state of [this.#state, this.#pending ?? this.#state]) checkState(state, rules, notificationCategories);
  }

  /** Carries out queued changes until none is left. */
  async #carryOut(): Promise<void> {
    while (this.#waiting.length > 0) {
      const batch = this.#waiting;
      this.#waiting = [];
      await this.#carryOutTogether(batch);
    }
    this.#work = null;
  }

  /** Saves all of them at once. No result is reported before the save, since each depends on those before it. */
  async #carryOutTogether(batch: readonly QueuedChange[]): Promise<void> {
    let state = this.#state;
    const changes: IamChange[] = [];
    const context = this.#context();
    const settle = batch.map(({ change, by, demand, resolve, reject }) => {
      const draft = new IamDraft(state, context);
      const author = this.#author(state, by);
      try {
        this.#require(state, by, demand);
        const result = change(draft);
        const finished = draft.finish();
        state = finished.state;
        changes.push(...finished.changes.map((each) => ({ ...each, ...author })));
        return () => resolve(result);
      } catch (error) {
        draft.finish();
        return () => reject(error);
      }
    });
    try {
      this.#pending = state;
      if (state !== this.#state) await this.#save(stateDocument(state));
      this.#state = state;
    } catch (error) {
      // Its own code: an error of the application's `save` says nothing about the request.
      const { message } = asSvcError(error);
      for (const { reject } of batch) reject(new LocalError('FAILED', `the change could not be saved: ${message}`, { cause: error }));
      return;
    } finally {
      this.#pending = null;
    }
    await this.#publish(changes);
    for (const each of settle) each();
  }

  /** Reports to listeners, and waits for recorders. Never throws. */
  async #publish(changes: readonly IamChange[]): Promise<void> {
    for (const change of changes) this.#events.emit('change', change);
    if (changes.length === 0) return;
    const recorded = Array.from(this.#recorders, async (recorder) => recorder(changes));
    for (const result of await Promise.allSettled(recorded)) {
      if (result.status === 'rejected') this.#log.error('a change could not be recorded', { error: String(result.reason) });
    }
  }

  #author({ users }: IamState, by: Caller | undefined): { readonly by?: ChangeAuthor } {
    if (by === undefined) return {};
    const username = resolveCaller(users, by)?.username;
    return { by: username === undefined ? by : { ...by, username } };
  }

  #context(): DraftContext {
    return {
      rules: this.#rules,
      roles: new Set(this.roles),
      notificationCategories: this.#categories,
      makeToken: this.#secrets.makeToken,
      today: this.#now === undefined ? undefined : dayOf(this.#now()),
    };
  }
}
