/** A model of access control for tests: cheap secrets, the default configuration, and a state that the test chooses. */
import {
  type Caller,
  defaultConfiguration,
  Iam,
  type IamOptions,
  type IamSecrets,
  type IamState,
  type UserEntry,
  Users,
} from '../../../device/iam/index.ts';

const text = new TextEncoder();

/** Verifiers and seals that a test can see through; tokens count up. */
export function fakeSecrets(): IamSecrets {
  let tokens = 0;
  return {
    makeVerifier: async (password) => ({ kdf: 1, salt: new Uint8Array(16).fill(7), value: text.encode(password.padEnd(16)) }),
    seal: async (clear) => `sealed:${clear}`,
    unseal: async (sealed) => sealed.slice('sealed:'.length),
    makeToken: () => `token${String(++tokens).padStart(7, '0')}`,
  };
}

export function stateOf(entries: readonly UserEntry[] = [], settings: Partial<IamState> = {}): IamState {
  return {
    localOpenPairing: false,
    passwordOpenPairing: false,
    passwordInvitePairing: false,
    localInitialPairing: false,
    users: Users.of(entries),
    ...settings,
  };
}

export function user(username: string, fields: Partial<UserEntry['user']> = {}): UserEntry {
  return { user: { username, fingerprints: [], notificationCategories: [], ...fields } };
}

export function iamOf(options: Partial<IamOptions> = {}): Iam {
  return new Iam({ configuration: defaultConfiguration(), state: stateOf(), secrets: fakeSecrets(), ...options });
}

/** The fingerprint of key `number`. */
export function key(number: number): string {
  return number.toString(16).padStart(64, '0');
}

/** A local caller with key `number`. */
export function caller(number: number, more: Partial<Caller> = {}): Caller {
  return { fingerprint: key(number), isLocal: true, ...more };
}

export const ann = user('ann', { role: 'Guest', sct: 'sct-ann', fingerprints: [{ fingerprint: key(1), name: 'Phone' }] });
const bob = user('bob', { role: 'Standard' });
const boss = user('boss', { role: 'Administrator' });

/** A model with three users and two notification categories. */
export function iamWithUsers(options: Partial<IamOptions> = {}): Iam {
  return iamOf({ state: stateOf([ann, bob, boss]), notificationCategories: ['Alarm', 'Info'], ...options });
}
