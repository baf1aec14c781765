/** Changes of the state as listeners receive them: after the save, in the order of the changes. */
import type { IamUser, PairingMode, SettingName } from '../../protocol/records/index.ts';
import type { Caller } from './caller.ts';

/** Settings of a user, by their name in `PUT /iam/users/{username}/{setting}`. */
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

/** Settings of the device; those beyond the specification's are named in the same way. */
export type StateSetting =
  | SettingName
  | 'local-initial-pairing'
  | 'open-pairing-password'
  | 'open-pairing-sct'
  | 'open-pairing-role'
  | 'initial-pairing-username'
  | 'friendly-name';

/** The caller that requested a change, with the name of its user before the change. */
export interface ChangeAuthor extends Caller {
  readonly username?: string;
}

type Change =
  | { readonly kind: 'user-created'; readonly username: string; readonly user: IamUser }
  /** `previous` is the user before the change, with the keys whose connections end and the token to withdraw. */
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
  /** `value` is the new one; absent when it was cleared, and always absent for a secret. */
  | { readonly kind: 'settings-changed'; readonly setting: StateSetting; readonly value?: boolean | string }
  | { readonly kind: 'configuration-changed' };

/** A change; without `by` the application itself made it. */
export type IamChange = Change & { readonly by?: ChangeAuthor };

export type IamChangeListener = (change: IamChange) => void;

/** Adds changes to a record, such as an audit log; they are acknowledged when it resolves. */
export type IamRecorder = (changes: readonly IamChange[]) => Promise<void>;
