/**
 * Bodies that are one bare value (docs/iam.md): a setting of the device or of a user, and the lists of users, roles and
 * notification categories. Null stands for an absent text, whose meaning depends on the setting.
 */
import { array, decode, encode, texts, textValue } from '../cbor/index.ts';
import { RemoteError } from '../errors/index.ts';

/** Texts of 1,024 bytes or more are refused (docs/iam.md). */
const TEXT = { max: 1023 };
const MAX_NAMES = 65_535;

/** Body of `PUT /iam/settings/:setting`. */
export function encodeFlag(on: boolean): Uint8Array {
  return encode(on);
}

/** @throws RemoteError PARSE */
export function decodeFlag(payload: Uint8Array): boolean {
  const value = decode(payload);
  if (typeof value !== 'boolean') throw new RemoteError('PARSE', 'body is not a boolean');
  return value;
}

/**
 * Body of `PUT /iam/users/:username/:setting` for text settings, and of the friendly name. undefined is written as
 * null.
 */
export function encodeText(text: string | undefined): Uint8Array {
  return encode(text ?? null);
}

/** Returns undefined for null. @throws RemoteError PARSE */
export function decodeText(payload: Uint8Array): string | undefined {
  const value = decode(payload);
  return value === null ? undefined : textValue(value, 'body', TEXT);
}

/**
 * Body of the answers to `GET /iam/users`, `/iam/roles` and `/iam/notification-categories`, and of a user's
 * `notification-categories`.
 */
export function encodeNames(names: readonly string[]): Uint8Array {
  return encode(names);
}

/** @throws RemoteError PARSE */
export function decodeNames(payload: Uint8Array): string[] {
  return texts(array(decode(payload), 'body', MAX_NAMES), 'body', TEXT);
}
