/**
 * Creates, checks and compares ids and secrets.
 *
 * Ids are `<prefix>-` and 8 random letters and digits, or chosen by the operator. Secrets are shown once and stored as
 * SHA-256: they carry 128 bits or more, so a fast hash without salt is enough. Randomness is an argument, by default
 * the system's.
 */

import { createHash, randomBytes, timingSafeEqual } from 'node:crypto';
import { text as anyText, check } from '../../protocol/arguments.ts';
import { JOIN_TOKEN } from '../../protocol/control/index.ts';

/** Returns `length` random bytes. */
export type RandomBytes = (length: number) => Uint8Array;

/** Prefixes of ids: organization, product, device, server key, API key, service. */
export type IdPrefix = 'or' | 'pr' | 'de' | 'ap' | 'ak' | 'se';

const alphabet = 'abcdefghijklmnopqrstuvwxyz234567';

/** Returns a random id of 40 bits after its prefix, e.g. `pr-k4x2mq7a`. */
export function newId(prefix: IdPrefix, random: RandomBytes = randomBytes): string {
  check('the prefix of an id', prefix, anyText);
  return `${prefix}-${Array.from(random(8), (byte) => alphabet[byte & 31]).join('')}`;
}

/** Returns a server key: `sk-` and 128 random bits in hex. */
export function newServerKey(random: RandomBytes = randomBytes): string {
  return `sk-${Buffer.from(random(16)).toString('hex')}`;
}

/** Returns true for a server key that an operator may choose: `sk-` and 16 to 125 letters, digits, `-` and `_`. */
export function isServerKey(text: string): boolean {
  return /^sk-[A-Za-z0-9_-]{16,125}$/.test(text);
}

/**
 * Returns the Bearer of an API key: its id, a dot, 256 random bits in base64url. The id finds the record, the rest
 * proves the key.
 */
export function newApiKeySecret(apikeyId: string, random: RandomBytes = randomBytes): string {
  check('the id of an API key', apikeyId, anyText);
  return `${apikeyId}.${Buffer.from(random(32)).toString('base64url')}`;
}

/** Returns SHA-256 of the text's UTF-8 bytes, 64 lower-case hex. */
export function hashSecret(text: string): string {
  check('the secret', text, anyText);
  return createHash('sha256').update(text, 'utf8').digest('hex');
}

/** Returns a token of an invitation: 128 random bits. */
export function newInvitationToken(random: RandomBytes = randomBytes): Uint8Array {
  return random(JOIN_TOKEN);
}

/** Returns SHA-256 of an invitation's token, 64 lower-case hex. */
export function hashToken(token: Uint8Array): string {
  return createHash('sha256').update(token).digest('hex');
}

/** Compares two hashes of {@link hashSecret} in constant time. */
export function sameHash(a: string, b: string): boolean {
  const left = Buffer.from(a, 'latin1');
  const right = Buffer.from(b, 'latin1');
  return left.length === right.length && timingSafeEqual(left, right);
}
