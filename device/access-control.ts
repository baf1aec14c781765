/**
 * A device under access control: `Iam` decides, and this class applies its decisions to the running device.
 *
 * - Answers authorization requests and password lookups from the state published at that moment.
 * - Keeps the server connect tokens of users and of open pairing on the device's list while they are in the state. A
 *   token that leaves the state is withdrawn from the base station.
 * - Closes the connections of a deleted user. A connection that waits for an answer, perhaps to the deletion itself, is
 *   closed a moment later; it has no rights from the deletion on.
 * - Ends a tunnel or stream at once when a change no longer allows it: a removed role or key, another policy.
 * - Carries a user's new name over to the user's connections. A new or cleared password ends what the old one
 *   authenticated, unless the client's key is the user's.
 * - Announces the friendly name.
 *
 * The user of a connection is resolved at each decision (`callerOf`). A name is stored only for a password session and
 * for a user bound by the application; a change that renames or deletes that user does the same with the stored name,
 * so that no other user inherits the session. The model is `iam/`, its endpoints are the table
 * `iam/endpoints/table.ts`; the bodies are records that both ends share (`protocol/records/`). The client's side is
 * `client/iam/`.
 */

import type { Clock } from '../platform/environment.ts';
import { LocalError } from '../protocol/errors/index.ts';
import { passwordBytes } from '../protocol/password/kdf.ts';
import { type IamUser, VERSION } from '../protocol/records/index.ts';
import type { Authorization } from './authorization.ts';
import type { CoapResources } from './coap-resources.ts';
import type { Connections, DeviceConnection } from './connections.ts';
import { callerOf, type Denial } from './iam/caller.ts';
import type { IamChange } from './iam/changes.ts';
import { type DeviceFacade, installIamEndpoints } from './iam/endpoints/index.ts';
import type { Iam } from './iam/iam.ts';
import { KeyUse } from './iam/key-use.ts';
import type { PasswordSource } from './password/requests.ts';
import type { PasswordService } from './password/service.ts';
import { PushNotification } from './push.ts';
import type { DeviceRuntime } from './runtime.ts';
import { requireIdentity } from './settings.ts';

/** Time that a deleted user's connection stays open for an answer under way, ms. */
const FAREWELL = 1000;

/** The parts of a device that access control acts on. */
export interface ControlledDevice {
  readonly clock: Pick<Clock, 'schedule' | 'now' | 'wallTime'>;
  readonly authorization: Authorization;
  readonly passwords: PasswordService;
  readonly resources: CoapResources;
  readonly connections: Connections;
  readonly runtime: DeviceRuntime;
  /** Called for each refusal to a client. */
  readonly denied: (denial: Denial) => void;
}

export class AccessControl {
  readonly iam: Iam;
  readonly #device: ControlledDevice;
  readonly #stops: readonly (() => void)[];
  readonly #use = new KeyUse();

  /** @throws LocalError IN_USE when the device has an authorization listener or a password source */
  constructor(iam: Iam, device: ControlledDevice) {
    this.iam = iam;
    this.#device = device;
    const { authorization, passwords, resources } = device;
    const removeListener = authorization.listen(({ connection, action, attributes }) =>
      iam.check(callerOf(connection), action, attributes),
    );
    try {
      passwords.use(passwordSource(iam));
    } catch (error) {
      removeListener();
      throw error;
    }
    device.runtime.keepConnectionsFor((fingerprint) => iam.userByFingerprint(fingerprint)?.username ?? null);
    if (iam.passwordThrottle !== undefined) passwords.keepThrottle(iam.passwordThrottle);
    installIamEndpoints(resources, iam, this.#facade());
    this.#tokens();
    if (iam.state.friendlyName !== undefined) this.#friendlyName();
    this.#stops = [iam.onChange((change) => this.#changed(change)), device.connections.onEvent((connection) => this.#used(connection))];
  }

  /**
   * Lets the connection act as this user, unless its key or a password names another one; null ends that.
   * @throws LocalError NOT_FOUND, INVALID_CONNECTION
   */
  authorizeConnection(connection: DeviceConnection, username: string | null): void {
    if (username !== null && this.iam.user(username) === undefined)
      throw new LocalError('NOT_FOUND', `there is no user ${JSON.stringify(username)}`);
    connection.bind(username);
    this.#device.authorization.reconsider();
  }

  /** Stops applying changes of the state to the device. */
  close(): void {
    for (const stop of this.#stops) stop();
  }

  #facade(): DeviceFacade {
    const { clock, runtime, denied } = this.#device;
    return {
      clock,
      lastUsed: (fingerprint) => {
        for (const connection of this.#open) this.#used(connection);
        return this.#use.day(fingerprint);
      },
      isSctOmitted: (token) => runtime.tokens.omitted.includes(token),
      details() {
        const { productId, deviceId } = requireIdentity(runtime.settings);
        const { appName, appVersion } = runtime.settings;
        return {
          svcVersion: VERSION,
          ...(appVersion !== null && { appVersion }),
          ...(appName !== null && { appName }),
          productId,
          deviceId,
        };
      },
      caller: callerOf,
      async sendPush(projectId, body) {
        const push = new PushNotification((request) => runtime.ask(request));
        push.setProjectId(projectId);
        push.setPayload(body);
        await push.send();
        return { statusCode: push.getResponseStatusCode(), body: push.getResponseBody() };
      },
      denied: (caller, action, attributes) => denied({ caller, action, attributes }),
    };
  }

  #changed(change: IamChange): void {
    if (change.kind === 'user-created') this.#tokens();
    else if (change.kind === 'user-deleted') this.#deleted(change.previous);
    else if (change.kind === 'user-changed') {
      if (change.setting === 'sct') this.#tokens();
      if (change.setting === 'username') this.#renamed(change.previous.username, change.username);
      if (change.setting === 'password') this.#withdrawPassword(change.username);
    } else if (change.kind === 'settings-changed') {
      if (change.setting === 'open-pairing-sct') this.#tokens();
      if (change.setting === 'open-pairing-password') this.#withdrawPassword('');
      if (change.setting === 'friendly-name') this.#friendlyName();
    }
    // An open tunnel or stream may depend on any of these: roles, keys, names and policies.
    this.#device.authorization.reconsider();
  }

  #used({ clientFingerprint }: DeviceConnection): void {
    if (this.iam.userByFingerprint(clientFingerprint) !== undefined) this.#use.note(clientFingerprint, this.#device.clock.wallTime());
  }

  #tokens(): void {
    const { runtime } = this.#device;
    if (runtime.tokens.manage(this.iam.serverConnectTokens)) runtime.tokensChanged();
  }

  #friendlyName(): void {
    this.#device.runtime.announcer.setFriendlyName(this.iam.state.friendlyName ?? '');
  }

  #deleted({ username, fingerprints }: IamUser): void {
    this.#tokens();
    this.#device.passwords.withdraw(username, this.#open);
    for (const connection of this.#open) {
      const named = this.#namedBy(connection, username);
      if (named) this.#forget(connection, username);
      const byKey = fingerprints.some(({ fingerprint }) => fingerprint === connection.clientFingerprint);
      // A connection that acts as another user, despite the deleted name, stays open as that user.
      if (byKey || (named && this.iam.resolveCaller(callerOf(connection)) === undefined)) this.#dismiss(connection);
    }
  }

  #dismiss(connection: DeviceConnection): void {
    if (this.#device.resources.isServing(connection)) this.#device.clock.schedule(FAREWELL, () => void connection.withdrawAccess());
    else void connection.withdrawAccess();
  }

  #renamed(from: string, to: string): void {
    this.#device.passwords.withdraw(from, this.#open);
    for (const connection of this.#open) {
      if (callerOf(connection).passwordUsername === from) connection.changePasswordUsername(to);
      if (connection.boundUsername === from) connection.bind(to);
    }
  }

  #withdrawPassword(username: string): void {
    this.#device.passwords.withdraw(username, this.#open);
    for (const connection of this.#open) {
      if (callerOf(connection).passwordUsername !== username) continue;
      if (this.iam.userByFingerprint(connection.clientFingerprint)?.username !== username) connection.changePasswordUsername(null);
    }
  }

  #namedBy(connection: DeviceConnection, username: string): boolean {
    return callerOf(connection).passwordUsername === username || connection.boundUsername === username;
  }

  #forget(connection: DeviceConnection, username: string): void {
    if (callerOf(connection).passwordUsername === username) connection.changePasswordUsername(null);
    if (connection.boundUsername === username) connection.bind(null);
  }

  get #open(): readonly DeviceConnection[] {
    return this.#device.connections.open;
  }
}

/** Passwords of the users, and that of open pairing while a client could pair with it. */
function passwordSource(iam: Iam): PasswordSource {
  return {
    async lookup(username) {
      const { passwordOpenPairing, openPairingRole } = iam.state;
      if (username === '' && (!passwordOpenPairing || openPairingRole === undefined)) return null;
      const stored = await iam.passwordOf(username);
      if (stored === undefined) return null;
      return stored.kdf === 0 ? { kdf: 0, value: passwordBytes(stored.password) } : { ...stored, value: stored.value.slice() };
    },
    kdfOf: (username) => (username === '' ? 0 : 1),
    isPaired: (username, { clientFingerprint }) => iam.userByFingerprint(clientFingerprint)?.username === username,
  };
}
