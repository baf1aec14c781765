/** An issuer of tokens for tests: keys, the published set, tokens of any shape. */
import { exportJWK, generateKeyPair, type JWK, type JWTPayload, SignJWT } from 'jose';
import type { JwtApp } from '../../../server/jwt/key-sets.ts';

export const ISSUER = 'https://login.example';
export const AUDIENCE = 'svc';
/** Time of the tests, Unix ms. */
export const NOW = Date.parse('2026-01-02T03:04:05Z');

export interface IssuerKey {
  readonly kid: string;
  readonly alg: string;
  readonly privateKey: CryptoKey;
  readonly jwk: JWK;
}

export async function issuerKey(kid: string, alg = 'ES256'): Promise<IssuerKey> {
  const { privateKey, publicKey } = await generateKeyPair(alg, { extractable: true });
  return { kid, alg, privateKey, jwk: { ...(await exportJWK(publicKey)), kid } };
}

/** Claims of a token for pr-1.de-1 that is valid for an hour. */
export function goodClaims(): JWTPayload {
  return { iss: ISSUER, aud: AUDIENCE, exp: NOW / 1000 + 3600, svc_ids: 'pr-1.de-1' };
}

export function signed({ kid, alg, privateKey }: IssuerKey, claims: JWTPayload = goodClaims(), header: object = {}): Promise<string> {
  return new SignJWT(claims).setProtectedHeader({ alg, kid, ...header }).sign(privateKey);
}

export function jwtApp(changes: Partial<JwtApp['jwt']> = {}, appId = 'ap-jwt'): JwtApp {
  return {
    appId,
    organizationId: 'or-a',
    name: null,
    authType: 'JWT',
    keyHash: 'aa',
    productIds: null,
    created: '2026-01-01T00:00:00.000Z',
    jwt: { issuer: ISSUER, audience: AUDIENCE, audienceClaim: 'aud', jwksUri: `${ISSUER}/keys`, svcIdsClaim: 'svc_ids', ...changes },
  };
}
