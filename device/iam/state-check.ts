/**
 * Checks a whole state against rules and limits (docs/iam.md), when it is loaded and when a limit changes. The error
 * names the first violation.
 */
import { LocalError } from '../../protocol/errors/index.ts';
import type { IamUser } from '../../protocol/records/index.ts';
import type { Rules } from './rules.ts';
import type { IamState } from './state.ts';

/** @throws LocalError INVALID_ARGUMENT with the place in the state's document */
export function checkState(state: IamState, rules: Rules, notificationCategories: ReadonlySet<string>): void {
  const { openPairingSct, initialPairingUsername, friendlyName, users } = state;
  if (openPairingSct !== undefined) at('OpenPairingSct', () => rules.sct(openPairingSct));
  if (initialPairingUsername !== undefined) at('InitialPairingUsername', () => rules.username(initialPairingUsername));
  if (friendlyName !== undefined) at('FriendlyName', () => rules.friendlyName(friendlyName));
  let index = 0;
  for (const user of users.all) at(`Users[${index++}]`, () => checkUser(user, rules, notificationCategories));
}

function checkUser(user: IamUser, rules: Rules, notificationCategories: ReadonlySet<string>): void {
  const { username, displayName, sct, push, oauthSubject, fingerprints } = user;
  rules.username(username);
  if (displayName !== undefined) rules.displayName(displayName);
  if (sct !== undefined) rules.sct(sct);
  if (push !== undefined) rules.push(push);
  if (oauthSubject !== undefined) rules.oauthSubject(oauthSubject);
  rules.fingerprints(fingerprints.length);
  for (const { fingerprint, name } of fingerprints) {
    rules.fingerprint(fingerprint);
    if (name !== undefined) rules.fingerprintName(name);
  }
  const unknown = user.notificationCategories.find((category) => !notificationCategories.has(category));
  if (unknown === undefined) return;
  throw new LocalError('INVALID_ARGUMENT', `user "${username}" has the notification category "${unknown}", which the device does not have`);
}

function at(place: string, check: () => void): void {
  try {
    check();
  } catch (error) {
    throw new LocalError('INVALID_ARGUMENT', `${place}: ${(error as Error).message}`, { cause: error });
  }
}
