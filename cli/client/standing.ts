/** The standing of this client at a device: a user, not yet a user, or a client of a device without users. */
import { IamError, type IamUtil, type PairingMode, SvcError } from '../../client/node.ts';
import type { PairingString } from '../../protocol/records/index.ts';
import { commandLine, stateOption } from '../frame/shell-word.ts';

export type Standing =
  | { readonly kind: 'user'; readonly username: string; readonly role?: string }
  /** Not yet a user. `modes`: the pairing modes that the device offers to this connection. */
  | { readonly kind: 'not-a-user'; readonly modes: readonly PairingMode[] }
  | { readonly kind: 'no-users' };

/** Advice on getting an invitation. */
export const ASK_FOR_INVITATION =
  'ask an administrator of the device for an invitation (`svc iam invite NAME`), or its owner (`svc device invite NAME` on the device), and give it to `svc pair -`';

/**
 * Queries the device, without changing anything there.
 * @param key fingerprint of this client: knowing a user's password alone does not make it that user
 * @throws the errors of `IamUtil` requests, except refusals by the device
 */
export async function standingOf(iam: IamUtil, key: string): Promise<Standing> {
  try {
    const { username, role, fingerprints } = await iam.getCurrentUser();
    if (fingerprints.some(({ fingerprint }) => fingerprint === key)) return { kind: 'user', username, ...(role !== undefined && { role }) };
  } catch (error) {
    if (!(error instanceof IamError)) throw error;
  }
  try {
    return { kind: 'not-a-user', modes: (await iam.getDeviceDetails()).modes };
  } catch (error) {
    if (!(error instanceof SvcError)) throw error;
    if (error.code === 'IAM_NOT_SUPPORTED') return { kind: 'no-users' };
    if (error instanceof IamError) return { kind: 'not-a-user', modes: [] };
    throw error;
  }
}

/** Returns the closing line of a command about it. @param next how to become a user */
export function standingLine(standing: Standing, next: string): string {
  if (standing.kind === 'user') return `you are ${userText(standing)}`;
  return standing.kind === 'no-users' ? 'this device has no users' : `not a user yet: ${next}`;
}

/** A user with its role. */
export function userText({
  username,
  role = 'no role: everything is denied',
}: {
  readonly username: string;
  readonly role?: string;
}): string {
  return `${username} (${role})`;
}

/** Explains how this client becomes a user. @param name of the device, as commands take it */
export function nextStep(
  modes: readonly PairingMode[],
  { name, state, pairing }: { name: string; state: string | undefined; pairing: PairingString | undefined },
): string {
  const pair = `\`${commandLine('svc pair', [name], stateOption(state))}\``;
  if (pairing?.password !== undefined)
    return `\`svc pair -\` with the same pairing string makes this client ${pairing.username ?? 'one, by the name of --username'}`;
  if (modes.includes('LocalInitial')) return `${pair} makes this client the first one`;
  if (modes.includes('LocalOpen')) return `${pair} asks for a user name and makes this client one`;
  if (modes.includes('PasswordOpen')) return `${pair} asks for a user name and the password of the device, and makes this client one`;
  return ASK_FOR_INVITATION;
}
