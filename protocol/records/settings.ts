/**
 * Settings of the device (reference §1.2): the names `PUT /iam/settings/:setting` takes, and the record `GET /iam/settings` gives, a map with
 * `PasswordOpenPairing`, `PasswordInvitePairing`, `LocalOpenPairing`, `PasswordOpenSct?` and `PasswordOpenPassword?`, the latter in clear.
 */
import { bool, decode, encode, map, optionalText } from '../cbor/index.ts';

/** Setting of the path → field of the record; the values are booleans. */
export const settingFields = {
  'password-open-pairing': 'PasswordOpenPairing',
  'password-invite-pairing': 'PasswordInvitePairing',
  'local-open-pairing': 'LocalOpenPairing',
} as const;

export type SettingName = keyof typeof settingFields;

/** Absent fields are not set. */
export interface DeviceSettings {
  readonly passwordOpenPairing: boolean;
  readonly passwordInvitePairing: boolean;
  readonly localOpenPairing: boolean;
  /** Server connect token for whoever pairs openly. */
  readonly passwordOpenSct?: string;
  readonly passwordOpenPassword?: string;
}

/** The reference refuses texts of 1024 bytes or more. */
const TEXT = { max: 1023 };

/** True for a setting of the path. */
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
