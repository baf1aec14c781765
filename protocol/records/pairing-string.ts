/**
 * The pairing string (PROTOCOL.md §13.1), which a device prints for a client:
 * `p=<product>,d=<device>,s=<base station>,sf=…,a=…,pwd=…,sct=…,u=…,fp=…`.
 *
 * `p` and `d` are required. Pairs may be in any order, each once; unknown names are skipped, so that a newer device can
 * add some. In a value, `%`, `,`, blanks and everything that is not printable ASCII are percent-encoded as UTF-8; the
 * first `=` ends the name and more may follow. A string without any encoding reads the same unless a value holds a `%`.
 */
import { checkOptions, type Kind, text, texts } from '../arguments.ts';
import { utf8Length } from '../cbor/index.ts';
import { LocalError } from '../errors/index.ts';
import { isFingerprint } from '../identity/index.ts';
import { isHostPort } from './host-port.ts';
import { checkIds } from './ids.ts';

/** The contents of a pairing string. */
export interface PairingString {
  readonly productId: string;
  readonly deviceId: string;
  /** Base station of the device, `host:port`, at most 255 bytes. */
  readonly server?: string;
  /** Full hex fingerprint of the base station; omitted where TLS proves it. */
  readonly serverFingerprint?: string;
  /** Addresses of the device on its local network, 1 to 8 times `host:port`. */
  readonly addresses?: readonly string[];
  /** Password of open pairing or of an invitation, at most 64 bytes. */
  readonly password?: string;
  /** Server connect token, at most 64 bytes. */
  readonly sct?: string;
  /** The user of an invitation, at most 64 bytes. */
  readonly username?: string;
  /** Full hex fingerprint of the device. */
  readonly fingerprint?: string;
}

/** Maximum characters of a whole pairing string. */
const MAX_LENGTH = 1024;
/** Maximum bytes of a password, token or user name. */
const MAX_VALUE = 64;
/** Most addresses of a device. */
export const MAX_ADDRESSES = 8;
/** Separator of addresses. */
const SEPARATOR = ';';

/** In the order of encoding. */
const names = {
  p: 'productId',
  d: 'deviceId',
  s: 'server',
  sf: 'serverFingerprint',
  a: 'addresses',
  pwd: 'password',
  sct: 'sct',
  u: 'username',
  fp: 'fingerprint',
} as const;

const KINDS: Record<keyof PairingString, Kind> = {
  productId: text,
  deviceId: text,
  server: text,
  serverFingerprint: text,
  addresses: texts,
  password: text,
  sct: text,
  username: text,
  fingerprint: text,
};

/** @throws LocalError INVALID_ARGUMENT for values that a pairing string cannot hold */
export function encodePairingString(pairing: PairingString): string {
  checkPairing(pairing);
  const pairs = Object.entries(names).flatMap(([name, field]) => {
    const value = field === 'addresses' ? pairing.addresses?.join(SEPARATOR) : pairing[field];
    return value === undefined ? [] : [`${name}=${percentEncode(value)}`];
  });
  const text = pairs.join(',');
  if (text.length > MAX_LENGTH) reject(`it is longer than ${MAX_LENGTH} characters`);
  return text;
}

/** @throws LocalError INVALID_ARGUMENT that says what is wrong without repeating a value, as one may be a password */
export function decodePairingString(text: string): PairingString {
  if (text.length > MAX_LENGTH) reject(`it is longer than ${MAX_LENGTH} characters`);
  const found: Partial<Record<(typeof names)[keyof typeof names], string>> = {};
  for (const [index, pair] of text.trim().split(',').entries()) {
    const [name, value] = splitPair(pair, index + 1);
    if (!isName(name)) continue;
    if (found[names[name]] !== undefined) reject(`it has "${name}" twice`);
    found[names[name]] = percentDecode(name, value);
  }
  const { productId, deviceId, addresses, ...rest } = found;
  if (productId === undefined) return reject('it has no product id (p=)');
  if (deviceId === undefined) return reject('it has no device id (d=)');
  const pairing = { productId, deviceId, ...rest, ...(addresses !== undefined && { addresses: addresses.split(SEPARATOR) }) };
  checkPairing(pairing);
  return pairing;
}

/** @throws LocalError INVALID_ARGUMENT for values that no form of a pairing may have */
export function checkPairing(pairing: PairingString): void {
  checkOptions('a pairing', pairing, KINDS);
  const { productId, deviceId, server, serverFingerprint, addresses, fingerprint, ...texts } = pairing;
  checkIds(productId, deviceId);
  if (server !== undefined && !isHostPort(server)) reject('the base station (s=) must be host:port');
  if (serverFingerprint !== undefined && server === undefined)
    reject('it has a fingerprint of a base station (sf=) and no base station (s=)');
  checkFingerprint('base station (sf=)', serverFingerprint);
  checkFingerprint('device (fp=)', fingerprint);
  if (addresses !== undefined && (addresses.length < 1 || addresses.length > MAX_ADDRESSES || !addresses.every(isHostPort)))
    reject(`the addresses (a=) must be 1 to ${MAX_ADDRESSES} times host:port, with "${SEPARATOR}" between them`);
  for (const [name, value] of Object.entries(texts)) {
    if (value === undefined) continue;
    if (utf8Length(value) > MAX_VALUE) reject(`the ${name} is longer than ${MAX_VALUE} bytes`);
  }
}

function checkFingerprint(of: string, fingerprint: string | undefined): void {
  if (fingerprint !== undefined && !isFingerprint(fingerprint))
    reject(`the fingerprint of the ${of} must be 64 lower-case hex digits: it is cut or mistyped`);
}

/** @param position of the pair, from 1 */
function splitPair(pair: string, position: number): readonly [string, string] {
  const equals = pair.indexOf('=');
  if (equals < 1) return reject(`part ${position} of it is not of the form name=value: it is cut or mistyped`);
  return [pair.slice(0, equals).trim(), pair.slice(equals + 1).trim()];
}

function isName(name: string): name is keyof typeof names {
  return Object.hasOwn(names, name);
}

function percentEncode(value: string): string {
  return value.replace(/[^!-~]|[%,]/gu, (character) => (character === ',' ? '%2C' : encodeURIComponent(character)));
}

function percentDecode(name: string, value: string): string {
  try {
    // Only escapes are decoded: a "+" or an unescaped letter stays.
    return decodeURIComponent(value);
  } catch {
    return reject(`the value of "${name}" has a "%" that begins no percent-encoding`);
  }
}

function reject(problem: string): never {
  throw new LocalError('INVALID_ARGUMENT', `not a pairing string: ${problem}`);
}
