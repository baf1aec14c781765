/** Which keys of a JWK Set verify which tokens. */
import { compactVerify, exportJWK, generateKeyPair, type JWK } from 'jose';
import { describe, expect, test } from 'vitest';
import { type Algorithm, type KeySet, readKeySet } from '../../../server/jwt/keys.ts';
import { tokenHeader } from '../../../server/jwt/token.ts';

const setOf = (...keys: unknown[]): KeySet => readKeySet(new TextEncoder().encode(JSON.stringify({ keys })));

/** A new key; for RSA, whose keys take long to make, that of RFC 7515. */
async function publicKey(alg: string): Promise<JWK> {
  return alg === 'RS256' ? A2_KEY : exportJWK((await generateKeyPair(alg)).publicKey);
}

// RFC 7515 appendix A.1 to A.3; each line is `{"iss":"joe", "exp":1300819380, "http://example.com/is_root":true}`.
const CLAIMS = 'eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ';
const A1 = `eyJ0eXAiOiJKV1QiLA0KICJhbGciOiJIUzI1NiJ9.${CLAIMS}.dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk`;
const A2 = `eyJhbGciOiJSUzI1NiJ9.${CLAIMS}.cC4hiUPoj9Eetdgtv3hF80EGrhuB__dzERat0XF9g2VtQgr9PJbu3XOiZj5RZmh7AAuHIm4Bh-0Qc_lF5YKt_O8W2Fp5jujGbds9uJdbF9CUAr7t1dnZcAcQjbKBYNX4BAynRFdiuB--f_nZLgrnbyTyWzO75vRK5h6xBArLIARNPvkSjtQBMHlb1L07Qe7K0GarZRmB_eSN9383LcOLn6_dO--xi12jzDwusC-eOkHWEsqtFZESc6BfI7noOPqvhJ1phCnvWh6IeYI2w9QOYEUipUTI8np6LbgGY9Fs98rqVt5AXLIhWkWywlVmtVrBp0igcN_IoypGlUPQGe77Rw`;
const A2_KEY = {
  kty: 'RSA',
  n: 'ofgWCuLjybRlzo0tZWJjNiuSfb4p4fAkd_wWJcyQoTbji9k0l8W26mPddxHmfHQp-Vaw-4qPCJrcS2mJPMEzP1Pt0Bm4d4QlL-yRT-SFd2lZS-pCgNMsD1W_YpRPEwOWvG6b32690r2jZ47soMZo9wGzjb_7OMg0LOL-bSf63kpaSHSXndS5z5rexMdbBYUsLA9e-KXBdQOS-UTo7WTBEMa2R2CapHg665xsmtdVMTBQY4uDZlxvb3qCo5ZwKh9kG4LT6_I5IhlJH7aGhyxXFvUK-DWNmoudF8NAco9_h9iaGNj8q2ethFkMLs91kzk2PAcDTW9gb54h4FRWyuXpoQ',
  e: 'AQAB',
};
const A3 = `eyJhbGciOiJFUzI1NiJ9.${CLAIMS}.DtEhU3ljbEg8L38VWAfUAqOyKAM6-Xx-F4GawxaepmXFCgfTjDxw5djxLa8ISlSApmWQxfKTUJqPP3-Kg6NU1Q`;
const A3_KEY = {
  kty: 'EC',
  crv: 'P-256',
  x: 'f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU',
  y: 'x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0',
  d: 'jpsQnnGQmL-YBIffH1136cspYG6-0iY7X1fCE9-E9LI',
};

describe('RFC 7515 appendix A', () => {
  test.each([
    ['A.2', A2],
    ['A.3', A3],
  ])('%s is verified by the key that its header selects', async (_, token) => {
    const set = setOf(A2_KEY, A3_KEY);
    const keys = set.candidates(tokenHeader(token)!);
    expect(keys).toHaveLength(1);
    const { payload } = await compactVerify(token, keys[0]!.jwk, { algorithms: [tokenHeader(token)!.alg] });
    expect(JSON.parse(new TextDecoder().decode(payload))).toMatchObject({ iss: 'joe', exp: 1300819380 });
  });

  test('A.1, with a symmetric key, is refused', () => {
    expect(tokenHeader(A1)).toBeNull();
  });

  test('private members of a key are dropped', async () => {
    const [key] = setOf(A3_KEY).candidates({ alg: 'ES256', kid: undefined });
    expect(key?.jwk).not.toHaveProperty('d');
  });
});

describe('a key', () => {
  const algorithmsOf = async (jwk: object): Promise<Algorithm[]> => {
    const set = setOf(jwk);
    const all: Algorithm[] = ['RS256', 'PS256', 'ES256', 'ES384', 'EdDSA', 'Ed25519'];
    return all.filter((alg) => set.candidates({ alg, kid: undefined }).length > 0);
  };

  test.each<[string, string, object, Algorithm[]]>([
    ['of RSA', 'RS256', {}, ['RS256', 'PS256']],
    ['of RSA for PS256', 'RS256', { alg: 'PS256' }, ['PS256']],
    ['of RSA for encryption by its alg', 'RS256', { alg: 'RSA-OAEP' }, []],
    ['on P-256', 'ES256', { use: 'sig' }, ['ES256']],
    ['on P-384', 'ES384', { key_ops: ['verify'] }, ['ES384']],
    ['on P-521', 'ES512', {}, []],
    ['on Ed25519', 'EdDSA', {}, ['EdDSA', 'Ed25519']],
    ['on Ed25519 by the newer name (RFC 9864)', 'EdDSA', { alg: 'Ed25519' }, ['Ed25519']],
    ['for encryption', 'RS256', { use: 'enc' }, []],
    ['to sign with', 'ES256', { key_ops: ['sign'] }, []],
    ['with invalid operations', 'ES256', { key_ops: 'verify' }, []],
    ['of another type than its alg', 'ES256', { alg: 'RS256' }, []],
    ['for an HMAC', 'RS256', { alg: 'HS256' }, []],
  ])('%s: %s', async (_, alg, members, expected) => {
    expect(await algorithmsOf({ ...(await publicKey(alg)), ...members })).toEqual(expected);
  });

  test.each<[string, object]>([
    ['symmetric', { kty: 'oct', k: 'AAAA' }],
    ['without members', { kty: 'RSA' }],
    ['with members of other types', { kty: 'EC', crv: 'P-256', x: 1, y: [] }],
    ['of no type', {}],
  ])('that is %s is skipped', async (_, jwk) => {
    expect(await algorithmsOf(jwk)).toEqual([]);
  });

  test('is found by its id and algorithm; a token without an id gets all matching keys', async () => {
    const [first, second] = [await publicKey('ES256'), await publicKey('ES256')];
    const set = setOf({ ...first, kid: 'one' }, { ...second, kid: 'two' }, A2_KEY);
    const found = (kid: string | undefined) => set.candidates({ alg: 'ES256', kid }).map((key) => key.kid);
    expect([found('one'), found('two'), found('three'), found(undefined)]).toEqual([['one'], ['two'], [], ['one', 'two']]);
    expect(found('../two')).toEqual([]);
    expect(found("' or 1=1 --")).toEqual([]);
  });

  test('without an id fits a token with any id, unless another key has that id', async () => {
    const [first, second] = [await publicKey('ES256'), await publicKey('ES256')];
    const found = (set: KeySet, kid: string) => set.candidates({ alg: 'ES256', kid }).map((key) => key.kid);
    expect(found(setOf(first), 'one')).toEqual([null]);
    const two = setOf(first, { ...second, kid: 'two' });
    expect([found(two, 'one'), found(two, 'two')]).toEqual([[null], ['two']]);
    expect(setOf(first).candidates({ alg: 'RS256', kid: 'one' })).toEqual([]);
  });

  test('is recognised in another set by its content', async () => {
    const [kept, gone] = [await publicKey('ES256'), await publicKey('ES256')];
    const [before, after] = [setOf(kept, gone), setOf({ ...kept, kid: 'renamed' })];
    const ids = before.candidates({ alg: 'ES256', kid: undefined }).map(({ id }) => id);
    expect(ids.map((id) => after.has(id))).toEqual([true, false]);
  });
});

describe('a set', () => {
  test.each<[string, string]>([
    ['that is HTML', '<html></html>'],
    ['that is a list', '[]'],
    ['that is null', 'null'],
    ['without keys', '{}'],
    ['whose keys are not a list', '{"keys":"a"}'],
    ['that is cut', '{"keys":[{"kty":'],
    ['of 101 keys', JSON.stringify({ keys: Array(101).fill({ kty: 'RSA' }) })],
  ])('%s is refused', (_, body) => {
    expect(() => readKeySet(new TextEncoder().encode(body))).toThrow(expect.objectContaining({ code: 'BAD_RESPONSE' }));
  });

  test('that is not UTF-8 is refused', () => {
    expect(() => readKeySet(Uint8Array.of(0x7b, 0xff, 0x7d))).toThrow(expect.objectContaining({ code: 'BAD_RESPONSE' }));
  });

  test('keeps its valid keys beside invalid ones', async () => {
    const set = setOf(null, 'a', 1, {}, [], await publicKey('ES256'));
    expect(set.candidates({ alg: 'ES256', kid: undefined })).toHaveLength(1);
  });
});
