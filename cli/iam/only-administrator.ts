/**
 * Without an administrator no user could manage the users of a device: so these commands do not remove the last
 * administrator's account, role or key without `--force`. The device itself allows it.
 *
 * The device reports of each user whether its role makes it an administrator. Only a user with a key counts: an
 * invitation may never be used.
 */
import { Option } from 'commander';
import { SvcError, type UserRecord } from '../../client/node.ts';
import { CommandError } from '../frame/errors.ts';
import type { IamOpened } from './shared.ts';

const ADMINISTRATOR = 'Administrator';

export interface ForceOptions {
  force?: boolean;
}

/** `--force`. */
export function forceOption(): Option {
  return new Option('--force', 'even if the device has no administrator afterwards');
}

/**
 * Resolves when another administrator is left, or the user is not an administrator.
 * @param what happens to the user, for the message: `deleted`, for example
 * @throws CommandError when the user is the only one
 */
export async function keepAdministrator(opened: IamOpened, username: string, what: string, { force }: ForceOptions): Promise<void> {
  if (force === true) return;
  const user = await visible(opened, username);
  if (user === null || !isAdministrator(user) || (await hasAnother(opened, username))) return;
  throw new CommandError(
    `${username} is the only administrator of ${opened.device} and is not ${what}. Make another user one first, or repeat with --force`,
  );
}

/** Whether a role is one of administrators, as far as known without the policies: by its name, and by its users. */
export async function isAdministratorRole(opened: IamOpened, username: string, role: string): Promise<boolean> {
  return role === ADMINISTRATOR || (await visible(opened, username))?.role === role;
}

async function hasAnother({ iam }: IamOpened, username: string): Promise<boolean> {
  for (const name of await iam.listUsers().catch(denied([]))) {
    if (name === username) continue;
    const other = await iam.getUser(name).catch(denied(null));
    if (other !== null && isAdministrator(other)) return true;
  }
  return false;
}

/**
 * Returns the user; null for one that does not exist, or that this client may not see: the device then refuses the
 * request itself.
 */
function visible({ iam }: IamOpened, username: string): Promise<UserRecord | null> {
  return iam.getUser(username).catch(denied(null));
}

function isAdministrator({ fingerprints, administers }: UserRecord): boolean {
  return fingerprints.length > 0 && administers === true;
}

/** Answers about the user, or about what this client may see. */
function denied<T>(instead: T): (error: unknown) => T {
  return (error) => {
    if (error instanceof SvcError && ['USER_DOES_NOT_EXIST', 'BLOCKED_BY_DEVICE_CONFIGURATION'].includes(error.code)) return instead;
    throw error;
  };
}
