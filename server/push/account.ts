/**
 * A service account of the push provider: its JSON file, and the signed assertion that is exchanged for an access token
 * (RFC 7523 §2.1, in the form of the provider's OAuth2 for service accounts).
 */
import { createPrivateKey } from 'node:crypto';
import { importPKCS8, SignJWT } from 'jose';
import { LocalError, RemoteError } from '../../protocol/errors/index.ts';
import { orElse } from '../../protocol/or-else.ts';
import type { HttpAnswer, HttpPost } from '../outbound/http.ts';
import type { AccessToken } from './token-cache.ts';

/** Origin of the provider. */
export const PROVIDER_URL = 'https://fcm.googleapis.com';
const SCOPE = 'https://www.googleapis.com/auth/firebase.messaging';
const GRANT_TYPE = 'urn:ietf:params:oauth:grant-type:jwt-bearer';
/** Seconds for which an assertion is valid: the most that the provider accepts. */
const ASSERTION_LIFETIME = 3600;
const MIN_MODULUS = 2048;
/** Most bytes of the answer with the token. */
const TOKEN_ANSWER_LIMIT = 16_384;
const MAX_TOKEN = 4096;

/** The used members of a service account's file. */
export interface ServiceAccount {
  readonly projectId: string;
  readonly clientEmail: string;
  readonly keyId: string | null;
  /** PKCS#8 PEM. */
  readonly privateKey: string;
  readonly tokenUrl: string;
}

/** Parses a service account's file. @throws LocalError INVALID_ARGUMENT that says what is wrong, never with the key */
export function parseServiceAccount(json: unknown): ServiceAccount {
  if (typeof json !== 'object' || json === null || Array.isArray(json)) invalid('it is not a JSON object');
  const fields = json as Record<string, unknown>;
  if (fields.type !== 'service_account') invalid('its "type" is not "service_account"');
  const { private_key_id: keyId } = fields;
  if (keyId !== undefined && typeof keyId !== 'string') invalid('its "private_key_id" is not a string');
  return {
    projectId: field(fields, 'project_id', /^[A-Za-z0-9][A-Za-z0-9:._-]{0,99}$/),
    clientEmail: field(fields, 'client_email', /^[^\s@]{1,128}@[^\s@]{1,128}$/),
    keyId: keyId ?? null,
    privateKey: rsaKey(field(fields, 'private_key', /^[\s\S]{1,16384}$/)),
    tokenUrl: checkProviderUrl(field(fields, 'token_uri', /^.{1,2048}$/), 'its "token_uri"'),
  };
}

/**
 * Returns true for a URL that the provider may have: `https:`, or `http:` on this machine; no user, query or fragment.
 */
export function isProviderUrl(text: string): boolean {
  const url = URL.canParse(text) ? new URL(text) : null;
  if (url === null || url.username !== '' || url.password !== '' || url.search !== '' || url.hash !== '') return false;
  return url.protocol === 'https:' || (url.protocol === 'http:' && /^(localhost|127(\.\d+){3}|\[::1\])$/.test(url.hostname));
}

/** Checks the URL and returns it unchanged: the assertion must contain it exactly. */
function checkProviderUrl(text: string, what: string): string {
  return isProviderUrl(text) ? text : invalid(`${what} is not an https URL (http only on this machine)`);
}

function field(fields: Record<string, unknown>, name: string, pattern: RegExp): string {
  const value = fields[name];
  return typeof value === 'string' && pattern.test(value) ? value : invalid(`its "${name}" is missing or malformed`);
}

function rsaKey(pem: string): string {
  try {
    const key = createPrivateKey(pem);
    if (key.asymmetricKeyType === 'rsa' && (key.asymmetricKeyDetails?.modulusLength ?? 0) >= MIN_MODULUS) {
      return key.export({ type: 'pkcs8', format: 'pem' }) as string;
    }
  } catch {
    // Reported below: the library's message may hold parts of the key.
  }
  return invalid(`its "private_key" is not an RSA key of ${MIN_MODULUS} bits or more in PEM`);
}

function invalid(problem: string): never {
  throw new LocalError('INVALID_ARGUMENT', `the service account cannot be used: ${problem}`);
}

/** Makes the assertion of RFC 7523 §3. @param wallTime Unix ms */
export type SignAssertion = (account: Omit<ServiceAccount, 'projectId'>, wallTime: number) => Promise<string>;

/** {@link SignAssertion} with RS256. */
export const signAssertion: SignAssertion = async ({ clientEmail, keyId, privateKey, tokenUrl }, wallTime) => {
  const issued = Math.floor(wallTime / 1000);
  return new SignJWT({ scope: SCOPE })
    .setProtectedHeader({ alg: 'RS256', typ: 'JWT', ...(keyId === null ? {} : { kid: keyId }) })
    .setIssuer(clientEmail)
    .setAudience(tokenUrl)
    .setIssuedAt(issued)
    .setExpirationTime(issued + ASSERTION_LIFETIME)
    .sign(await importPKCS8(privateKey, 'RS256'));
};

/** The token endpoint answered without a token. */
export class TokenRefused extends RemoteError {
  override name = 'TokenRefused';
  readonly answer: HttpAnswer;

  constructor(answer: HttpAnswer) {
    super('BAD_RESPONSE', `the push provider returns no access token (HTTP ${answer.status})`);
    this.answer = answer;
  }
}

/** Exchanges an assertion for an access token. @throws TokenRefused; as `post` */
export async function fetchToken(
  { post, sign }: { post: HttpPost; sign: SignAssertion },
  account: Omit<ServiceAccount, 'projectId'>,
  { wallTime, timeout, signal }: { wallTime: number; timeout: number; signal: AbortSignal },
): Promise<AccessToken> {
  const answer = await post({
    url: new URL(account.tokenUrl),
    headers: { 'content-type': 'application/x-www-form-urlencoded' },
    body: new URLSearchParams({ grant_type: GRANT_TYPE, assertion: await sign(account, wallTime) }).toString(),
    timeout,
    limit: TOKEN_ANSWER_LIMIT,
    signal,
  });
  const token = answer.status === 200 ? readToken(answer.body) : null;
  if (token === null) throw new TokenRefused(answer);
  return token;
}

function readToken(body: Uint8Array): AccessToken | null {
  return orElse(() => {
    const { access_token: token, expires_in: seconds } = JSON.parse(new TextDecoder().decode(body)) as Record<string, unknown>;
    // RFC 6750 §2.1: other characters are not allowed in the header.
    const usable = typeof token === 'string' && token.length <= MAX_TOKEN && /^[A-Za-z0-9\-._~+/]+=*$/.test(token);
    return usable && typeof seconds === 'number' && seconds > 0 ? { token, lifetime: seconds * 1000 } : null;
  }, null);
}
