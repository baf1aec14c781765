/**
 * Adapts the application's listener to a source of passwords: it is called at each login and answers with the password
 * itself.
 */

import type { Clock, Log } from '../../platform/environment.ts';
import { LocalError } from '../../protocol/errors/index.ts';
import { type Kdf, type PasswordSecret, passwordBytes } from '../../protocol/password/kdf.ts';
import type { DeviceConnection } from '../connections.ts';

/** The source of a device's passwords: the application's listener or the users of IAM. A device has at most one. */
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

/** A client's login as `username`. Answer with `setPassword` within 30 s; no answer counts as no such user. */
export class PasswordAuthenticationRequest {
  /** Empty for the password of open pairing. In Normalization Form C (PROTOCOL.md §8), to be compared in that form. */
  readonly username: string;
  readonly connection: DeviceConnection;
  #answer: ((password: Uint8Array | null) => void) | null;

  /** For the device. */
  constructor(username: string, connection: DeviceConnection, answer: (password: Uint8Array | null) => void) {
    this.username = username;
    this.connection = connection;
    this.#answer = answer;
  }

  /**
   * @param password of the user; null when there is no such user, which the client cannot distinguish from a wrong
   *   password
   * @throws LocalError INVALID_STATE when it was set before; INVALID_ARGUMENT for an empty password, control
   *   characters, or more than 1,024 bytes
   */
  setPassword(password: string | null): void {
    if (this.#answer === null) throw new LocalError('INVALID_STATE', 'the password of this request has already been set');
    const bytes = password === null ? null : passwordBytes(password);
    this.#answer(bytes);
    this.#answer = null;
  }
}

/** Called for every login; its return value is ignored. */
export type PasswordAuthenticationListener = (request: PasswordAuthenticationRequest) => unknown;

const ANSWER_TIMEOUT = 30_000;

/** Returns the source that calls a listener. A listener that fails or stays silent counts as no such user. */
export function listenerSource(listener: PasswordAuthenticationListener, clock: Pick<Clock, 'schedule'>, log: Log): PasswordSource {
  return {
    lookup: (username, connection) =>
      new Promise((resolve) => {
        const answer = (password: Uint8Array | null): void => {
          cancel();
          resolve(password === null ? null : plain(password));
        };
        const cancel = clock.schedule(ANSWER_TIMEOUT, () => {
          log.warn('the password authentication listener did not answer in time');
          resolve(null);
        });
        ask(listener, new PasswordAuthenticationRequest(username, connection, answer)).catch((error: unknown) => {
          log.error('the password authentication listener failed', { error: String(error) });
          cancel();
          resolve(null);
        });
      }),
    kdfOf: () => 0,
    isPaired: () => false,
  };
}

async function ask(listener: PasswordAuthenticationListener, request: PasswordAuthenticationRequest): Promise<void> {
  await listener(request);
}

function plain(password: Uint8Array): PasswordSecret {
  return { kdf: 0, value: password };
}
