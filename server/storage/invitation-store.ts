/**
 * Invitations: each lets one device join a product, with the key it proves.
 *
 * The store never sees a token: it gets and keeps the SHA-256, which also names the invitation. Times are ISO 8601 UTC
 * with milliseconds, so that they compare as texts.
 */

/** ms for which an invitation may be valid, and the default; USED: for which a used one is kept and shown. */
export const InvitationLifetime = { MIN: 60_000, MAX: 30 * 86_400_000, DEFAULT: 86_400_000, USED: 30 * 86_400_000 } as const;

/** The device that used an invitation. */
interface InvitationUse {
  deviceId: string;
  /** Full hex of its key. */
  fingerprint: string;
  /** Numeric address from which it came. */
  address: string;
  time: string;
}

/** One invitation. */
export interface Invitation {
  /** SHA-256 of the token, 64 lower-case hex. */
  tokenHash: string;
  productId: string;
  /** Null: device or base station chooses. */
  deviceId: string | null;
  expires: string;
  /** Who created it, for a person to read. */
  maker: string;
  created: string;
  revoked: boolean;
  /** Null while it is open. */
  use: InvitationUse | null;
}

/** An invitation to add. */
export type NewInvitation = Omit<Invitation, 'revoked' | 'use'>;

/** The use of an invitation by a device. */
export interface Redemption extends InvitationUse {
  tokenHash: string;
}

/** A correction of invitations after the wall clock was set. */
export interface TimeShift {
  /** Those that were created from this time on, up to that one. */
  from: string;
  to: string;
  /** ms that are added to all their times. */
  by: number;
}

/** The part of the storage that joins need. */
export interface InvitationStore {
  /** Returns all of them, the oldest first. */
  all(): Promise<Invitation[]>;
  find(tokenHash: string): Promise<Invitation | null>;
  /**
   * Adds one, unless its product has `limit` open ones.
   * @returns false when it has
   * @throws LocalError NOT_FOUND without the product
   */
  add(invitation: NewInvitation, limit: number): Promise<boolean>;
  /**
   * Uses an open invitation for a device of its product. The device is added, or, if the invitation names it and it has
   * no key yet, gets this key. All or nothing, and durable when it resolves.
   * @returns taken: the device id belongs to another key. closed: the invitation is not open
   */
  redeem(redemption: Redemption): Promise<'joined' | 'taken' | 'closed'>;
  /** Returns false when there is no such invitation, or it was used. */
  revoke(tokenHash: string): Promise<boolean>;
  /** Moves the times of invitations. All or nothing. */
  shift(shift: TimeShift): Promise<void>;
  /** Removes invitations that expired unused by `now`, and those that were used before `usedBefore`. */
  forget(now: string, usedBefore: string): Promise<void>;
}
