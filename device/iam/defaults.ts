/**
 * Policies, roles and first states that an application can start with (docs/iam.md). Nothing else in the SDK depends on
 * these names, so an application may define its own.
 *
 * - `ManageOwnUser` covers the user's own push settings and test, notification categories and fingerprints, and the
 *   list of categories.
 * - `Tunnelling` covers TCP and UDP tunnels.
 * - `ManageIAM` covers all settings of every user: also username, SCT and OAuth subject.
 */
import { check, withMethods } from '../../protocol/arguments.ts';
import type { Condition, IamConfiguration, Policy, Statement } from './policy.ts';
import type { IamSecrets, IamState } from './state.ts';
import { Users } from './users.ts';

const tunnelActions = ['ListServices', 'GetService', 'Connect'];
const pairingActions = ['GetPairing', 'PairingPasswordOpen', 'PairingPasswordInvite', 'PairingLocalInitial', 'PairingLocalOpen'];
const ownUserActions = [
  ...['GetUser', 'DeleteUser', 'SetUserDisplayName'],
  ...['SetUserPush', 'SendUserPushTest', 'SetUserNotificationCategories', 'SetUserFingerprint'],
];
const manageActions = [
  ...['ListUsers', 'GetUser', 'DeleteUser', 'SetUserRole', 'ListRoles', 'CreateUser', 'SetUserPassword', 'SetUserDisplayName'],
  ...['SetSettings', 'GetSettings', 'SetDeviceInfo'],
  ...['SetUserPush', 'SendUserPushTest', 'SetUserNotificationCategories', 'SetUserFingerprint', 'ListNotificationCategories'],
  ...['SetUserUsername', 'SetUserSct', 'SetUserOauthSubject'],
];
const ownUser: Condition = { operator: 'StringEquals', key: 'IAM:Username', values: [`\${Connection:Username}`] };

/** Returns the configuration of a device with tunnels: roles Unpaired, Guest, Standard and Administrator. */
export function defaultConfiguration(): IamConfiguration {
  return {
    policies: [
      policy('Pairing', allow('IAM', pairingActions)),
      policy('Tunnelling', allow('TcpTunnel', tunnelActions), allow('UdpTunnel', tunnelActions)),
      policy('ManageIAM', allow('IAM', manageActions)),
      policy(
        'ManageOwnUser',
        allow('IAM', ownUserActions, ownUser),
        allow('IAM', ['ListRoles', 'ListUsers', 'ListNotificationCategories']),
      ),
    ],
    roles: [
      { id: 'Unpaired', policies: ['Pairing'] },
      { id: 'Guest', policies: ['Pairing', 'ManageOwnUser'] },
      { id: 'Standard', policies: ['Pairing', 'ManageOwnUser', 'Tunnelling'] },
      { id: 'Administrator', policies: ['ManageIAM', 'Tunnelling', 'Pairing'] },
    ],
    unpairedRole: 'Unpaired',
  };
}

/** A first state with its passwords. Later, the state reveals only the password of open pairing. */
export interface FirstState {
  readonly state: IamState;
  readonly openPairingPassword: string;
  /** Password of the user `admin`, for a pairing string with `u=admin`. */
  readonly adminPassword?: string;
}

/**
 * Returns the first state of a product: the user `admin` is invited by a password; open pairing is prepared but off.
 */
export async function productionState(secrets: IamSecrets): Promise<FirstState> {
  check('the secrets', secrets, withMethods('makeToken', 'seal', 'makeVerifier'));
  const [adminPassword, openPairingPassword] = [secrets.makeToken(), secrets.makeToken()];
  const admin = {
    user: { username: 'admin', role: 'Administrator', fingerprints: [], sct: secrets.makeToken(), notificationCategories: [] },
    verifier: await secrets.makeVerifier(adminPassword),
  };
  const state: IamState = {
    ...(await openPairing(secrets, openPairingPassword)),
    openPairingRole: 'Guest',
    initialPairingUsername: 'admin',
    users: Users.of([admin]),
  };
  return { state, openPairingPassword, adminPassword };
}

/**
 * Returns the first state for trials: a client on the local network, or with the password, becomes an administrator.
 */
export async function demoState(secrets: IamSecrets): Promise<FirstState> {
  check('the secrets', secrets, withMethods('makeToken', 'seal', 'makeVerifier'));
  const openPairingPassword = secrets.makeToken();
  const state: IamState = {
    ...(await openPairing(secrets, openPairingPassword)),
    localOpenPairing: true,
    passwordOpenPairing: true,
    openPairingRole: 'Administrator',
    users: Users.of([]),
  };
  return { state, openPairingPassword };
}

/** Returns the part common to both: invitations on, all else off. */
async function openPairing(secrets: IamSecrets, password: string): Promise<Omit<IamState, 'users'>> {
  return {
    localOpenPairing: false,
    passwordOpenPairing: false,
    passwordInvitePairing: true,
    localInitialPairing: false,
    openPairingPasswordSealed: await secrets.seal(password),
    openPairingSct: secrets.makeToken(),
    friendlyName: 'Tcp Tunnel',
  };
}

function policy(id: string, ...statements: Statement[]): Policy {
  return { id, statements };
}

function allow(prefix: string, actions: readonly string[], ...conditions: Condition[]): Statement {
  return { effect: 'Allow', actions: actions.map((action) => `${prefix}:${action}`), conditions };
}
