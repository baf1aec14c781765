/**
 * The state of access control: users and settings, as immutable values. `state-document.ts` defines its file.
 *
 * It contains no clear password: a user's is kept as a verifier, that of open pairing is sealed.
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
  /** Result of `IamSecrets.seal`. */
  readonly openPairingPasswordSealed?: string;
  readonly openPairingSct?: string;
  /** Role of users that join by open pairing. */
  readonly openPairingRole?: string;
  /** The user that the first client may become by Local Initial. */
  readonly initialPairingUsername?: string;
  readonly friendlyName?: string;
  readonly users: Users;
}

/** The cryptography that the model uses: key derivation, sealing, randomness. */
export interface IamSecrets {
  /** Derives the verifier of a user's password. */
  makeVerifier(password: string): Promise<PasswordVerifier>;
  /** Seals a text for this device only; the result is printable. */
  seal(text: string): Promise<string>;
  /** @throws LocalError when it was not sealed here */
  unseal(sealed: string): Promise<string>;
  /** Returns a fresh random word of 12 characters A-Z a-z 0-9, for server connect tokens and first passwords. */
  makeToken(): string;
}
