/**
 * Private keys as PKCS#8 PEM (RFC 8410 §7, RFC 7468), the form that `openssl genpkey -algorithm x25519` writes.
 *
 * Writes only version 1, without attributes and without the optional public key. Also reads version 2 with trailing
 * attributes or public key, and ignores these.
 */
import { base64 } from '@scure/base';
import { check, text } from '../arguments.ts';
import { LocalError } from '../errors/index.ts';
import { KEY_LENGTH } from './public-key.ts';

const BEGIN = '-----BEGIN PRIVATE KEY-----';
const END = '-----END PRIVATE KEY-----';
const LINE = 64;

/** DER before the 32 key bytes: SEQUENCE { INTEGER 0, SEQUENCE { OID 1.3.101.110 }, OCTET STRING { OCTET STRING } }. */
const PKCS8_PREFIX = Uint8Array.of(0x30, 0x2e, 0x02, 0x01, 0x00, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x6e, 0x04, 0x22, 0x04, 0x20);
/** Positions in that prefix that the version and optional trailing fields change: total length and version. */
const LENGTH_AT = 1;
const VERSION_AT = 4;

/** Returns the PEM text of 32 raw private bytes, ending with a newline. */
export function encodePrivateKey(raw: Uint8Array): string {
  checkPrivateKey(raw);
  const der = new Uint8Array(PKCS8_PREFIX.length + KEY_LENGTH);
  der.set(PKCS8_PREFIX);
  der.set(raw, PKCS8_PREFIX.length);
  const lines = base64.encode(der).match(new RegExp(`.{1,${LINE}}`, 'g')) ?? [];
  der.fill(0);
  return [BEGIN, ...lines, END, ''].join('\n');
}

/** Returns the same 32 raw private bytes. @throws LocalError INVALID_ARGUMENT for any other length */
export function checkPrivateKey(raw: Uint8Array): Uint8Array {
  if (raw.length !== KEY_LENGTH)
    throw new LocalError('INVALID_ARGUMENT', `an X25519 private key has ${KEY_LENGTH} bytes, not ${raw.length}`);
  return raw;
}

/**
 * Returns the 32 raw private bytes of a PEM text.
 * @throws LocalError INVALID_ARGUMENT for anything but one X25519 key in PKCS#8
 */
export function decodePrivateKey(pem: string): Uint8Array {
  check('the private key', pem, text);
  const begin = pem.indexOf(BEGIN);
  const end = pem.indexOf(END);
  if (begin < 0 || end < begin) throw invalid('it has no PRIVATE KEY block');
  const der = decodeBase64(pem.slice(begin + BEGIN.length, end).replace(/[\r\n\t ]/g, ''));
  if (!isX25519(der)) throw invalid('it is not an X25519 key in PKCS#8 form (RFC 8410)');
  return der.slice(PKCS8_PREFIX.length, PKCS8_PREFIX.length + KEY_LENGTH);
}

function isX25519(der: Uint8Array): boolean {
  if (der.length < PKCS8_PREFIX.length + KEY_LENGTH || der[LENGTH_AT] !== der.length - 2 || der[LENGTH_AT]! > 0x7f) return false;
  if (der[VERSION_AT]! > 1) return false;
  return PKCS8_PREFIX.every((byte, i) => i === LENGTH_AT || i === VERSION_AT || der[i] === byte);
}

function decodeBase64(text: string): Uint8Array {
  try {
    return base64.decode(text);
  } catch {
    throw invalid('its base64 is damaged');
  }
}

function invalid(problem: string): LocalError {
  return new LocalError('INVALID_ARGUMENT', `the private key cannot be read: ${problem}`);
}
