/**
 * Settings of the device (docs/iam.md): the names for `PUT /iam/settings/:setting`, and the record of
 * `GET /iam/settings`, a map with `PasswordOpenPairing`, `PasswordInvitePairing`, `LocalOpenPairing`,
 * `PasswordOpenSct?` and `PasswordOpenPassword?`, the latter in plain text.
 */
import { bool, decode, encode, map, optionalText } from '../cbor/index.ts';

/** Path setting → field of the record; the values are booleans. */
export const settingFields = {
  'password-open-pairing': 'PasswordOpenPairing',
  'password-invite-pairing': 'PasswordInvitePairing',
  'local-open-pairing': 'LocalOpenPairing',
} as const;

export type SettingName = keyof typeof settingFields;
export const settingNames = Object.keys(settingFields) as readonly SettingName[];

/** Absent fields are not set. */
export interface DeviceSettings {
  readonly passwordOpenPairing: boolean;
  readonly passwordInvitePairing: boolean;
  readonly localOpenPairing: boolean;
  /** Server connect token for clients that pair openly. */
  readonly passwordOpenSct?: string;
  readonly passwordOpenPassword?: string;
}

/** Texts of 1,024 bytes or more are refused (docs/iam.md). */
const TEXT = { max: 1023 };

/** Returns true for a path setting. */
export function isSettingName(name: string): name is SettingName {
  return Object.hasOwn(settingFields, name);
}

/** Body of the answer to `GET /iam/settings`. */
export function encodeSettings(settings: DeviceSettings): Uint8Array {
  return encode({
    PasswordOpenPairing: settings.passwordOpenPairing,
    PasswordInvitePairing: settings.passwordInvitePairing,
    LocalOpenPairing: settings.localOpenPairing,
    PasswordOpenSct: settings.passwordOpenSct,
    PasswordOpenPassword: settings.passwordOpenPassword,
  });
}

/** @throws RemoteError PARSE */
export function decodeSettings(payload: Uint8Array): DeviceSettings {
  const body = map(decode(payload));
  const [sct, password] = [optionalText(body, 'PasswordOpenSct', TEXT), optionalText(body, 'PasswordOpenPassword', TEXT)];
  return {
    passwordOpenPairing: bool(body, 'PasswordOpenPairing'),
    passwordInvitePairing: bool(body, 'PasswordInvitePairing'),
    localOpenPairing: bool(body, 'LocalOpenPairing'),
    ...(sct === undefined ? {} : { passwordOpenSct: sct }),
    ...(password === undefined ? {} : { passwordOpenPassword: password }),
  };
}
