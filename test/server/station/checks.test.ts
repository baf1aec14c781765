/** Which devices may attach and which clients may connect, row by row. */
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { StationCode } from '../../../protocol/errors/index.ts';
import { type CheckToken, checkAttach, checkConnect } from '../../../server/station/checks.ts';
import { hashSecret } from '../../../server/storage/secrets.ts';
import { openSqliteStore } from '../../../server/storage/sqlite.ts';
import type { Store } from '../../../server/storage/store.ts';
import { app } from '../../support/fixture/app.ts';

const created = '2026-01-02T03:04:05.678Z';
const key = (name: string): string => hashSecret(`fingerprint of ${name}`);

let store: Store;

/** Verdict of a token, by its text. */
const checkToken: CheckToken = async (_, token) => {
  switch (token) {
    case 'good':
      return 'admitted';
    case 'elsewhere':
    case 'unavailable':
      return token;
    case 'busy':
      return { wait: 3 };
    default:
      return 'invalid';
  }
};

beforeAll(async () => {
  store = await openSqliteStore(':memory:');
  for (const organizationId of ['or-a', 'or-b']) await store.addOrganization({ organizationId, name: null, created });
  const products = { 'pr-1': 'or-a', 'pr-2': 'or-a', 'pr-b': 'or-b' };
  for (const [productId, organizationId] of Object.entries(products))
    await store.addProduct({ productId, organizationId, name: null, created });
  const device = (productId: string, deviceId: string, fingerprint: string | null) =>
    store.addDevice({ productId, deviceId, name: null, fingerprint, created });
  await device('pr-1', 'de-1', key('one'));
  await device('pr-1', 'de-2', key('two'));
  await device('pr-1', 'de-new', null);
  await device('pr-2', 'de-1', key('other product'));
  await device('pr-b', 'de-1', key('other organization'));
  await store.replaceTokens('pr-1', 'de-1', { hashes: [hashSecret('tokenA'), hashSecret('tokenB')], digest: 'AB' });
  await store.replaceTokens('pr-1', 'de-2', { hashes: [hashSecret('tokenC')], digest: 'C' });
  await store.addApp(app);
  await store.addApp({ ...app, appId: 'ap-one', keyHash: hashSecret('sk-one'), productIds: ['pr-1'] });
  const jwt = {
    issuer: 'https://login.example',
    audience: 'svc',
    audienceClaim: 'aud',
    jwksUri: 'https://login.example/keys',
    svcIdsClaim: 'svc_ids',
  };
  await store.addApp({ ...app, appId: 'ap-jwt', keyHash: hashSecret('sk-jwt'), authType: 'JWT', jwt });
  await store.addApp({ ...app, appId: 'ap-half', keyHash: hashSecret('sk-half'), authType: 'JWT' });
  await store.addApp({ ...app, appId: 'ap-b', keyHash: hashSecret('sk-b'), organizationId: 'or-b' });
});

afterAll(() => store.close());

describe('checkAttach', () => {
  test.each<[string, string, string, string, StationCode | 'attached']>([
    ['everything right', 'pr-1', 'de-1', 'one', 'attached'],
    ['the same device id in another product', 'pr-2', 'de-1', 'other product', 'attached'],
    ['an unknown key', 'pr-1', 'de-1', 'nobody', StationCode.UNKNOWN_FINGERPRINT],
    ['an unknown key, unknown ids', 'pr-x', 'de-x', 'nobody', StationCode.UNKNOWN_FINGERPRINT],
    ['a device whose key is not set', 'pr-1', 'de-new', 'nobody', StationCode.UNKNOWN_FINGERPRINT],
    ['a device whose key is not set, with the key of another', 'pr-1', 'de-new', 'one', StationCode.WRONG_DEVICE_ID],
    ['the id of another device', 'pr-1', 'de-2', 'one', StationCode.WRONG_DEVICE_ID],
    ['an unknown device id', 'pr-1', 'de-x', 'one', StationCode.WRONG_DEVICE_ID],
    ['another product of the organization, the same device id', 'pr-2', 'de-1', 'one', StationCode.WRONG_PRODUCT_ID],
    ['another product of the organization, another device id', 'pr-2', 'de-x', 'one', StationCode.WRONG_DEVICE_ID],
    ['a product that does not exist', 'pr-x', 'de-1', 'one', StationCode.WRONG_PRODUCT_ID],
    ['a product and a device that do not exist', 'pr-x', 'de-x', 'one', StationCode.WRONG_DEVICE_ID],
    ['the product of another organization', 'pr-b', 'de-1', 'one', StationCode.UNKNOWN_FINGERPRINT],
    ['an unknown device of another organization', 'pr-b', 'de-x', 'one', StationCode.UNKNOWN_FINGERPRINT],
    ['the key of another organization', 'pr-1', 'de-1', 'other organization', StationCode.UNKNOWN_FINGERPRINT],
  ])('%s', async (_what, productId, deviceId, name, expected) => {
    const checked = await checkAttach(store, productId, deviceId, key(name));
    if (expected === 'attached') expect(checked).toMatchObject({ device: { productId, deviceId } });
    else expect(checked).toEqual({ refused: expected });
  });
});

/** Credentials of each kind, valid and invalid. */
const WAYS = {
  'a token of the device': [{ sct: 'tokenA' }, { sct: 'tokenC' }, { sct: '' }, { sct: 'tokenX', serverKey: 'sk-a' }],
  'a server key': ['sk-a', 'sk-one', 'sk-b', 'sk-x', 'sk-jwt', ''].map((serverKey) => ({ serverKey })),
  'a server key and a JWT': ['sk-a', 'sk-one', 'sk-b', 'sk-x', 'sk-jwt', 'sk-half'].flatMap((serverKey) =>
    ['good', 'bad', 'elsewhere', ''].map((jwt) => ({ serverKey, jwt })),
  ),
  'no key': [{}, { jwt: 'good' }, { jwt: 'bad' }],
};

describe('codes of refusals by kind of credential, for every product, device and credential', () => {
  const { INVALID_JWT, TOKEN_REJECTED, SERVER_KEY_MISMATCH, UNKNOWN_SERVER_KEY, UNKNOWN_PRODUCT_ID, UNKNOWN_DEVICE_ID } = StationCode;
  test.each<[keyof typeof WAYS, StationCode[]]>([
    ['a token of the device', [UNKNOWN_PRODUCT_ID, UNKNOWN_DEVICE_ID, TOKEN_REJECTED]],
    ['a server key', [UNKNOWN_PRODUCT_ID, UNKNOWN_DEVICE_ID, SERVER_KEY_MISMATCH, UNKNOWN_SERVER_KEY]],
    [
      'a server key and a JWT',
      [INVALID_JWT, UNKNOWN_PRODUCT_ID, UNKNOWN_DEVICE_ID, TOKEN_REJECTED, SERVER_KEY_MISMATCH, UNKNOWN_SERVER_KEY],
    ],
    ['no key', [UNKNOWN_PRODUCT_ID, UNKNOWN_SERVER_KEY]],
  ])('%s', async (way, codes) => {
    const found = new Set<StationCode>();
    for (const productId of ['pr-1', 'pr-2', 'pr-b', 'pr-x'])
      for (const deviceId of ['de-1', 'de-2', 'de-x'])
        for (const each of WAYS[way]) {
          const checked = await checkConnect(store, { productId, deviceId, ...each }, checkToken);
          if ('refused' in checked) found.add(checked.refused);
        }
    expect([...found].sort((a, b) => a - b)).toEqual(codes);
  });

  test('no answer depends on the device without a valid key or a token', async () => {
    const strangers = [
      ...WAYS['no key'],
      { serverKey: 'sk-x' },
      { serverKey: 'sk-b' },
      { serverKey: 'sk-jwt' },
      { serverKey: 'sk-jwt', jwt: 'bad' },
    ];
    for (const each of strangers)
      for (const productId of ['pr-1', 'pr-2', 'pr-x']) {
        const [there, not] = await Promise.all(
          ['de-1', 'de-x'].map((deviceId) => checkConnect(store, { productId, deviceId, ...each }, checkToken)),
        );
        expect(there).toEqual(not);
        expect(there).toHaveProperty('refused');
      }
  });
});

describe('checkConnect', () => {
  const shown = { productId: 'pr-1', deviceId: 'de-1' };
  test.each<[string, Parameters<typeof checkConnect>[1], StationCode | 'admitted']>([
    ['a key of the organization', { ...shown, serverKey: 'sk-a' }, 'admitted'],
    ['a key for this product', { ...shown, serverKey: 'sk-one' }, 'admitted'],
    ['a token of the device', { ...shown, sct: 'tokenA' }, 'admitted'],
    ['the last of its tokens', { ...shown, sct: 'tokenB' }, 'admitted'],
    ['a token, and a key that is then ignored', { ...shown, sct: 'tokenA', serverKey: 'sk-unknown' }, 'admitted'],
    ['an unknown product', { ...shown, productId: 'pr-x', serverKey: 'sk-a' }, StationCode.UNKNOWN_PRODUCT_ID],
    ['an unknown device, with a key', { ...shown, deviceId: 'de-x', serverKey: 'sk-a' }, StationCode.UNKNOWN_DEVICE_ID],
    ['an unknown device, with a token', { ...shown, deviceId: 'de-x', sct: 'tokenA' }, StationCode.UNKNOWN_DEVICE_ID],
    ['an unknown key, whether the device exists', { ...shown, serverKey: 'sk-x' }, StationCode.UNKNOWN_SERVER_KEY],
    ['an unknown key, or not', { ...shown, deviceId: 'de-x', serverKey: 'sk-x' }, StationCode.UNKNOWN_SERVER_KEY],
    ['no credential', shown, StationCode.UNKNOWN_SERVER_KEY],
    ['a key of another organization', { ...shown, serverKey: 'sk-b' }, StationCode.UNKNOWN_SERVER_KEY],
    ['a key for another product', { ...shown, productId: 'pr-2', serverKey: 'sk-one' }, StationCode.UNKNOWN_SERVER_KEY],
    ['a key that requires a JWT', { ...shown, serverKey: 'sk-jwt' }, StationCode.SERVER_KEY_MISMATCH],
    ['a key that requires a JWT, with a valid one', { ...shown, serverKey: 'sk-jwt', jwt: 'good' }, 'admitted'],
    [
      'with a valid one, and an unknown device',
      { ...shown, deviceId: 'de-x', serverKey: 'sk-jwt', jwt: 'good' },
      StationCode.UNKNOWN_DEVICE_ID,
    ],
    ['with an invalid one', { ...shown, serverKey: 'sk-jwt', jwt: 'bad' }, StationCode.INVALID_JWT],
    [
      'with an invalid one, and an unknown device',
      { ...shown, deviceId: 'de-x', serverKey: 'sk-jwt', jwt: 'bad' },
      StationCode.INVALID_JWT,
    ],
    ['with one for another device', { ...shown, serverKey: 'sk-jwt', jwt: 'elsewhere' }, StationCode.TOKEN_REJECTED],
    [
      'with one for another, and an unknown device',
      { ...shown, deviceId: 'de-x', serverKey: 'sk-jwt', jwt: 'elsewhere' },
      StationCode.TOKEN_REJECTED,
    ],
    [
      'a key that requires a JWT, and an unknown device',
      { ...shown, deviceId: 'de-x', serverKey: 'sk-jwt' },
      StationCode.SERVER_KEY_MISMATCH,
    ],
    ['a key with an incomplete issuer, with a valid JWT', { ...shown, serverKey: 'sk-half', jwt: 'good' }, StationCode.INVALID_JWT],
    ['a JWT alone, whether the device exists', { ...shown, jwt: 'good' }, StationCode.UNKNOWN_SERVER_KEY],
    ['a JWT alone, or not', { ...shown, deviceId: 'de-x', jwt: 'good' }, StationCode.UNKNOWN_SERVER_KEY],
    ['a JWT for an unknown product', { ...shown, productId: 'pr-x', serverKey: 'sk-jwt', jwt: 'good' }, StationCode.UNKNOWN_PRODUCT_ID],
    [
      'a JWT for a product of another organization',
      { ...shown, productId: 'pr-b', serverKey: 'sk-jwt', jwt: 'good' },
      StationCode.UNKNOWN_SERVER_KEY,
    ],
    ['a JWT beside an unknown key', { ...shown, serverKey: 'sk-x', jwt: 'good' }, StationCode.UNKNOWN_SERVER_KEY],
    ['a JWT beside a key that needs none', { ...shown, serverKey: 'sk-a', jwt: 'good' }, StationCode.SERVER_KEY_MISMATCH],
    ['a JWT beside a token, which is then ignored', { ...shown, sct: 'tokenA', jwt: 'bad' }, 'admitted'],
    ['a JWT beside a wrong token', { ...shown, sct: 'tokenX', serverKey: 'sk-jwt', jwt: 'good' }, StationCode.TOKEN_REJECTED],
    ['a wrong token', { ...shown, sct: 'tokenX' }, StationCode.TOKEN_REJECTED],
    ['an empty token', { ...shown, sct: '' }, StationCode.TOKEN_REJECTED],
    ['the token of another device', { ...shown, sct: 'tokenC' }, StationCode.TOKEN_REJECTED],
    ['a wrong token beside a valid key', { ...shown, sct: 'tokenX', serverKey: 'sk-a' }, StationCode.TOKEN_REJECTED],
    ['a hash in the place of a token', { ...shown, sct: hashSecret('tokenA') }, StationCode.TOKEN_REJECTED],
  ])('%s', async (_what, admission, expected) => {
    const checked = await checkConnect(store, admission, checkToken);
    if (expected === 'admitted') expect(checked).toMatchObject({ device: { productId: 'pr-1', deviceId: 'de-1' } });
    else expect(checked).toMatchObject({ refused: expected });
  });

  test.each<[string, object]>([
    ['busy', { wait: 3, reason: 'rate' }],
    ['unavailable', { wait: 30, reason: 'issuer' }],
  ])('a token that cannot be checked now: %s', async (jwt, expected) => {
    expect(await checkConnect(store, { ...shown, serverKey: 'sk-jwt', jwt }, checkToken)).toEqual(expected);
  });

  test('a refusal says that the token does not name the device: its code is also that of a wrong token', async () => {
    const message = 'the token does not name this device';
    expect(await checkConnect(store, { ...shown, serverKey: 'sk-jwt', jwt: 'elsewhere' }, checkToken)).toMatchObject({ message });
  });

  test('a JWT is checked against the app of its key, and only when it is needed', async () => {
    const check = vi.fn<CheckToken>(async () => 'admitted');
    for (const each of [{ sct: 'tokenA' }, { serverKey: 'sk-a' }, { serverKey: 'sk-x' }, {}])
      await checkConnect(store, { ...shown, ...each, jwt: 'good' }, check);
    expect(check).not.toHaveBeenCalled();
    await checkConnect(store, { ...shown, serverKey: 'sk-jwt', jwt: 'good' }, check);
    expect(check).toHaveBeenCalledExactlyOnceWith(expect.objectContaining({ appId: 'ap-jwt' }), 'good');
  });
});
