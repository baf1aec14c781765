/** Valid tokens, and attacks on tokens (RFC 8725). */
import { createHmac } from 'node:crypto';
import { exportSPKI, importJWK, type JWTPayload } from 'jose';
import { beforeAll, describe, expect, test } from 'vitest';
import { type KeySet, readKeySet } from '../../../server/jwt/keys.ts';
import { tokenHeader, type VerifiedToken, verifyToken } from '../../../server/jwt/token.ts';
import { goodClaims, ISSUER, type IssuerKey, issuerKey, jwtApp, NOW, signed } from './issuer.ts';

let key: IssuerKey;
let other: IssuerKey;
let set: KeySet;

beforeAll(async () => {
  [key, other] = [await issuerKey('one'), await issuerKey('one')];
  set = readKeySet(new TextEncoder().encode(JSON.stringify({ keys: [key.jwk] })));
});

/** Returns the verified token, or why it is refused. */
async function outcome(token: string, { wallTime = NOW, keys = set, claim = 'svc_ids', audienceClaim = 'aud' } = {}) {
  const header = tokenHeader(token);
  if (header === null) return 'no header';
  const issuer = jwtApp({ svcIdsClaim: claim, audienceClaim }).jwt;
  return verifyToken(token, header, { keys: keys.candidates(header), issuer, wallTime });
}

async function verified(token: string, options: Parameters<typeof outcome>[1] = {}): Promise<VerifiedToken | null> {
  const found = await outcome(token, options);
  return typeof found === 'string' ? null : found;
}

/** Signs claims unchanged that jose would not sign. */
async function raw(header: object, claims: string): Promise<string> {
  const input = `${base64(header)}.${Buffer.from(claims).toString('base64url')}`;
  const signature = await crypto.subtle.sign({ name: 'ECDSA', hash: 'SHA-256' }, key.privateKey, Buffer.from(input));
  return `${input}.${Buffer.from(signature).toString('base64url')}`;
}

const base64 = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString('base64url');
const without = (name: string): JWTPayload => Object.fromEntries(Object.entries(goodClaims()).filter(([each]) => each !== name));
const SECONDS = NOW / 1000;

test.each(['RS256', 'PS256', 'ES256', 'ES384', 'EdDSA', 'Ed25519'])('a token signed with %s is valid', async (alg) => {
  const signer = await issuerKey('k', alg);
  const keys = readKeySet(new TextEncoder().encode(JSON.stringify({ keys: [signer.jwk] })));
  expect(await verified(await signed(signer), { keys })).toMatchObject({ expires: NOW + 3_600_000, devices: new Set(['pr-1.de-1']) });
});

describe('claims', () => {
  test.each<[string, () => JWTPayload, boolean]>([
    ['all that are needed', () => goodClaims(), true],
    ['an audience among others', () => ({ ...goodClaims(), aud: ['app', 'svc'] }), true],
    ['not before a minute from now', () => ({ ...goodClaims(), nbf: SECONDS + 60 }), true],
    ['not before 61 s from now', () => ({ ...goodClaims(), nbf: SECONDS + 61 }), false],
    ['expired for 59 s', () => ({ ...goodClaims(), exp: SECONDS - 59 }), true],
    ['expired for 61 s', () => ({ ...goodClaims(), exp: SECONDS - 61 }), false],
    ['issued in the future', () => ({ ...goodClaims(), iat: SECONDS + 1000 }), true],
    ['another issuer', () => ({ ...goodClaims(), iss: 'https://other.example' }), false],
    ['an issuer with a slash more', () => ({ ...goodClaims(), iss: `${ISSUER}/` }), false],
    ['the audience of another app', () => ({ ...goodClaims(), aud: 'other' }), false],
    ['no audience in a list', () => ({ ...goodClaims(), aud: [] }), false],
    ['no issuer', () => without('iss'), false],
    ['no audience', () => without('aud'), false],
    ['no expiry', () => without('exp'), false],
    ['an expiry that is a text', () => ({ ...goodClaims(), exp: String(SECONDS + 3600) as never }), false],
  ])('%s', async (_, claims, good) => {
    expect((await verified(await signed(key, claims()))) !== null).toBe(good);
  });

  test.each<[string, JWTPayload, string]>([
    ['another issuer', { ...goodClaims(), iss: 'https://other.example' }, 'its iss is not valid'],
    ['no audience', without('aud'), 'it has no aud'],
    ['another audience', { ...goodClaims(), aud: ['app'] }, 'its aud is not svc'],
    ['no expiry', without('exp'), 'it has no exp'],
    ['an expiry in the past', { ...goodClaims(), exp: SECONDS - 61 }, 'it has expired'],
    ['a time that is yet to come', { ...goodClaims(), nbf: SECONDS + 61 }, 'it is not valid yet'],
  ])('with %s are refused with their reason', async (_, claims, reason) => {
    expect(await outcome(await signed(key, claims))).toBe(reason);
  });

  test('name the audience in another claim, where the key says so, as access tokens of Cognito do', async () => {
    const token = await signed(key, { ...without('aud'), client_id: 'svc' });
    const other = await signed(key, { ...goodClaims(), client_id: 'other' });
    expect(await verified(token)).toBeNull();
    expect(await verified(token, { audienceClaim: 'client_id' })).not.toBeNull();
    expect(await outcome(other, { audienceClaim: 'client_id' })).toBe('its client_id is not svc');
    expect(await outcome(token, { audienceClaim: '__proto__' })).toBe('its __proto__ is not svc');
  });

  test('of a clock that is a year off are refused', async () => {
    const token = await signed(key);
    const YEAR = 365 * 86_400_000;
    expect([await verified(token, { wallTime: NOW + YEAR }), await verified(token, { wallTime: NOW })]).toEqual([null, expect.anything()]);
    expect(await verified(await signed(key, { ...goodClaims(), nbf: SECONDS - 10 }), { wallTime: NOW - YEAR })).toBeNull();
  });

  test.each([
    ['of the last time there is', '8640000000000', true],
    ['after it', '8640000000001', false],
    ['of Infinity', '1e999', false],
  ])('an expiry %s', async (_, exp, good) => {
    const claims = `{"iss":"${ISSUER}","aud":"svc","exp":${exp},"svc_ids":"pr-1.de-1"}`;
    expect((await verified(await raw({ alg: 'ES256', kid: 'one' }, claims))) !== null).toBe(good);
  });

  test('may be repeated: the last one counts, for signature and check alike (RFC 7519 §4)', async () => {
    const twice = '{"iss":"https://login.example","aud":"svc","exp":9999999999,"svc_ids":"pr-1.de-1","svc_ids":"pr-1.de-2"}';
    const token = await raw({ alg: 'ES256', kid: 'one' }, twice);
    expect((await verified(token))?.devices).toEqual(new Set(['pr-1.de-2']));
  });
});

describe('the claim of devices', () => {
  test.each<[string, unknown, string[]]>([
    ['one', 'pr-1.de-1', ['pr-1.de-1']],
    ['several between blanks', 'pr-1.de-1  pr-1.de-2 ', ['pr-1.de-1', 'pr-1.de-2']],
    ['an array', ['pr-1.de-1', 'pr-2.de-9'], ['pr-1.de-1', 'pr-2.de-9']],
    ['an array with other types', ['pr-1.de-1', 7, null, {}], ['pr-1.de-1']],
    ['an array of a text with a blank', ['pr-1.de-1 pr-1.de-2'], ['pr-1.de-1 pr-1.de-2']],
    ['a wildcard, which is an ordinary name', '*', ['*']],
    ['a number', 7, []],
    ['an object', { 'pr-1.de-1': true }, []],
    ['missing', undefined, []],
  ])('%s', async (_, svcIds, expected) => {
    const claims = { ...without('svc_ids'), ...(svcIds !== undefined && { svc_ids: svcIds }) };
    expect([...(await verified(await signed(key, claims)))!.devices]).toEqual(expected);
  });

  test('has the name that the app gives it, and no inherited one', async () => {
    const token = await signed(key, { ...goodClaims(), devices: 'pr-1.de-7' });
    expect((await verified(token, { claim: 'devices' }))?.devices).toEqual(new Set(['pr-1.de-7']));
    expect((await verified(token, { claim: 'constructor' }))?.devices.size).toBe(0);
  });
});

describe('invalid tokens', () => {
  const attacks: [string, () => Promise<string>][] = [
    ['of another key with the same id', () => signed(other)],
    ['of an unknown key id', async () => signed({ ...key, kid: 'two' })],
    ['a changed claim', async () => (await signed(key)).replace(/\.[^.]+\./, `.${base64({ ...goodClaims(), svc_ids: 'pr-1.de-2' })}.`)],
    ['alg none', async () => `${base64({ alg: 'none' })}.${base64(goodClaims())}.`],
    ['alg none with a signature', async () => `${base64({ alg: 'none', kid: 'one' })}.${base64(goodClaims())}.AAAA`],
    [
      'HS256 with the public key as its secret',
      async () => {
        const pem = await exportSPKI((await importJWK(key.jwk, 'ES256', { extractable: true })) as CryptoKey);
        const input = `${base64({ alg: 'HS256', kid: 'one' })}.${base64(goodClaims())}`;
        return `${input}.${createHmac('sha256', pem).update(input).digest('base64url')}`;
      },
    ],
    [
      'another algorithm than the key’s',
      async () => `${base64({ alg: 'RS256', kid: 'one' })}.${(await signed(key)).split('.').slice(1).join('.')}`,
    ],
    ['an embedded key (jwk)', async () => signed(other, goodClaims(), { jwk: other.jwk })],
    ['a URL of a key (jku)', async () => signed(other, goodClaims(), { jku: 'https://evil.example/keys' })],
    ['a URL of a certificate (x5u)', async () => signed(other, goodClaims(), { x5u: 'https://evil.example/cert' })],
    ['a path as key id', async () => signed({ ...other, kid: '../../../dev/null' })],
    ['SQL as key id', async () => signed({ ...other, kid: "x' union select 'one" })],
    ['a key id that is a number', async () => `${base64({ alg: 'ES256', kid: 1 })}.${(await signed(key)).split('.').slice(1).join('.')}`],
    [
      'a critical header that is not understood',
      () => raw({ alg: 'ES256', kid: 'one', crit: ['exp'], exp: 1 }, JSON.stringify(goodClaims())),
    ],
    ['claims that are a list', () => raw({ alg: 'ES256', kid: 'one' }, '[]')],
    ['an empty text', async () => ''],
    ['two parts', async () => (await signed(key)).split('.').slice(0, 2).join('.')],
    ['five parts', async () => `${await signed(key)}.AAAA.AAAA`],
    ['a blank before it', async () => ` ${await signed(key)}`],
    ['a line break after it', async () => `${await signed(key)}\n`],
    ['padding', async () => `${await signed(key)}=`],
    ['a header that is not JSON', async () => `AAAA.${base64(goodClaims())}.AAAA`],
    ['a header that is null', async () => `${base64(null)}.${base64(goodClaims())}.AAAA`],
  ];
  test.each(attacks)('%s', async (_, token) => {
    expect(await verified(await token())).toBeNull();
  });

  test.each<[string, () => Promise<string>, string]>([
    ['a forged signature', async () => signed(other), 'no key of the issuer has signed it'],
    ['claims that are no object', () => raw({ alg: 'ES256', kid: 'one' }, '[]'), 'it is not a JWT'],
  ])('%s is refused with its reason', async (_, token, reason) => {
    expect(await outcome(await token())).toBe(reason);
  });

  test('an RSA key of 1,024 bits verifies nothing', async () => {
    const { privateKey, publicKey } = await crypto.subtle.generateKey(
      { name: 'RSASSA-PKCS1-v1_5', hash: 'SHA-256', modulusLength: 1024, publicExponent: Uint8Array.of(1, 0, 1) },
      true,
      ['sign', 'verify'],
    );
    const jwk = { ...((await crypto.subtle.exportKey('jwk', publicKey)) as object), kid: 'weak', key_ops: ['verify'] };
    const keys = readKeySet(new TextEncoder().encode(JSON.stringify({ keys: [jwk] })));
    const input = `${base64({ alg: 'RS256', kid: 'weak' })}.${base64(goodClaims())}`;
    const signature = await crypto.subtle.sign('RSASSA-PKCS1-v1_5', privateKey, Buffer.from(input));
    expect(await verified(`${input}.${Buffer.from(signature).toString('base64url')}`, { keys })).toBeNull();
  });

  test('a token without a key id is tried with four matching keys at most', async () => {
    const many = await Promise.all(Array.from({ length: 5 }, () => issuerKey('x')));
    const keys = readKeySet(new TextEncoder().encode(JSON.stringify({ keys: many.map(({ jwk }) => jwk) })));
    const anonymous = (signer: IssuerKey) => signed(signer, goodClaims(), { kid: undefined });
    expect(await verified(await anonymous(many[3]!), { keys })).not.toBeNull();
    expect(await verified(await anonymous(many[4]!), { keys })).toBeNull();
  });
});
