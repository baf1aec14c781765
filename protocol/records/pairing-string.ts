/**
 * The pairing string: what a device prints and a person hands to a client, `p=<product>,d=<device>,pwd=…,sct=…,u=…,fp=…`.
 *
 * `p` and `d` are required. Pairs may come in any order, each once; unknown names are skipped, so that a newer device can add some.
 * In a value, `%`, `,`, blanks and everything that is no printable ASCII is percent-encoded as UTF-8; the first `=` ends the name and
 * more may follow. So a string of the reference, which has no encoding, reads the same unless a value holds a `%`.
 */
import { utf8Length } from '../cbor/index.ts';
import { LocalError } from '../errors/index.ts';
import { isFingerprint } from '../identity/index.ts';
import { checkIds } from './ids.ts';

/** What a pairing string says. */
export interface PairingString {
  readonly productId: string;
  readonly deviceId: string;
  /** Password of open pairing or of an invitation, at most 64 bytes. */
  readonly password?: string;
  /** Server connect token, at most 64 bytes. */
  readonly sct?: string;
  /** User an invitation is for, at most 64 bytes. */
  readonly username?: string;
  /** Full hex fingerprint of the device. */
  readonly fingerprint?: string;
}

/** Characters of a whole pairing string. */
const MAX_LENGTH = 1024;
/** Bytes of a value. */
const MAX_VALUE = 64;

const names = { p: 'productId', d: 'deviceId', pwd: 'password', sct: 'sct', u: 'username', fp: 'fingerprint' } as const;

/** @throws LocalError INVALID_ARGUMENT for values that cannot stand in a pairing string */
export function encodePairingString(pairing: PairingString): string {
  check(pairing);
  const pairs = Object.entries(names).flatMap(([name, field]) => {
    const value = pairing[field];
    return value === undefined ? [] : [`${name}=${percentEncode(value)}`];
  });
  return pairs.join(',');
}

/** @throws LocalError INVALID_ARGUMENT that says what is wrong */
export function decodePairingString(text: string): PairingString {
  if (text.length > MAX_LENGTH) reject(`it is longer than ${MAX_LENGTH} characters`);
  const found: Partial<Record<(typeof names)[keyof typeof names], string>> = {};
  for (const pair of text.trim().split(',')) {
    const [name, value] = splitPair(pair);
    if (!isName(name)) continue;
    if (found[names[name]] !== undefined) reject(`it has "${name}" twice`);
    found[names[name]] = percentDecode(name, value);
  }
  const { productId, deviceId } = found;
  if (productId === undefined) return reject('it has no product id (p=)');
  if (deviceId === undefined) return reject('it has no device id (d=)');
  const pairing = { ...found, productId, deviceId };
  check(pairing);
  return pairing;
}

function splitPair(pair: string): readonly [string, string] {
  const equals = pair.indexOf('=');
  if (equals < 1) return reject(`"${pair.slice(0, 20)}" is not of the form name=value`);
  return [pair.slice(0, equals).trim(), pair.slice(equals + 1).trim()];
}

function isName(name: string): name is keyof typeof names {
  return Object.hasOwn(names, name);
}

function check({ productId, deviceId, fingerprint, ...values }: PairingString): void {
  checkIds(productId, deviceId);
  if (fingerprint !== undefined && !isFingerprint(fingerprint)) reject('the fingerprint (fp=) must be 64 lower-case hex digits');
  for (const [name, value] of Object.entries(values)) {
    if (value === undefined) continue;
    if (utf8Length(value) > MAX_VALUE || /\p{Surrogate}/u.test(value)) reject(`the ${name} is longer than ${MAX_VALUE} bytes or not text`);
  }
}

function percentEncode(value: string): string {
  return value.replace(/[^!-~]|[%,]/gu, (character) => (character === ',' ? '%2C' : encodeURIComponent(character)));
}

function percentDecode(name: string, value: string): string {
  try {
    // Only what is escaped is decoded: a "+" or an unescaped letter stays.
    return decodeURIComponent(value);
  } catch {
    return reject(`the value of "${name}" has a "%" that begins no percent-encoding`);
  }
}

function reject(problem: string): never {
  throw new LocalError('INVALID_ARGUMENT', `not a pairing string: ${problem}`);
}
