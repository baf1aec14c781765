/**
 * The pairing string as a link, for QR codes and messages: `<base>#<pairing string>`. The fragment of a link is not sent to the server that its
 * base names (RFC 9110 §7.1), so a page that opens the application learns no password from it.
 *
 * What a fragment cannot hold (RFC 3986 §3.5) is percent-encoded in addition; a reader of pairing strings decodes it like the rest.
 */
import { LocalError } from '../errors/index.ts';
import { decodePairingString, encodePairingString, type PairingString } from './pairing-string.ts';

/** Base of links where the maker of a product gives none: a scheme for an application to register. */
export const DEFAULT_LINK_BASE = 'svc://pair';

const LINK = /^[A-Za-z][A-Za-z0-9+.-]*:\/\/[!"$-~]+$/;

/**
 * @param base absolute URL without a fragment
 * @throws LocalError INVALID_ARGUMENT
 */
export function encodePairingLink(pairing: PairingString, base: string = DEFAULT_LINK_BASE): string {
  if (!isLinkBase(base)) throw new LocalError('INVALID_ARGUMENT', 'the base of a pairing link is an absolute URL without "#"');
  const fragment = encodePairingString(pairing).replace(
    /[^A-Za-z0-9._~!$&'()*+,;=:@/?%-]/g,
    (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`,
  );
  return `${base}#${fragment}`;
}

/** True for `scheme://…` of printable ASCII without `#`. */
export function isLinkBase(text: string): boolean {
  return LINK.test(text);
}

/** The pairing string itself, or a link that carries one. @throws LocalError INVALID_ARGUMENT that says what is wrong */
export function decodePairing(text: string): PairingString {
  const trimmed = text.trim();
  const hash = trimmed.indexOf('#');
  const link = hash >= 0 && isLinkBase(trimmed.slice(0, hash));
  return decodePairingString(link ? trimmed.slice(hash + 1) : trimmed);
}
