/**
 * The state of access control: users and settings, as immutable values. What of it goes to a file is in `state-document.ts`.
 *
 * No clear password is part of it: a user's rests as verifier, the one of open pairing sealed, and both only pass through here.
 */
import type { PasswordVerifier, Users } from './users.ts';

/** The pairing flags. */
export interface PairingFlags {
  readonly localOpenPairing: boolean;
  readonly passwordOpenPairing: boolean;
  readonly passwordInvitePairing: boolean;
  readonly localInitialPairing: boolean;
}

/** Absent fields are not set. */
export interface IamState extends PairingFlags {
  /** Text `IamSecrets.seal` gave. */
  readonly openPairingPasswordSealed?: string;
  readonly openPairingSct?: string;
  /** Role of users that come by open pairing. */
  readonly openPairingRole?: string;
  /** The user whom the first client may become by Local Initial. */
  readonly initialPairingUsername?: string;
  readonly friendlyName?: string;
  readonly users: Users;
}

/** What the model needs and cannot do itself: key derivation, sealing, randomness. */
export interface IamSecrets {
  /** Derives what is kept of a user's password. */
  makeVerifier(password: string): Promise<PasswordVerifier>;
  /** Seals a text for this device only; the result is printable. */
  seal(text: string): Promise<string>;
  /** @throws LocalError when it was not sealed here */
  unseal(sealed: string): Promise<string>;
  /** A fresh random word of 12 characters A-Z a-z 0-9, for server connect tokens and first passwords. */
  makeToken(): string;
}
