/**
 * Access control of a device from the client's side, in the specification's form: pairing, users and their settings,
 * roles, settings of the device.
 *
 * Unless stated otherwise, each method is one request over an open connection. Besides its own codes each may fail with
 * BLOCKED_BY_DEVICE_CONFIGURATION (the role of this client does not allow it), INVALID_INPUT (a value the device does
 * not accept), IAM_NOT_SUPPORTED (the device has no such endpoint), FAILED (a limit of the device, or its disk), all of
 * them `IamError`; BAD_RESPONSE; INVALID_ARGUMENT (a wrong type); and the errors of any request: NOT_CONNECTED,
 * STOPPED, TIMEOUT.
 */
import {
  callback,
  check,
  checkOptions,
  flag,
  type Kind,
  oneOf,
  optional,
  orNull,
  text,
  texts,
  withMethods,
} from '../../protocol/arguments.ts';
import {
  type DeviceDetails,
  type DeviceSettings,
  decodeDeviceDetails,
  decodeNames,
  decodePushAnswer,
  decodeSettings,
  decodeUser,
  encodeFingerprintName,
  encodeFlag,
  encodeNames,
  encodePush,
  encodeText,
  type IamUser,
  type PairingMode,
  type PushAnswer,
  pairingModes,
  type SettingName,
  settingNames,
  type UserRecord,
} from '../../protocol/records/index.ts';
import { IamError, type Meanings } from './errors.ts';
import * as pairing from './pairing.ts';
import { fetch, type IamConnection, send } from './requests.ts';
import { createUser, type NewUser, setRole, setting, unknownUser, withKnownUser } from './user-requests.ts';

const renamed: Meanings = { ...unknownUser, 409: ['USERNAME_EXISTS', 'a user of that name exists already'] };
const keyTaken: Meanings = { ...unknownUser, 409: ['FINGERPRINT_IN_USE', 'the fingerprint belongs to a user already'] };
const notAttached: Meanings = { ...unknownUser, 503: ['NOT_ATTACHED', 'the device cannot reach its base station now'] };

const PAIRING: Record<keyof pairing.PairingOptions, Kind> = { fingerprintName: text };
const PAIR: Record<keyof pairing.PairOptions, Kind> = {
  ...PAIRING,
  mode: oneOf(pairingModes),
  pairing: [
    (value) => typeof value === 'string' || (typeof value === 'object' && value !== null),
    'a pairing string, or what decodePairing returns',
  ],
  username: text,
  password: text,
  ask: callback,
};
const NEW_USER: Record<keyof NewUser, Kind> = { password: text, role: text, displayName: text };

/** Access control of the device of a connection. */
export class IamUtil {
  readonly #connection: IamConnection;

  /** @throws LocalError INVALID_ARGUMENT */
  constructor(connection: IamConnection) {
    check('the connection', connection, withMethods('request', 'passwordAuthenticate', 'getClientFingerprint'));
    this.#connection = connection;
  }

  // Pairing

  /**
   * Open pairing on the local network: this client becomes a new user of that name. Repeating it with the same name
   * changes nothing.
   * @throws PAIRING_MODE_DISABLED; BLOCKED_BY_DEVICE_CONFIGURATION (also over a connection that is not local);
   *   USERNAME_EXISTS
   */
  async pairLocalOpen(username: string, options: pairing.PairingOptions = {}): Promise<void> {
    check('the user name', username, text);
    checkOptions('a pairing', options, PAIRING);
    return pairing.pairLocalOpen(this.#connection, username, options);
  }

  /**
   * Local initial pairing: the first client on the local network becomes the user prepared for it.
   * @throws PAIRING_MODE_DISABLED; BLOCKED_BY_DEVICE_CONFIGURATION; INITIAL_USER_ALREADY_PAIRED
   */
  async pairLocalInitial(options: pairing.PairingOptions = {}): Promise<void> {
    checkOptions('a pairing', options, PAIRING);
    return pairing.pairLocalInitial(this.#connection, options);
  }

  /**
   * Open pairing with the device's password, which also verifies the device: this client becomes a new user of that
   * name.
   * @throws AUTHENTICATION_ERROR; TOO_MANY_REQUESTS; PAIRING_MODE_DISABLED; BLOCKED_BY_DEVICE_CONFIGURATION;
   *   USERNAME_EXISTS
   */
  async pairPasswordOpen(username: string, password: string, options: pairing.PairingOptions = {}): Promise<void> {
    check('the user name', username, text);
    check('the password', password, text);
    checkOptions('a pairing', options, PAIRING);
    return pairing.pairPasswordOpen(this.#connection, username, password, options);
  }

  /**
   * Pairing by invitation: this client becomes the user created for it, which uses up the password.
   * @throws AUTHENTICATION_ERROR; TOO_MANY_REQUESTS; PAIRING_MODE_DISABLED; BLOCKED_BY_DEVICE_CONFIGURATION;
   *   FINGERPRINT_IN_USE
   */
  async pairPasswordInvite(username: string, password: string, options: pairing.PairingOptions = {}): Promise<void> {
    check('the user name', username, text);
    check('the password', password, text);
    checkOptions('a pairing', options, PAIRING);
    return pairing.pairPasswordInvite(this.#connection, username, password, options);
  }

  /** Pairs in a mode that the device offers and the options fit, see `PairOptions`. */
  async pair(options: pairing.PairOptions = {}): Promise<pairing.PairingResult> {
    checkOptions('a pairing', options, PAIR);
    return pairing.pair(this.#connection, options);
  }

  /** Returns the modes possible over this connection now. */
  async getAvailablePairingModes(): Promise<readonly PairingMode[]> {
    return (await this.getDeviceDetails()).modes;
  }

  getDeviceDetails(): Promise<DeviceDetails> {
    return this.#get(['pairing'], decodeDeviceDetails);
  }

  /** Whether this client is a user: by its key, by a password, or because the device's application bound it. */
  async isCurrentUserPaired(): Promise<boolean> {
    try {
      await this.getCurrentUser();
      return true;
    } catch (error) {
      if (error instanceof IamError && error.code === 'USER_DOES_NOT_EXIST') return false;
      throw error;
    }
  }

  // Users

  /** Returns the user that this client is. @throws USER_DOES_NOT_EXIST when it is none */
  getCurrentUser(): Promise<UserRecord> {
    return this.#get(['me'], decodeUser, pairing.notPaired);
  }

  /** @throws USER_DOES_NOT_EXIST */
  getUser(username: string): Promise<UserRecord> {
    return this.#get(['users', username], decodeUser, unknownUser);
  }

  /** Returns the names of all users. */
  listUsers(): Promise<string[]> {
    return this.#get(['users'], decodeNames);
  }

  /** Returns the ids of all roles. */
  listRoles(): Promise<string[]> {
    return this.#get(['roles'], decodeNames);
  }

  /**
   * Creates a user in up to four requests: the user, its role, its display name, its password. When one of these is
   * refused, another request deletes the user again; the error says so when that fails too.
   * @throws USERNAME_EXISTS; ROLE_DOES_NOT_EXIST
   */
  async createUser(username: string, user: NewUser = {}): Promise<IamUser> {
    check('the user name', username, text);
    checkOptions('a new user', user, NEW_USER);
    return createUser(this.#connection, username, user);
  }

  /**
   * Deletes a user: closes its connections to the device and invalidates its server connect token.
   * @throws USER_DOES_NOT_EXIST
   */
  deleteUser(username: string): Promise<void> {
    return send(this.#connection, { method: 'DELETE', path: ['users', username] }, unknownUser);
  }

  /** @throws USER_DOES_NOT_EXIST; USERNAME_EXISTS, also for the name it has */
  renameUser(username: string, newUsername: string): Promise<void> {
    return this.#setText(username, 'username', newUsername, renamed, text);
  }

  /** Sets the password of the user's invitation; null withdraws the invitation. @throws USER_DOES_NOT_EXIST */
  updateUserPassword(username: string, password: string | null): Promise<void> {
    return this.#setText(username, 'password', password);
  }

  /**
   * Sets the user's role: one request, and up to two more to find out which of the two does not exist.
   * @throws USER_DOES_NOT_EXIST; ROLE_DOES_NOT_EXIST
   */
  async updateUserRole(username: string, role: string): Promise<void> {
    check('the role', role, text);
    return setRole(this.#connection, username, role);
  }

  /** null clears it. @throws USER_DOES_NOT_EXIST */
  updateUserDisplayName(username: string, displayName: string | null): Promise<void> {
    return this.#setText(username, 'display-name', displayName);
  }

  /** Sets the token that admits the user's clients at the base station. @throws USER_DOES_NOT_EXIST */
  updateUserSct(username: string, sct: string): Promise<void> {
    return this.#setText(username, 'sct', sct, unknownUser, text);
  }

  /** null clears it. @throws USER_DOES_NOT_EXIST */
  updateUserOauthSubject(username: string, subject: string | null): Promise<void> {
    return this.#setText(username, 'oauth-subject', subject);
  }

  /**
   * Sets the first of the user's fingerprints; null removes it. For devices that support only one; with others use
   * `addUserFingerprint` and `removeUserFingerprint`.
   * @throws USER_DOES_NOT_EXIST; FINGERPRINT_IN_USE
   */
  updateUserFingerprint(username: string, fingerprint: string | null): Promise<void> {
    return this.#setText(username, 'fingerprint', fingerprint, keyTaken);
  }

  /**
   * Adds a fingerprint: one more client acts as this user.
   * @param fingerprint full hex, of the client's key
   * @throws USER_DOES_NOT_EXIST; FINGERPRINT_IN_USE
   */
  async addUserFingerprint(username: string, fingerprint: string, name?: string): Promise<void> {
    check('the name of the fingerprint', name, optional(text));
    const request = { method: 'PUT', path: ['users', username, 'fingerprints', fingerprint], body: encodeFingerprintName(name) } as const;
    return send(this.#connection, request, keyTaken);
  }

  /** @throws USER_DOES_NOT_EXIST; NOT_FOUND when the user has no such fingerprint */
  removeUserFingerprint(username: string, fingerprint: string): Promise<void> {
    const request = { method: 'DELETE', path: ['users', username, 'fingerprints', fingerprint] } as const;
    return withKnownUser(this.#connection, username, ['NOT_FOUND', 'the user has no such fingerprint'], () =>
      send(this.#connection, request, unknownUser),
    );
  }

  // Notifications

  /** Returns the notification categories of the device. */
  getNotificationCategories(): Promise<string[]> {
    return this.#get(['notification-categories'], decodeNames);
  }

  /**
   * Replaces the categories that the user is notified of; each must be one of the device.
   * @throws USER_DOES_NOT_EXIST; INVALID_INPUT
   */
  async updateUserNotificationCategories(username: string, categories: readonly string[]): Promise<void> {
    check('the notification categories', categories, texts);
    return this.#set(username, 'notification-categories', encodeNames(categories));
  }

  /**
   * Sets where the user's notifications go: a registration token of the provider, and its project.
   * @throws USER_DOES_NOT_EXIST
   */
  async updateUserPush(username: string, push: { token: string; projectId: string }): Promise<void> {
    checkOptions('a push registration', push, { token: text, projectId: text }, ['token', 'projectId']);
    const { token, projectId } = push;
    return this.#set(username, 'push', encodePush({ token, projectId }));
  }

  /**
   * Asks the device to send the user a notification, and returns the provider's answer: 200 when accepted, 404 when it
   * no longer knows the token.
   * @throws USER_DOES_NOT_EXIST; NOT_FOUND when the user has no token; NOT_ATTACHED when the device is not attached or
   *   its base station fails
   */
  sendUserPushTest(username: string): Promise<PushAnswer> {
    const request = { method: 'POST', path: ['users', username, 'push-test'] } as const;
    return withKnownUser(this.#connection, username, ['NOT_FOUND', 'the user has no push token and project id'], () =>
      fetch(this.#connection, request, decodePushAnswer, notAttached),
    );
  }

  // The device

  getSettings(): Promise<DeviceSettings> {
    return this.#get(['settings'], decodeSettings);
  }

  /** Turns a pairing mode on or off. */
  async updateSetting(name: SettingName, on: boolean): Promise<void> {
    check('the setting', name, oneOf(settingNames));
    check('the setting', on, flag);
    return send(this.#connection, { method: 'PUT', path: ['settings', name], body: encodeFlag(on) });
  }

  /** Sets the device's name on the local network and in its details. */
  async updateFriendlyName(name: string): Promise<void> {
    check('the friendly name', name, text);
    return send(this.#connection, { method: 'PUT', path: ['device-info', 'friendly-name'], body: encodeText(name) });
  }

  #get<T>(path: readonly string[], decode: (payload: Uint8Array) => T, meanings?: Meanings): Promise<T> {
    return fetch(this.#connection, { method: 'GET', path }, decode, meanings);
  }

  async #setText(username: string, name: string, value: string | null, meanings?: Meanings, kind = orNull(text)): Promise<void> {
    check(`the ${name}`, value, kind);
    return this.#set(username, name, encodeText(value ?? undefined), meanings);
  }

  #set(username: string, name: string, body: Uint8Array, meanings = unknownUser): Promise<void> {
    return send(this.#connection, setting(username, name, body), meanings);
  }
}
