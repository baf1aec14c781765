/** Names of the device's settings (reference §1.2): as `PUT /iam/settings/:setting` takes them, and as `GET /iam/settings` gives them. */

/** Setting of the path → field of the record; the values are booleans. */
export const settingFields = {
  'password-open-pairing': 'PasswordOpenPairing',
  'password-invite-pairing': 'PasswordInvitePairing',
  'local-open-pairing': 'LocalOpenPairing',
} as const;

export type SettingName = keyof typeof settingFields;

/** Fields of the record that are no setting: present when set. */
export const settingTexts = ['PasswordOpenSct', 'PasswordOpenPassword'] as const;

/** True for a setting of the path. */
export function isSettingName(name: string): name is SettingName {
  return Object.hasOwn(settingFields, name);
}
