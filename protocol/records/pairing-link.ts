/**
 * A pairing as a link, for QR codes and messages (PROTOCOL.md §13.3): `<base>#<binary form>`. Browsers do not send the
 * fragment of a link to the server that its base names (RFC 9110 §7.1), so a page that opens the application learns no
 * password from it.
 */
import { text as anyText, check } from '../arguments.ts';
import { LocalError } from '../errors/index.ts';
import { orElse } from '../or-else.ts';
import { JOIN_PREFIX } from './join-string.ts';
import { decodePairingBytes, encodePairingBytes } from './pairing-bytes.ts';
import { decodePairingString, type PairingString } from './pairing-string.ts';

/** Base of links where the maker of a product sets none: a scheme for an application to register. */
export const DEFAULT_LINK_BASE = 'svc://pair';

const LINK = /^[A-Za-z][A-Za-z0-9+.-]*:\/\/[!"$-~]+$/;
/** Maximum characters of a base. A QR code holds 2,953, and the longest pairing has fewer than 1,400. */
const MAX_BASE = 1024;

/**
 * Returns the link of a pairing. With a password it has no fingerprint of the device, since the password exchange
 * authenticates the device.
 * @param base absolute URL without a fragment
 * @throws LocalError INVALID_ARGUMENT
 */
export function encodePairingLink(pairing: PairingString, base: string = DEFAULT_LINK_BASE): string {
  if (!isLinkBase(base))
    throw new LocalError('INVALID_ARGUMENT', 'the base of a pairing link is an absolute URL without "#", of at most 1,024 characters');
  return `${base}#${encodePairingBytes(pairing)}`;
}

/** Returns true for `scheme://…` of printable ASCII without `#`, of at most 1,024 characters. */
export function isLinkBase(text: string): boolean {
  return typeof text === 'string' && text.length <= MAX_BASE && LINK.test(text);
}

/**
 * Decodes a pairing string or a link.
 * @throws LocalError INVALID_ARGUMENT that says what is wrong
 */
export function decodePairing(text: string): PairingString {
  check('the pairing string', text, anyText);
  const trimmed = text.trim();
  if (trimmed.startsWith(JOIN_PREFIX))
    throw new LocalError('INVALID_ARGUMENT', 'this is a join string, for a device: a client pairs with a pairing string');
  const hash = trimmed.indexOf('#');
  if (hash < 0 || !isLinkBase(trimmed.slice(0, hash))) return decodePairingString(trimmed);
  return decodePairingBytes(trimmed.slice(hash + 1));
}

/** Returns whether a text is a pairing string or a link. */
export function isPairing(text: string): boolean {
  return orElse(() => decodePairing(text), null) !== null;
}
