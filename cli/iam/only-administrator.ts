/**
 * Nobody could manage the users of a device without an administrator: so these commands do not take the last one's account, role or key unless that is
 * asked for with `--force`. The device itself allows it.
 *
 * Who is an administrator, the device says of each user by what its role allows; of one that does not say, by the name of the role. Only a user with a key
 * counts: an invitation may never be used.
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
  return new Option('--force', 'even if nobody is left who manages the users of the device');
}

/**
 * Returns when another administrator is left, or the user is none.
 * @param what is taken, for the message: `deleted`, for example
 * @throws CommandError when the user is the only one
 */
export async function keepAdministrator(opened: IamOpened, username: string, what: string, { force }: ForceOptions): Promise<void> {
  if (force === true) return;
  const user = await visible(opened, username);
  if (user === null || !isAdministrator(user) || (await hasAnother(opened, username))) return;
  throw new CommandError(
    `${username} is the only administrator of ${opened.device} and is not ${what}: without one nobody manages its users. Make another user one first, or repeat it with --force`,
  );
}

/** Whether a role is one of administrators, as far as it is known without the policies: by its name, and by those who have it. */
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

/** Null for a user that is not there, or that this client may not see: the device answers to what is asked of it then. */
function visible({ iam }: IamOpened, username: string): Promise<UserRecord | null> {
  return iam.getUser(username).catch(denied(null));
}

function isAdministrator({ fingerprints, role, administers = role === ADMINISTRATOR }: UserRecord): boolean {
  return fingerprints.length > 0 && administers;
}

/** Answers that say something about the user, or about what this client may see. */
function denied<T>(instead: T): (error: unknown) => T {
  return (error) => {
    if (error instanceof SvcError && ['USER_DOES_NOT_EXIST', 'BLOCKED_BY_DEVICE_CONFIGURATION'].includes(error.code)) return instead;
    throw error;
  };
}
