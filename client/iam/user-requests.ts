/**
 * Requests about one user where one answer of the device has several meanings, or one operation takes several requests.
 */
import { Status } from '../../protocol/coap/index.ts';
import { type ErrorCode, SvcError } from '../../protocol/errors/index.ts';
import { decodeNames, decodeUser, encodeNewUser, encodeText, type IamUser } from '../../protocol/records/index.ts';
import { errorOf, IamError, type Meanings } from './errors.ts';
import { fetch, type IamConnection, send } from './requests.ts';

export const unknownUser: Meanings = { [Status.NOT_FOUND]: ['USER_DOES_NOT_EXIST', 'there is no such user'] };
const unknownRole: Meanings = { [Status.NOT_FOUND]: ['ROLE_DOES_NOT_EXIST', 'there is no such role'] };
const nameTaken: Meanings = { [Status.CONFLICT]: ['USERNAME_EXISTS', 'a user of that name exists already'] };

export interface NewUser {
  readonly password?: string;
  readonly role?: string;
  readonly displayName?: string;
}

/**
 * Creates a user with what is given, or no user: when the device refuses a part, the user is deleted. The password
 * comes last, so that no client can log in as an unfinished user.
 */
export async function createUser(connection: IamConnection, username: string, { password, role, displayName }: NewUser): Promise<IamUser> {
  const created = await fetch(connection, { method: 'POST', path: ['users'], body: encodeNewUser(username) }, decodeUser, nameTaken);
  try {
    if (role !== undefined) await send(connection, setting(username, 'role', encodeText(role)), unknownRole);
    if (displayName !== undefined) await send(connection, setting(username, 'display-name', encodeText(displayName)), unknownUser);
    if (password !== undefined) await send(connection, setting(username, 'password', encodeText(password)), unknownUser);
  } catch (error) {
    await undo(connection, username, error);
    throw error;
  }
  return { ...created, ...(role !== undefined && { role }), ...(displayName !== undefined && { displayName }) };
}

/**
 * Deletes the user whose creation failed with `cause`.
 * @throws the same failure, with a note if the user still exists
 */
async function undo(connection: IamConnection, username: string, cause: unknown): Promise<void> {
  try {
    await send(connection, { method: 'DELETE', path: ['users', username] });
  } catch {
    if (!(cause instanceof SvcError)) throw cause;
    const message = `${cause.message}; the user ${JSON.stringify(username)} was created without it and could not be deleted again`;
    if (cause instanceof IamError) throw new IamError(cause.code as ErrorCode, message, cause, { cause });
    throw Object.assign(cause, { message });
  }
}

/** Sets a role. The device answers alike for an unknown user and an unknown role; further requests find out which. */
export async function setRole(connection: IamConnection, username: string, role: string): Promise<void> {
  try {
    await send(connection, setting(username, 'role', encodeText(role)), unknownUser);
  } catch (error) {
    if (!isUnknownUser(error) || (await roleExists(connection, role)) || !(await userMayExist(connection, username))) throw error;
    throw errorOf('ROLE_DOES_NOT_EXIST', 'there is no such role', error);
  }
}

/**
 * Maps the errors of a request about something a user has: when the device answers NOT_FOUND, the error is `code` if
 * the user exists.
 * @param missing what the user does not have
 */
export async function withKnownUser<T>(
  connection: IamConnection,
  username: string,
  missing: readonly [ErrorCode, string],
  request: () => Promise<T>,
): Promise<T> {
  try {
    return await request();
  } catch (error) {
    if (!isUnknownUser(error) || !(await userMayExist(connection, username))) throw error;
    throw errorOf(missing[0], missing[1], error);
  }
}

/** `PUT /iam/users/:username/:setting`. */
export function setting(username: string, name: string, body: Uint8Array) {
  return { method: 'PUT', path: ['users', username, name], body } as const;
}

function isUnknownUser(error: unknown): error is IamError {
  return error instanceof IamError && error.code === 'USER_DOES_NOT_EXIST';
}

async function roleExists(connection: IamConnection, role: string): Promise<boolean> {
  const roles = await quietly(fetch(connection, { method: 'GET', path: ['roles'] }, decodeNames));
  return roles?.includes(role) === true;
}

/** False only when the device says so: this client may not be allowed to read the user. */
async function userMayExist(connection: IamConnection, username: string): Promise<boolean> {
  try {
    await fetch(connection, { method: 'GET', path: ['users', username] }, decodeUser, unknownUser);
    return true;
  } catch (error) {
    return error instanceof SvcError && error.code !== 'USER_DOES_NOT_EXIST';
  }
}

/** Returns the result, or undefined after any refusal. */
async function quietly<T>(result: Promise<T>): Promise<T | undefined> {
  try {
    return await result;
  } catch (error) {
    if (error instanceof IamError) return undefined;
    throw error;
  }
}
