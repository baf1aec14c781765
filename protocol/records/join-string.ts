/**
 * The join string, `svc://join#~…` (PROTOCOL.md §13.4): an operator of a base station gives it to the person who sets
 * up a board. It has the base station's address, how to verify it, the product and device that the board becomes, and
 * the token of one invitation. It always has the binary form.
 */
import { hex } from '@scure/base';
import { text as anyText, check as checkValue } from '../arguments.ts';
import { JOIN_TOKEN } from '../control/field-bounds.ts';
import { LocalError } from '../errors/index.ts';
import { isFingerprint } from '../identity/index.ts';
import { BINARY_MARK, type BinaryField, decodeBinaryForm, encodeBinaryForm } from './binary-form.ts';
import { isHostPort } from './host-port.ts';
import { areIds, isId } from './ids.ts';

/** The contents of a join string. */
export interface JoinString {
  /** The base station, `host:port`, at most 255 bytes. */
  readonly server: string;
  /** Full hex fingerprint of the base station; omitted where TLS proves it. */
  readonly serverFingerprint?: string;
  readonly productId: string;
  /** Omitted where the invitation leaves it open. */
  readonly deviceId?: string;
  /** 16 random bytes. */
  readonly token: Uint8Array;
}

/** Prefix of every join string. */
export const JOIN_PREFIX = `svc://join#${BINARY_MARK}`;

const VERSION = 1;
const TAG = { server: 1, serverFingerprint: 2, productId: 3, deviceId: 4, token: 5 } as const;
const NAME = 'a join string';

/** @throws LocalError INVALID_ARGUMENT for values that a join string cannot hold */
export function encodeJoinString(join: JoinString): string {
  check(join);
  const { server, serverFingerprint, productId, deviceId, token } = join;
  const fields: BinaryField[] = [[TAG.server, ascii(server)]];
  if (serverFingerprint !== undefined) fields.push([TAG.serverFingerprint, hex.decode(serverFingerprint)]);
  fields.push([TAG.productId, ascii(productId)]);
  if (deviceId !== undefined) fields.push([TAG.deviceId, ascii(deviceId)]);
  fields.push([TAG.token, token]);
  return JOIN_PREFIX.slice(0, -BINARY_MARK.length) + encodeBinaryForm(VERSION, fields);
}

/** @throws LocalError INVALID_ARGUMENT that says what is wrong without repeating the text, which holds a secret */
export function decodeJoinString(text: string): JoinString {
  checkValue('the join string', text, anyText);
  const trimmed = text.trim();
  if (!trimmed.startsWith(JOIN_PREFIX)) reject(`it does not begin with ${JOIN_PREFIX}`);
  const fields = decodeBinaryForm(trimmed.slice(JOIN_PREFIX.length - BINARY_MARK.length), VERSION, NAME);
  const fingerprint = fields.get(TAG.serverFingerprint);
  const deviceId = fields.get(TAG.deviceId);
  const join = {
    server: textOf(fields.get(TAG.server)),
    ...(fingerprint !== undefined && { serverFingerprint: hex.encode(fingerprint) }),
    productId: textOf(fields.get(TAG.productId)),
    ...(deviceId !== undefined && { deviceId: textOf(deviceId) }),
    token: fields.get(TAG.token) ?? new Uint8Array(),
  };
  check(join);
  return join;
}

function check({ server, serverFingerprint, productId, deviceId, token }: JoinString): void {
  if (!isHostPort(server)) reject('the base station must be host:port');
  if (serverFingerprint !== undefined && !isFingerprint(serverFingerprint)) reject('the fingerprint of the base station is not 32 bytes');
  if (deviceId === undefined ? !isId(productId) : !areIds(productId, deviceId)) reject('its product id or device id is not an id');
  if (token.length !== JOIN_TOKEN) reject(`the token must have ${JOIN_TOKEN} bytes`);
}

function ascii(text: string): Uint8Array {
  return Uint8Array.from(text, (character) => character.charCodeAt(0));
}

/** Returns an empty text for a missing field: the checks of each field refuse that, and anything that is not ASCII. */
function textOf(bytes: Uint8Array = new Uint8Array()): string {
  return String.fromCharCode(...bytes);
}

function reject(problem: string): never {
  throw new LocalError('INVALID_ARGUMENT', `not ${NAME}: ${problem}`);
}
