/** Bodies of `POST /p2p/password/1` and `/2` (PROTOCOL.md §8): CBOR maps with the field names on the wire. */
import { bytes, decode, encode, map, optionalBytes, text, uint } from '../cbor/index.ts';
import { RemoteError } from '../errors/index.ts';
import { orElse } from '../or-else.ts';
import { type Kdf, SALT_LENGTH } from './kdf.ts';
import { opaqueString } from './opaque-string.ts';

/** Client → device. */
export const PasswordPath = {
  /** POST {@link PasswordRequest} → {@link PasswordOffer} */
  FIRST: '/p2p/password/1',
  /** POST {@link PasswordProof} → {@link PasswordConfirmation} */
  SECOND: '/p2p/password/2',
} as const;

/** Maximum UTF-8 bytes of a user name; the empty one means open pairing. */
export const MAX_USERNAME = 255;
/** Length of a share, bytes: an element of ristretto255, the group of version 1. */
export const SHARE_LENGTH = 32;
/** Length of a tag, bytes: HMAC-SHA-512. */
export const TAG_LENGTH = 64;

/** The user whose password the client wants to prove. */
export interface PasswordRequest {
  /** In the form of `opaqueString`. */
  readonly username: string;
}

/** The device's first message of a run. */
export interface PasswordOffer {
  readonly kdf: Kdf;
  /** Present exactly with Kdf 1. */
  readonly salt: Uint8Array | null;
  /** Number of this run on this connection: from 1, never used twice. */
  readonly run: number;
  /** The device's share. */
  readonly share: Uint8Array;
}

/** The client's share and tag. */
export interface PasswordProof {
  readonly share: Uint8Array;
  readonly tag: Uint8Array;
}

/** The device's tag. */
export interface PasswordConfirmation {
  readonly tag: Uint8Array;
}

const SHARE = { exact: SHARE_LENGTH };
const TAG = { exact: TAG_LENGTH };
const MAX_RUN = 0xffff_ffff;

export function encodePasswordRequest({ username }: PasswordRequest): Uint8Array {
  return encode({ Username: username });
}

/** @throws RemoteError PARSE, as every decoder here */
export function decodePasswordRequest(payload: Uint8Array): PasswordRequest {
  const username = text(map(decode(payload)), 'Username', { max: MAX_USERNAME });
  if (orElse(() => opaqueString('Username', username), null) !== username)
    throw new RemoteError('PARSE', 'Username is not an OpaqueString (RFC 8265 §4.2)');
  return { username };
}

export function encodePasswordOffer({ kdf, salt, run, share }: PasswordOffer): Uint8Array {
  return encode({ Kdf: kdf, Salt: salt ?? undefined, Run: run, Y: share });
}

export function decodePasswordOffer(payload: Uint8Array): PasswordOffer {
  const body = map(decode(payload));
  const kdf = uint(body, 'Kdf', { max: 1 }) as Kdf;
  const salt = optionalBytes(body, 'Salt', { exact: SALT_LENGTH }) ?? null;
  if ((kdf === 1) !== (salt !== null)) throw new RemoteError('PARSE', 'Salt goes with Kdf 1 and only with it');
  return { kdf, salt, run: uint(body, 'Run', { min: 1, max: MAX_RUN }), share: bytes(body, 'Y', SHARE) };
}

export function encodePasswordProof({ share, tag }: PasswordProof): Uint8Array {
  return encode({ Y: share, Tag: tag });
}

export function decodePasswordProof(payload: Uint8Array): PasswordProof {
  const body = map(decode(payload));
  return { share: bytes(body, 'Y', SHARE), tag: bytes(body, 'Tag', TAG) };
}

export function encodePasswordConfirmation({ tag }: PasswordConfirmation): Uint8Array {
  return encode({ Tag: tag });
}

export function decodePasswordConfirmation(payload: Uint8Array): PasswordConfirmation {
  return { tag: bytes(map(decode(payload)), 'Tag', TAG) };
}
