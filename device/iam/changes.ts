/** What a change of the state tells those who listen: told after it is saved, in the order of the changes. */
import type { IamUser, PairingMode, SettingName } from '../../protocol/records/index.ts';

/** Settings of a user, by their name in `PUT /iam/users/:username/:setting`. */
export type UserSetting =
  | 'username'
  | 'display-name'
  | 'password'
  | 'role'
  | 'sct'
  | 'oauth-subject'
  | 'fingerprint'
  | 'push'
  | 'notification-categories';

/** Settings of the device; those beyond the specification's have names in the same manner. */
export type StateSetting =
  | SettingName
  | 'local-initial-pairing'
  | 'open-pairing-password'
  | 'open-pairing-sct'
  | 'open-pairing-role'
  | 'initial-pairing-username'
  | 'friendly-name';

export type IamChange =
  | { readonly kind: 'user-created'; readonly username: string; readonly user: IamUser }
  /** `previous` is the user as it was, with the keys whose connections end and the token to withdraw. */
  | { readonly kind: 'user-deleted'; readonly username: string; readonly previous: IamUser }
  /** `username` is the name after the change. */
  | {
      readonly kind: 'user-changed';
      readonly username: string;
      readonly setting: UserSetting;
      readonly previous: IamUser;
      readonly user: IamUser;
    }
  /** Follows the user-created or user-changed of the same pairing. */
  | { readonly kind: 'user-paired'; readonly username: string; readonly mode: PairingMode; readonly fingerprint: string }
  | { readonly kind: 'settings-changed'; readonly setting: StateSetting }
  | { readonly kind: 'configuration-changed' };

export type IamChangeListener = (change: IamChange) => void;
