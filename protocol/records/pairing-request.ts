/**
 * Bodies of requests that create or extend a user (docs/iam.md): maps with `Username` and `FingerprintName`, a label
 * for a key. A `Password` is refused where it would be ignored.
 */
import { decode, encode, map, optionalText, text } from '../cbor/index.ts';
import { RemoteError } from '../errors/index.ts';

/** The user that a client wants to become. */
export interface OpenPairing {
  readonly username: string;
  /** Label of the client's key. */
  readonly fingerprintName?: string;
}

/** Texts of 1,024 bytes or more are refused (docs/iam.md). */
const TEXT = { max: 1023 };

/** Body of `POST /iam/pairing/local-open` and `/iam/pairing/password-open`. */
export function encodeOpenPairing({ username, fingerprintName }: OpenPairing): Uint8Array {
  return encode({ Username: username, FingerprintName: fingerprintName });
}

/** Body of `/iam/pairing/local-open`. @throws RemoteError PARSE */
export function decodeOpenPairing(payload: Uint8Array): OpenPairing {
  const body = map(decode(payload));
  const username = text(body, 'Username', TEXT);
  const fingerprintName = optionalText(body, 'FingerprintName', TEXT);
  return fingerprintName === undefined ? { username } : { username, fingerprintName };
}

/**
 * Body of `/iam/pairing/password-open`. Refuses a password: the client would take it for a proof.
 * @throws RemoteError PARSE
 */
export function decodePasswordOpenPairing(payload: Uint8Array): OpenPairing {
  if (Object.hasOwn(map(decode(payload)), 'Password')) throw new RemoteError('PARSE', 'Password is not sent: authenticate by it instead');
  return decodeOpenPairing(payload);
}

/**
 * Body of `POST /iam/pairing/local-initial` and `/iam/pairing/password-invite` (where it is optional), and of adding a
 * fingerprint.
 */
export function encodeFingerprintName(name: string | undefined): Uint8Array {
  return encode({ FingerprintName: name });
}

/** Returns undefined where there is no name. @throws RemoteError PARSE */
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
