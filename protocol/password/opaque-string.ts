/**
 * The form in which both ends compare passwords, and the user names of logins: OpaqueString (RFC 8265 §4.2). The same
 * word typed on two keyboards has the same bytes. Letters keep their case and width.
 *
 * 1. Any space other than U+0020 becomes U+0020.
 * 2. Normalization Form C.
 *
 * Of the characters that FreeformClass excludes (RFC 8264 §4.3) only control characters are refused. The others depend
 * on the version of Unicode, which may differ between the ends. The length is the business of the caller: for a user
 * name the empty text has a meaning.
 */
import { check, isText, type Kind } from '../arguments.ts';

const OPAQUE: Kind = [(value) => isText(value) && !/\p{Cc}/u.test(value), 'text without control characters and half characters'];

/** Returns the form of a text that counts. @param what as in "the password". @throws LocalError INVALID_ARGUMENT */
export function opaqueString(what: string, given: string): string {
  check(what, given, OPAQUE);
  return given.replace(/\p{Zs}/gu, ' ').normalize('NFC');
}
