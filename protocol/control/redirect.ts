/** The redirect of a base station, in answer to an attach or a connect. */
import { hex } from '@scure/base';
import { bytes, type CborMap, text, uint } from '../cbor/index.ts';
import { LocalError, RemoteError } from '../errors/index.ts';
import { FINGERPRINT_LENGTH, isFingerprint } from '../identity/index.ts';
import { MAX_HOST } from './field-bounds.ts';

/** Status of an answer that redirects. */
export const REDIRECT = 1;

/** Another base station, whose key the redirecting one vouches for. */
export interface Redirect {
  readonly kind: 'redirect';
  /** Name or numeric address. */
  readonly host: string;
  readonly port: number;
  /** Full hex. */
  readonly fingerprint: string;
}

/** @throws LocalError INVALID_ARGUMENT */
export function redirectFields({ host, port, fingerprint }: Redirect): { Host: string; Port: number; Fingerprint: Uint8Array } {
  if (!isFingerprint(fingerprint)) throw new LocalError('INVALID_ARGUMENT', 'a fingerprint is 64 lower-case hex digits');
  return { Host: host, Port: port, Fingerprint: hex.decode(fingerprint) };
}

/** @throws RemoteError PARSE */
export function readRedirect(from: CborMap): Redirect {
  const host = text(from, 'Host', { min: 1, max: MAX_HOST });
  if (!/^[A-Za-z0-9.:_-]+$/.test(host)) throw new RemoteError('PARSE', 'Host is not a host name or address');
  const fingerprint = hex.encode(bytes(from, 'Fingerprint', { exact: FINGERPRINT_LENGTH }));
  return { kind: 'redirect', host, port: uint(from, 'Port', { min: 1, max: 0xffff }), fingerprint };
}
