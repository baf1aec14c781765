/**
 * From a password to the string for CPace (PROTOCOL.md §8). Kdf 0 uses the password itself, for a device that has it in
 * plain text. Kdf 1 is scrypt (RFC 7914) with a salt of the user, so that a device keeps only the result.
 */
import type { CryptoProvider, ScryptCost } from '../crypto-provider.ts';
import { LocalError } from '../errors/index.ts';
import { opaqueString } from './opaque-string.ts';
import { lvCat } from './strings.ts';

/** 0: UTF-8 bytes of the password, see {@link passwordBytes}. 1: scrypt of them. */
export type Kdf = 0 | 1;

/** Length of a salt, bytes. */
export const SALT_LENGTH = 16;
/** Length of scrypt's output, bytes. */
export const VALUE_LENGTH = 32;
/** Maximum UTF-8 bytes of a password, in the form of `opaqueString`. */
export const MAX_PASSWORD = 1024;
/** 16 MiB and some 40 ms: acceptable on a phone at every login. */
export const SCRYPT_COST: ScryptCost = { N: 2 ** 14, r: 8, p: 1 };

/**
 * The form of a user's password that a device keeps. Secret: an attacker that has it can impersonate the device and try
 * passwords at scrypt's cost.
 */
export interface PasswordVerifier {
  readonly kdf: 1;
  /** {@link SALT_LENGTH} random bytes. */
  readonly salt: Uint8Array;
  /** {@link VALUE_LENGTH} bytes. */
  readonly value: Uint8Array;
}

/** A password in plain text. */
export interface PlainPassword {
  readonly kdf: 0;
  /** Its UTF-8 bytes. */
  readonly value: Uint8Array;
}

/** The device's form of a password. */
export type PasswordSecret = PlainPassword | PasswordVerifier;

const text = new TextEncoder();

/**
 * Returns the UTF-8 of a password in the form of `opaqueString`.
 * @throws LocalError INVALID_ARGUMENT for an empty password, control characters, and above {@link MAX_PASSWORD} bytes
 */
export function passwordBytes(password: string): Uint8Array {
  const bytes = text.encode(opaqueString('the password', password));
  if (bytes.length === 0 || bytes.length > MAX_PASSWORD) {
    throw new LocalError('INVALID_ARGUMENT', `a password has 1 to ${MAX_PASSWORD} bytes of UTF-8`);
  }
  return bytes;
}

/** Returns a verifier with a fresh salt. @throws LocalError as {@link passwordBytes} */
export async function makeVerifier(
  crypto: Pick<CryptoProvider, 'randomBytes' | 'scrypt'>,
  password: string,
  cost: ScryptCost = SCRYPT_COST,
): Promise<PasswordVerifier> {
  const bytes = passwordBytes(password);
  const salt = crypto.randomBytes(SALT_LENGTH);
  const value = await crypto.scrypt(bytes, salt, cost, VALUE_LENGTH);
  bytes.fill(0);
  return { kdf: 1, salt, value };
}

/** Returns `value` of the password-related string, for the Kdf and salt that a device names. The caller wipes it. */
export async function deriveValue(
  crypto: Pick<CryptoProvider, 'scrypt'>,
  password: Uint8Array,
  salt: Uint8Array | null,
  cost: ScryptCost = SCRYPT_COST,
): Promise<Uint8Array> {
  return salt === null ? password.slice() : crypto.scrypt(password, salt, cost, VALUE_LENGTH);
}

/** Returns the password-related string: the same value under another Kdf is another password. The caller wipes it. */
export function passwordString(kdf: Kdf, value: Uint8Array): Uint8Array {
  return lvCat(Uint8Array.of(kdf), value);
}
