/** Settings of the device, its name, its roles and its notification categories (docs/iam.md). */
import { Status } from '../../../protocol/coap/index.ts';
import { LocalError } from '../../../protocol/errors/index.ts';
import { decodeFlag, decodeText, encodeNames, encodeSettings, isSettingName, type SettingName } from '../../../protocol/records/index.ts';
import type { Iam } from '../iam.ts';
import type { PairingFlags } from '../state.ts';
import { type Answer, cborBody, endpoint, type IamEndpoint } from './endpoint.ts';

const flags: Readonly<Record<SettingName, keyof PairingFlags>> = {
  'password-open-pairing': 'passwordOpenPairing',
  'password-invite-pairing': 'passwordInvitePairing',
  'local-open-pairing': 'localOpenPairing',
};

export const deviceEndpoints: readonly IamEndpoint[] = [
  endpoint({
    method: 'GET',
    path: '/iam/settings',
    action: 'IAM:GetSettings',
    checks: ['action'],
    answer: ({ iam }) => settings(iam),
  }),
  endpoint({
    method: 'PUT',
    path: '/iam/settings/{setting}',
    action: 'IAM:SetSettings',
    checks: ['action', 'body'],
    read: (request) => {
      const { setting = '' } = request.parameters;
      if (!isSettingName(setting)) throw new LocalError('NOT_FOUND', 'No such setting');
      return { flag: flags[setting], on: decodeFlag(cborBody(request)) };
    },
    answer: async ({ iam, caller, demand, body: { flag, on } }) => {
      await iam.update((draft) => draft.setFlag(flag, on), caller, demand);
      return { status: Status.CHANGED };
    },
  }),
  endpoint({
    method: 'PUT',
    path: '/iam/device-info/friendly-name',
    action: 'IAM:SetDeviceInfo',
    checks: ['action', 'body'],
    read: (request, { rules }) => {
      const name = decodeText(cborBody(request));
      if (name === undefined) throw new LocalError('INVALID_ARGUMENT', 'The friendly name is missing');
      rules.friendlyName(name);
      return name;
    },
    answer: async ({ iam, caller, demand, body }) => {
      await iam.update((draft) => draft.setFriendlyName(body), caller, demand);
      return { status: Status.CHANGED };
    },
  }),
  endpoint({
    method: 'GET',
    path: '/iam/roles',
    action: 'IAM:ListRoles',
    checks: ['action'],
    answer: ({ iam }) => ({ status: Status.CONTENT, payload: encodeNames(iam.roles) }),
  }),
  endpoint({
    method: 'GET',
    path: '/iam/notification-categories',
    action: 'IAM:ListNotificationCategories',
    checks: ['action'],
    answer: ({ iam }) => ({ status: Status.CONTENT, payload: encodeNames(iam.notificationCategories) }),
  }),
];

async function settings(iam: Iam): Promise<Answer> {
  const { passwordOpenPairing, passwordInvitePairing, localOpenPairing, openPairingSct } = iam.state;
  const password = await openPairingPassword(iam);
  const payload = encodeSettings({
    passwordOpenPairing,
    passwordInvitePairing,
    localOpenPairing,
    ...(openPairingSct === undefined ? {} : { passwordOpenSct: openPairingSct }),
    ...(password === undefined ? {} : { passwordOpenPassword: password }),
  });
  return { status: Status.CONTENT, payload };
}

/** Unseals the password. A failure is the device's fault, whatever code the error has. */
async function openPairingPassword(iam: Iam): Promise<string | undefined> {
  try {
    return await iam.openPairingPassword();
  } catch (error) {
    throw new LocalError('FAILED', 'the password of open pairing cannot be unsealed', { cause: error });
  }
}
