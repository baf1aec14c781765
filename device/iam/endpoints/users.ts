/** Users, and the caller's own record (docs/iam.md). */

import { Status } from '../../../protocol/coap/index.ts';
import { defined } from '../../../protocol/defined.ts';
import { LocalError } from '../../../protocol/errors/index.ts';
import {
  decodeFingerprintName,
  decodeNewUser,
  encodeNames,
  encodeUser,
  type IamUser,
  type UserRecord,
} from '../../../protocol/records/index.ts';
import type { IamDraft } from '../draft.ts';
import type { Attributes } from '../policy.ts';
import { type Answer, cborBody, endpoint, type IamEndpoint, type IamRequest } from './endpoint.ts';

/** Returns the user a request is about, as an attribute for policies. */
export function aboutUser({ parameters }: IamRequest<unknown>): Attributes {
  return { 'IAM:Username': parameters.username ?? '' };
}

/** The username in the path. */
export function usernameOf({ parameters }: IamRequest<unknown>): string {
  return parameters.username ?? '';
}

export const userEndpoints: readonly IamEndpoint[] = [
  endpoint({
    method: 'GET',
    path: '/iam/me',
    // No action: a caller that is not a user learns only that.
    checks: [],
    answer: ({ iam, device, caller }) => found({ iam, device }, iam.resolveCaller(caller), 'This client is not paired'),
  }),
  endpoint({
    method: 'GET',
    path: '/iam/users',
    action: 'IAM:ListUsers',
    checks: ['action'],
    answer: ({ iam }) => ({ status: Status.CONTENT, payload: encodeNames(iam.usernames) }),
  }),
  endpoint({
    method: 'POST',
    path: '/iam/users',
    action: 'IAM:CreateUser',
    checks: ['body', 'action'],
    read: (request, { rules }) => {
      const username = decodeNewUser(cborBody(request));
      rules.username(username);
      return username;
    },
    answer: async ({ iam, device, caller, demand, body }) => {
      const user = await iam.update((draft) => draft.createUser(body), caller, demand);
      return { status: Status.CREATED, payload: encodeUser(shown({ iam, device }, user)) };
    },
  }),
  endpoint({
    method: 'GET',
    path: '/iam/users/{username}',
    action: 'IAM:GetUser',
    attributes: aboutUser,
    checks: ['action'],
    answer: (request) => found(request, request.iam.user(usernameOf(request)), 'No such user'),
  }),
  endpoint({
    method: 'DELETE',
    path: '/iam/users/{username}',
    action: 'IAM:DeleteUser',
    attributes: aboutUser,
    checks: ['action'],
    answer: async (request) => {
      await request.iam.update((draft) => draft.deleteUser(usernameOf(request)), request.caller, request.demand);
      return { status: Status.DELETED };
    },
  }),
  endpoint({
    method: 'PUT',
    path: '/iam/users/{username}/fingerprints/{fingerprint}',
    action: 'IAM:SetUserFingerprint',
    attributes: aboutUser,
    checks: ['body', 'action'],
    read: (request, { rules }) => {
      const fingerprint = request.parameters.fingerprint ?? '';
      const name = decodeFingerprintName(cborBody(request));
      rules.fingerprint(fingerprint);
      if (name !== undefined) rules.fingerprintName(name);
      return { fingerprint, name };
    },
    answer: async (request) => {
      const { fingerprint, name } = request.body;
      const change = (draft: IamDraft) => draft.addUserFingerprint(usernameOf(request), fingerprint, name);
      await request.iam.update(change, request.caller, request.demand);
      return { status: Status.CHANGED };
    },
  }),
  endpoint({
    method: 'DELETE',
    path: '/iam/users/{username}/fingerprints/{fingerprint}',
    action: 'IAM:SetUserFingerprint',
    attributes: aboutUser,
    checks: ['action'],
    answer: async (request) => {
      const { fingerprint = '' } = request.parameters;
      const change = (draft: IamDraft) => draft.removeUserFingerprint(usernameOf(request), fingerprint);
      await request.iam.update(change, request.caller, request.demand);
      return { status: Status.DELETED };
    },
  }),
];

function found(service: Shower, user: IamUser | undefined, otherwise: string): Answer {
  if (user === undefined) throw new LocalError('NOT_FOUND', otherwise);
  return { status: Status.CONTENT, payload: encodeUser(shown(service, user)) };
}

type Shower = Pick<IamRequest<unknown>, 'iam' | 'device'>;

function shown({ iam, device }: Shower, user: IamUser): UserRecord {
  const omitted = user.sct !== undefined && device.isSctOmitted(user.sct);
  const fingerprints = user.fingerprints.map((each) => defined({ ...each, lastUsed: device.lastUsed(each.fingerprint) }));
  return { ...user, fingerprints, ...(omitted && { sctOmitted: true }), administers: iam.administers(user.role) };
}
