/**
 * A pairing as bytes, for links and QR codes: the fields of a pairing string in the binary form, version 1. With a
 * password it omits the device's fingerprint: the password exchange authenticates the device, and a QR code has to be
 * small.
 *
 * A host and port is a kind (1) and its bytes: 4 for an IPv4 address (4 · port), 6 for an IPv6 address (16 · port),
 * else 0 for text (length · `host:port`).
 */
import { hex } from '@scure/base';
import { formatAddress, parseAddress } from '../address.ts';
import { LocalError } from '../errors/index.ts';
import { type BinaryField, decodeBinaryForm, encodeBinaryForm } from './binary-form.ts';
import { formatHostPort } from './host-port.ts';
import { checkPairing, type PairingString } from './pairing-string.ts';

const VERSION = 1;
const TAG = {
  productId: 1,
  deviceId: 2,
  server: 3,
  serverFingerprint: 4,
  addresses: 5,
  password: 6,
  sct: 7,
  username: 8,
  fingerprint: 9,
} as const;
const KIND = { text: 0, ipv4: 4, ipv6: 6 } as const;
const NAME = 'a pairing link';
/** Fields of UTF-8 text. */
const TEXTS = ['productId', 'deviceId', 'password', 'sct', 'username'] as const;
/** Fields of 32 bytes. */
const FINGERPRINTS = ['serverFingerprint', 'fingerprint'] as const;

/** Returns the binary form of a pairing. @throws LocalError INVALID_ARGUMENT for values that it cannot hold */
export function encodePairingBytes(pairing: PairingString): string {
  checkPairing(pairing);
  const { server, addresses, password } = pairing;
  const fields: BinaryField[] = [];
  for (const name of TEXTS) {
    const text = pairing[name];
    if (text !== undefined) fields.push([TAG[name], new TextEncoder().encode(text)]);
  }
  for (const name of FINGERPRINTS) {
    const fingerprint = pairing[name];
    const proved = name === 'fingerprint' && password !== undefined;
    if (fingerprint !== undefined && !proved) fields.push([TAG[name], hex.decode(fingerprint)]);
  }
  if (server !== undefined) fields.push([TAG.server, packHostPort(server)]);
  if (addresses !== undefined) fields.push([TAG.addresses, Uint8Array.from(addresses.flatMap((each) => [...packHostPort(each)]))]);
  return encodeBinaryForm(VERSION, fields);
}

/**
 * @throws LocalError INVALID_ARGUMENT that says whether the link is damaged or of a newer version, without repeating
 *   any of it
 */
export function decodePairingBytes(text: string): PairingString {
  const fields = decodeBinaryForm(text, VERSION, NAME);
  const given: Partial<Record<keyof PairingString, string | readonly string[]>> = {};
  for (const name of TEXTS) {
    const bytes = fields.get(TAG[name]);
    if (bytes !== undefined) given[name] = decodeText(bytes);
  }
  for (const name of FINGERPRINTS) {
    const bytes = fields.get(TAG[name]);
    if (bytes !== undefined) given[name] = hex.encode(bytes);
  }
  const [server, addresses] = [fields.get(TAG.server), fields.get(TAG.addresses)];
  if (server !== undefined) given.server = unpackHostPorts(server, 1)[0] as string;
  if (addresses !== undefined) given.addresses = unpackHostPorts(addresses, Number.POSITIVE_INFINITY);
  const pairing = { productId: '', deviceId: '', ...given } as PairingString;
  checkPairing(pairing);
  return pairing;
}

/** @param text `host:port` */
function packHostPort(text: string): Uint8Array {
  const colon = text.lastIndexOf(':');
  const port = Number(text.slice(colon + 1));
  const address = parseAddress(text.slice(0, colon).replace(/^\[|\]$/g, ''));
  // Another spelling of an address stays text, so that decoding returns what was encoded.
  if (address === null || hostPortOf(address, port) !== text)
    return Uint8Array.of(KIND.text, text.length, ...new TextEncoder().encode(text));
  return Uint8Array.of(address.length === 4 ? KIND.ipv4 : KIND.ipv6, ...address, port >> 8, port & 0xff);
}

/** @throws LocalError INVALID_ARGUMENT for none, more than `most`, or invalid bytes */
function unpackHostPorts(bytes: Uint8Array, most: number): string[] {
  const found: string[] = [];
  for (let at = 0; at < bytes.length; ) {
    const [kind, next = 0] = bytes.subarray(at);
    const start = kind === KIND.text ? at + 2 : at + 1;
    const end = start + (kind === KIND.text ? next : kind === KIND.ipv4 ? 6 : kind === KIND.ipv6 ? 18 : Number.POSITIVE_INFINITY);
    if (end > bytes.length || found.length >= most) return damaged();
    const part = bytes.subarray(start, end);
    found.push(kind === KIND.text ? decodeText(part) : hostPortOf(part.subarray(0, -2), (part.at(-2)! << 8) | part.at(-1)!));
    at = end;
  }
  return found.length > 0 ? found : damaged();
}

function hostPortOf(address: Uint8Array, port: number): string {
  return formatHostPort({ host: formatAddress(address), port });
}

function decodeText(bytes: Uint8Array): string {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return damaged();
  }
}

function damaged(): never {
  throw new LocalError('INVALID_ARGUMENT', `not ${NAME}: a field of it is damaged; copy the whole of it again`);
}
