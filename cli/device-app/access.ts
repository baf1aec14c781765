/**
 * Access control of `svc device`: the permissions of each role for the thermostat, and the files
 * `iam-configuration.json` and `iam-state.json` of its directory.
 *
 * Three policies for the application's own actions are added to the SDK's defaults:
 *
 *     ReadThermostat     Thermostat:Get     Guest, Standard, Administrator
 *     ControlThermostat  Thermostat:Set     Standard, Administrator
 *     Files              File:Transfer      Standard, Administrator
 *
 * A client that is not yet a user can only pair. Both files are the owner's: the configuration to edit while the device
 * is stopped, the state to read.
 */
import { join } from 'node:path';
import { defaultIamLimits, pairingFlags, Rules } from '../../device/iam/index.ts';
import {
  CONFIGURATION_FILE,
  defaultConfiguration,
  demoState,
  Iam,
  type IamConfiguration,
  type IamSecrets,
  type IamState,
  type Log,
  openIam,
  productionState,
  readConfiguration,
  readState,
  STATE_FILE,
  SvcError,
} from '../../device/index.ts';
import { readJson } from '../../platform/node/index.ts';
import { type IamUser, type PairingMode, pairingModes } from '../../protocol/records/index.ts';
import { CommandError } from '../frame/errors.ts';
import { CATEGORIES } from './notifications.ts';

/** The first state of a device (docs/iam.md). */
export type FirstAccess = 'production' | 'demo';

/** Passwords that are known only at their creation. */
export interface Access {
  readonly iam: Iam;
  /** Whether the state was created just now. */
  readonly isNew?: boolean;
  /** Password of the user `admin`, if the state was created just now. */
  readonly adminPassword?: string;
}

export interface AccessOptions {
  readonly secrets: IamSecrets;
  readonly first: FirstAccess;
  readonly log: Log;
  /** Unix ms. */
  readonly now: () => number;
}

/** Username of the first administrator. */
export const ADMIN = 'admin';

const FRIENDLY_NAME = 'Thermostat';
/** The role of administrators, unless an owner removes it. */
const ADMINISTRATOR = 'Administrator';

/** Roles and policies of a device without a configuration. */
export function thermostatConfiguration(): IamConfiguration {
  const { policies, roles, ...rest } = defaultConfiguration();
  const own = [allow('ReadThermostat', 'Thermostat:Get'), allow('ControlThermostat', 'Thermostat:Set'), allow('Files', 'File:Transfer')];
  const everything = own.map(({ id }) => id);
  const added: Readonly<Record<string, readonly string[]>> = { Guest: ['ReadThermostat'], Standard: everything, Administrator: everything };
  return {
    ...rest,
    policies: [...policies, ...own],
    roles: roles.map((role) => ({ ...role, policies: [...role.policies, ...(added[role.id] ?? [])] })),
  };
}

/** Opens the files of a directory, and creates missing ones. @throws LocalError that names file and place */
export async function openAccess(directory: string, { secrets, first, log, now }: AccessOptions): Promise<Access> {
  let adminPassword: string | undefined;
  let isNew = false;
  const firstState = async (): Promise<IamState> => {
    const made = first === 'demo' ? await demoState(secrets) : await productionState(secrets);
    adminPassword = made.adminPassword;
    isNew = true;
    return { ...made.state, friendlyName: FRIENDLY_NAME };
  };
  const iam = await openIam(directory, {
    secrets,
    log,
    now,
    notificationCategories: CATEGORIES,
    firstConfiguration: thermostatConfiguration,
    firstState,
  });
  return { iam, isNew, ...(adminPassword !== undefined && { adminPassword }) };
}

/**
 * Opens them read-only, also while the device runs: creates nothing, saves nothing.
 * @throws CommandError that names file and place
 */
export async function readAccess(directory: string, secrets: IamSecrets): Promise<Iam> {
  const rules = new Rules(defaultIamLimits);
  const configuration = await readPart(join(directory, CONFIGURATION_FILE), readConfiguration);
  const state = await readPart(join(directory, STATE_FILE), (document) =>
    readState(document, { rules, notificationCategories: CATEGORIES, secrets }),
  );
  return new Iam({
    configuration,
    state,
    secrets,
    notificationCategories: CATEGORIES,
    save: async () => {
      throw new CommandError('users and roles cannot be changed here');
    },
  });
}

async function readPart<T>(path: string, read: (document: unknown) => T | Promise<T>): Promise<T> {
  const document = await readJson(path);
  if (document === undefined) throw new CommandError(`there is no ${path}: svc device creates it at its first start`);
  try {
    return await read(document);
  } catch (error) {
    throw error instanceof SvcError ? new CommandError(`${path}: ${error.message}`) : error;
  }
}

/** Turns the named pairing modes on, and the others off. */
export async function setPairing(iam: Iam, modes: readonly PairingMode[]): Promise<void> {
  await iam.update((draft) => {
    for (const mode of pairingModes) {
      const on = modes.includes(mode);
      if (draft.state[pairingFlags[mode]] !== on) draft.setFlag(pairingFlags[mode], on);
    }
  });
}

/** Pairing modes that are on. */
export function pairingOf({ state }: Iam): PairingMode[] {
  return pairingModes.filter((mode) => state[pairingFlags[mode]]);
}

/** Whether the device has a user with a key who manages users, or a client can become one without an invitation. */
export function isAdministered(iam: Iam): boolean {
  const { users, state } = iam;
  const open = state.localOpenPairing || state.passwordOpenPairing;
  if (open && iam.administers(state.openPairingRole)) return true;
  return users.some(({ role, fingerprints }) => fingerprints.length > 0 && iam.administers(role));
}

/** Whether a user has a key; otherwise users were at most invited. */
export function hasUsers({ users }: Iam): boolean {
  return users.some(({ fingerprints }) => fingerprints.length > 0);
}

/**
 * The role of administrators: the one of that name, if its policies let it manage users, else the first one that may;
 * undefined for none.
 */
export function administratorRole(iam: Iam): string | undefined {
  return [ADMINISTRATOR, ...iam.roles].find((role) => iam.administers(role));
}

/** Makes each unpaired key an administrator, named after the key. */
export async function pairKeys(iam: Iam, fingerprints: Iterable<string>): Promise<void> {
  await iam.update((draft) => {
    for (const fingerprint of fingerprints) {
      if (draft.state.users.byFingerprint(fingerprint) !== undefined) continue;
      draft.createUser(`key-${fingerprint.slice(0, 12)}`, { role: ADMINISTRATOR, fingerprints: [{ fingerprint }] });
    }
  });
}

/**
 * Invites a user, created if missing: with a fresh password that is valid until the user pairs.
 * @param role undefined keeps the role (none for a new user); but the user `admin` becomes an administrator again
 * @throws LocalError INVALID_ARGUMENT, NOT_FOUND (role), OUT_OF_MEMORY
 */
export async function invite(iam: Iam, secrets: IamSecrets, username: string, role?: string): Promise<{ user: IamUser; password: string }> {
  const password = secrets.makeToken();
  const verifier = await secrets.makeVerifier(password);
  const user = await iam.update((draft) => {
    if (draft.state.users.user(username) === undefined) draft.createUser(username);
    const given = role ?? restored(iam, draft.user(username));
    if (given !== undefined) draft.setUserRole(username, given);
    draft.setUserVerifier(username, verifier);
    return draft.user(username);
  });
  return { user, password };
}

/** Returns the role that the first administrator gets back. */
function restored(iam: Iam, { username, role }: IamUser): string | undefined {
  return username === ADMIN && !iam.administers(role) ? administratorRole(iam) : undefined;
}

function allow(id: string, action: string): IamConfiguration['policies'][number] {
  return { id, statements: [{ effect: 'Allow', actions: [action], conditions: [] }] };
}
