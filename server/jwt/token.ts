/**
 * One token of an issuer: a JWT (RFC 7519) in compact form, signed (RFC 7515). Its header only chooses among the
 * issuer's keys: keys that a token contains or points to (`jwk`, `jku`, `x5c`, `x5u`) are ignored.
 */
import { decodeProtectedHeader, errors, type JWTPayload, jwtVerify, type ProtectedHeaderParameters } from 'jose';
import { orElse } from '../../protocol/or-else.ts';
import type { JwtIssuer } from '../storage/store.ts';
import { ALGORITHMS, type Algorithm, type VerificationKey } from './keys.ts';

/** Three parts of base64url without padding, none empty. */
const COMPACT = /^[\w-]+\.[\w-]+\.[\w-]+$/;
/** Most keys tried for a token whose header fits several. */
const MAX_TRIED = 4;
/** Seconds by which clocks may differ (RFC 7519 §4.1.4). */
export const LEEWAY = 60;

/** Unix ms of the last time that a Date has (ECMA-262 §21.4.1.1). JSON can have a later one: 1e999 is Infinity. */
const LAST_TIME = 8.64e15;

/** The header's members about the signature. */
export interface TokenHeader {
  readonly alg: Algorithm;
  readonly kid: string | undefined;
}

/** A verified token. */
export interface VerifiedToken {
  /** Id of the key that signed it. */
  readonly keyId: string;
  /** `exp`, Unix ms. */
  readonly expires: number;
  /** `<productId>.<deviceId>` of each device. */
  readonly devices: ReadonlySet<string>;
}

/** Returns the header; null for anything but a token, or for an algorithm that is not accepted. */
export function tokenHeader(token: string): TokenHeader | null {
  if (!COMPACT.test(token)) return null;
  const { alg, kid } = orElse<ProtectedHeaderParameters, ProtectedHeaderParameters>(() => decodeProtectedHeader(token), {});
  const algorithm = ALGORITHMS.find((each) => each === alg);
  return algorithm === undefined || (kid !== undefined && typeof kid !== 'string') ? null : { alg: algorithm, kid };
}

/** The values that a token is checked against. */
export interface Expectation {
  /** Keys of the issuer that fit the header. */
  readonly keys: readonly VerificationKey[];
  readonly issuer: JwtIssuer;
  /** Unix ms. */
  readonly wallTime: number;
}

/** Why a token is refused when none of the keys has signed it; a newer set may have the key. */
export const UNSIGNED = 'no key of the issuer has signed it';

/**
 * Checks the signature, `iss`, the audience, `exp` and `nbf`.
 * @returns why it is refused when one of the checks fails, in words for the operator's log, with nothing of the token
 */
export type VerifyToken = (token: string, header: TokenHeader, expected: Expectation) => Promise<VerifiedToken | string>;

/** {@link VerifyToken} with jose. */
export const verifyToken: VerifyToken = async (token, { alg }, { keys, issuer, wallTime }) => {
  const options = {
    algorithms: [alg],
    issuer: issuer.issuer,
    requiredClaims: ['exp'],
    clockTolerance: LEEWAY,
    currentDate: new Date(wallTime),
  };
  for (const { id, jwk } of keys.slice(0, MAX_TRIED)) {
    try {
      const { payload } = await jwtVerify(token, jwk, options);
      const audience = payload[issuer.audienceClaim];
      if (audience === undefined) return `it has no ${issuer.audienceClaim}`;
      if (![audience].flat().includes(issuer.audience)) return `its ${issuer.audienceClaim} is not ${issuer.audience}`;
      const expires = payload.exp! * 1000;
      if (expires > LAST_TIME) return 'its exp is no time';
      return { keyId: id, expires, devices: devicesOf(payload, issuer.svcIdsClaim) };
    } catch (error) {
      // An unusable key, such as RSA of less than 2048 bits, raises a TypeError or an error of the platform.
      if (error instanceof errors.JOSEError && !(error instanceof errors.JWSSignatureVerificationFailed)) return reasonOf(error);
    }
  }
  return UNSIGNED;
};

function reasonOf(error: errors.JOSEError): string {
  if (error instanceof errors.JWTExpired) return 'it has expired';
  if (!(error instanceof errors.JWTClaimValidationFailed)) return 'it is not a JWT';
  const { claim, reason } = error;
  if (reason === 'missing') return `it has no ${claim}`;
  return claim === 'nbf' ? 'it is not valid yet' : `its ${claim} is not valid`;
}

/** Parses names separated by blanks, or an array of them. A claim of another type lists none. */
function devicesOf(payload: JWTPayload, claim: string): ReadonlySet<string> {
  // Inherited properties of an object are neither string nor array.
  const value = payload[claim];
  const names = typeof value === 'string' ? value.split(' ') : Array.isArray(value) ? value : [];
  return new Set(names.filter((name): name is string => typeof name === 'string' && name !== ''));
}
