/**
 * Bodies of requests that make or extend a user (reference §1.1, §1.3): maps with `Username` and `FingerprintName`, a name people give a key.
 * An older client's `Password` is refused where it would be taken for one that counts.
 */
import { decode, encode, map, optionalText, text } from '../cbor/index.ts';
import { RemoteError } from '../errors/index.ts';

/** Whom a client wants to be. */
export interface OpenPairing {
  readonly username: string;
  /** Of the client's key. */
  readonly fingerprintName?: string;
}

/** The reference refuses texts of 1024 bytes or more. */
const TEXT = { max: 1023 };

/** Body of `POST /iam/pairing/local-open` and `/iam/pairing/password-open`. */
export function encodeOpenPairing({ username, fingerprintName }: OpenPairing): Uint8Array {
  return encode({ Username: username, FingerprintName: fingerprintName });
}

/** Of `/iam/pairing/local-open`. @throws RemoteError PARSE */
export function decodeOpenPairing(payload: Uint8Array): OpenPairing {
  const body = map(decode(payload));
  const username = text(body, 'Username', TEXT);
  const fingerprintName = optionalText(body, 'FingerprintName', TEXT);
  return fingerprintName === undefined ? { username } : { username, fingerprintName };
}

/** Of `/iam/pairing/password-open`: a client that sends the password believes it proves something. @throws RemoteError PARSE */
export function decodePasswordOpenPairing(payload: Uint8Array): OpenPairing {
  if (Object.hasOwn(map(decode(payload)), 'Password')) throw new RemoteError('PARSE', 'Password is not sent: authenticate by it instead');
  return decodeOpenPairing(payload);
}

/** Body of `POST /iam/pairing/local-initial` and `/iam/pairing/password-invite`, which may also have none, and of a fingerprint that is added. */
export function encodeFingerprintName(name: string | undefined): Uint8Array {
  return encode({ FingerprintName: name });
}

/** undefined where no name is given. @throws RemoteError PARSE */
export function decodeFingerprintName(payload: Uint8Array): string | undefined {
  return optionalText(map(decode(payload)), 'FingerprintName', TEXT);
}

/** Body of `POST /iam/users`. */
export function encodeNewUser(username: string): Uint8Array {
  return encode({ Username: username });
}

/** @throws RemoteError PARSE */
export function decodeNewUser(payload: Uint8Array): string {
  return text(map(decode(payload)), 'Username', TEXT);
}
