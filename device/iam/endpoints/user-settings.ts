/**
 * The settings of a user, `PUT /iam/users/{username}/{setting}` (docs/iam.md): each a bare value, checked before
 * policies. And the test of its push settings.
 */
import { Status } from '../../../protocol/coap/index.ts';
import { LocalError } from '../../../protocol/errors/index.ts';
import { decodeNames, decodePush, decodeText, encodePushAnswer, type UserPush } from '../../../protocol/records/index.ts';
import type { UserSetting } from '../changes.ts';
import type { IamDraft } from '../draft.ts';
import type { Iam } from '../iam.ts';
import type { Attributes } from '../policy.ts';
import type { Rules } from '../rules.ts';
import { cborBody, endpoint, type IamEndpoint, type IamRequest } from './endpoint.ts';
import { aboutUser, usernameOf } from './users.ts';

interface SettingDefinition<Value> {
  readonly action: string;
  /** @throws RemoteError PARSE, LocalError INVALID_ARGUMENT */
  readonly read: (payload: Uint8Array, iam: Iam) => Value;
  /** Attributes for policies, besides the username. */
  readonly attributes?: (value: Value) => Attributes;
  readonly set: (request: IamRequest<Value>) => Promise<void>;
}

export const userSettingEndpoints: readonly IamEndpoint[] = [
  setting('username', {
    action: 'IAM:SetUserUsername',
    read: text((rules, username) => rules.username(username)),
    set: change((draft, username, to) => draft.setUserUsername(username, to)),
  }),
  setting('display-name', {
    action: 'IAM:SetUserDisplayName',
    read: textOrNone((rules, name) => rules.displayName(name)),
    set: change((draft, username, name) => draft.setUserDisplayName(username, name)),
  }),
  setting('password', {
    action: 'IAM:SetUserPassword',
    read: textOrNone((rules, password) => rules.password(password)),
    set: (request) => request.iam.setUserPassword(usernameOf(request), request.body, request.caller, request.demand),
  }),
  setting('role', {
    action: 'IAM:SetUserRole',
    read: text(() => {}),
    attributes: (role) => ({ 'IAM:RoleId': role }),
    set: change((draft, username, role) => draft.setUserRole(username, role)),
  }),
  setting('sct', {
    action: 'IAM:SetUserSct',
    read: text((rules, sct) => rules.sct(sct)),
    set: change((draft, username, sct) => draft.setUserSct(username, sct)),
  }),
  setting('oauth-subject', {
    action: 'IAM:SetUserOauthSubject',
    read: textOrNone((rules, subject) => rules.oauthSubject(subject)),
    set: change((draft, username, subject) => draft.setUserOauthSubject(username, subject)),
  }),
  setting('fingerprint', {
    action: 'IAM:SetUserFingerprint',
    read: textOrNone((rules, fingerprint) => rules.fingerprint(fingerprint)),
    set: change((draft, username, fingerprint) => draft.setUserFingerprint(username, fingerprint)),
  }),
  setting('push', {
    action: 'IAM:SetUserPush',
    read: (payload, { rules }) => {
      const push = decodePush(payload);
      rules.push(push);
      return push;
    },
    set: change((draft, username, push: UserPush) => draft.setUserPush(username, push)),
  }),
  setting('notification-categories', {
    action: 'IAM:SetUserNotificationCategories',
    read: (payload, { notificationCategories }) => {
      const categories = decodeNames(payload);
      const known = new Set(notificationCategories);
      if (!categories.every((each) => known.has(each))) throw new LocalError('INVALID_ARGUMENT', 'one or more categories invalid');
      return categories;
    },
    set: change((draft, username, categories: readonly string[]) => draft.setUserNotificationCategories(username, categories)),
  }),
  // Sends a notification to the user's push settings.
  endpoint({
    method: 'POST',
    path: '/iam/users/{username}/push-test',
    action: 'IAM:SendUserPushTest',
    attributes: aboutUser,
    checks: ['action'],
    answer: async (request) => {
      const user = request.iam.user(usernameOf(request));
      if (user === undefined) throw new LocalError('NOT_FOUND', 'No such user');
      const { token, projectId } = user.push ?? {};
      if (!token || !projectId) throw new LocalError('NOT_FOUND', 'The user has no push settings');
      return { status: Status.CREATED, payload: encodePushAnswer(await request.pushTests.send({ token, projectId })) };
    },
  }),
];

function setting<Value>(name: UserSetting, { action, read, attributes, set }: SettingDefinition<Value>): IamEndpoint {
  return endpoint<Value>({
    method: 'PUT',
    path: `/iam/users/{username}/${name}`,
    action,
    attributes: (request) => ({ ...aboutUser(request), ...attributes?.(request.body) }),
    checks: ['body', 'action'],
    read: (request, iam) => read(cborBody(request), iam),
    answer: async (request) => {
      await set(request);
      return { status: Status.CHANGED };
    },
  });
}

/** Returns a decoder of a text, or null for none. */
function textOrNone(check: (rules: Rules, text: string) => void): (payload: Uint8Array, iam: Iam) => string | undefined {
  return (payload, { rules }) => {
    const value = decodeText(payload);
    if (value !== undefined) check(rules, value);
    return value;
  };
}

/** Returns a decoder of a text that cannot be cleared. */
function text(check: (rules: Rules, text: string) => void): (payload: Uint8Array, iam: Iam) => string {
  const read = textOrNone(check);
  return (payload, iam) => {
    const value = read(payload, iam);
    if (value === undefined) throw new LocalError('INVALID_ARGUMENT', 'The value is missing');
    return value;
  };
}

function change<Value>(set: (draft: IamDraft, username: string, value: Value) => void): SettingDefinition<Value>['set'] {
  return (request) => request.iam.update((draft) => set(draft, usernameOf(request), request.body), request.caller, request.demand);
}
