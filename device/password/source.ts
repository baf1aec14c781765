/**
 * The source of a device's passwords: the application's listener (`requests.ts`) or the users of IAM. A device has at
 * most one.
 */
import type { Kdf, PasswordSecret } from '../../protocol/password/kdf.ts';
import type { DeviceConnection } from '../connections.ts';

export interface PasswordSource {
  /**
   * Returns a user's stored password; null for a name without one, known or not. Called once per run. The
   * caller wipes the bytes of `value`, so return a copy. A rejection is logged and counts as null.
   */
  lookup(username: string, connection: DeviceConnection): PasswordSecret | null | Promise<PasswordSecret | null>;
  /** Returns the Kdf shown for a name without a password: the one it would have if it existed. */
  kdfOf(username: string): Kdf;
  /** Whether the client's key is paired to this very user: such a client has its own count of attempts. */
  isPaired(username: string, connection: DeviceConnection): boolean;
}
