/**
 * Where a device's passwords come from: the application's listener (`requests.ts`) or the users of IAM. A device has one source or none.
 */
import type { Kdf, PasswordSecret } from '../../protocol/password/kdf.ts';
import type { DeviceConnection } from '../connections.ts';

export interface PasswordSource {
  /**
   * What is held of a user's password; null for a name that has none, known or not. Asked once per run. The bytes of `value` are the caller's to wipe,
   * so give a copy. A rejection is logged and counts as null.
   */
  lookup(username: string, connection: DeviceConnection): PasswordSecret | null | Promise<PasswordSecret | null>;
  /** The Kdf that a name without a password is to show: the one it would have if it were there. */
  kdfOf(username: string): Kdf;
  /** Whether the client's key is paired to this very user: such a client has its own count of attempts. */
  isPaired(username: string, connection: DeviceConnection): boolean;
}
