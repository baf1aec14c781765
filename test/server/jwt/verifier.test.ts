/** Which tokens admit a client, how often they are checked, and which are cached. */
import { beforeAll, beforeEach, expect, test, vi } from 'vitest';
import { type Clock, silentLog } from '../../../platform/environment.ts';
import { LogTally } from '../../../runtime/log-tally.ts';
import type { KeySets } from '../../../server/jwt/key-sets.ts';
import { type KeySet, readKeySet } from '../../../server/jwt/keys.ts';
import type { VerifyToken } from '../../../server/jwt/token.ts';
import { type TokenVerdict, TokenVerifier } from '../../../server/jwt/verifier.ts';
import type { Simulation } from '../../../testing/index.ts';
import { nativeSimulation } from '../../support/simulation.ts';
import { goodClaims, type IssuerKey, issuerKey, jwtApp, NOW, signed } from './issuer.ts';

let key: IssuerKey;
let other: IssuerKey;
let good: string;
let sim: Simulation;
let set: KeySet | null;
/** Result for a token whose key is not in the set. */
let newer: KeySet | null;
let wallTime: number;
let clock: Clock;
let keySets: KeySets;
let verifier: TokenVerifier;
let tally: LogTally;
/** What is logged at info. */
let lines: [string, unknown][];

const setOf = (...keys: IssuerKey[]) => readKeySet(new TextEncoder().encode(JSON.stringify({ keys: keys.map(({ jwk }) => jwk) })));

beforeAll(async () => {
  [key, other] = [await issuerKey('one'), await issuerKey('two')];
  good = await signed(key);
});

beforeEach(async () => {
  vi.restoreAllMocks();
  sim = nativeSimulation();
  set = setOf(key);
  newer = set;
  wallTime = NOW;
  clock = { ...sim.host('station').clock, now: () => sim.now, wallTime: () => wallTime };
  keySets = { of: async (_: unknown, lacking?: KeySet) => (lacking === undefined ? set : newer) } as unknown as KeySets;
  lines = [];
  const log = { ...silentLog, info: (message: string, fields: unknown) => void lines.push([message, fields]) };
  tally = new LogTally(clock, log);
  verifier = new TokenVerifier({ clock, tally, keySets, rate: 1, burst: 2 });
});

const check = (token: string, { device = 'pr-1.de-1', app = jwtApp(), address = '192.0.2.1' } = {}): Promise<TokenVerdict> =>
  verifier.check({ app, token, device, address });

test('a token admits to the devices that it names, and to no others', async () => {
  expect([await check(good), await check(good, { device: 'pr-1.de-2' }), await check(good, { device: 'pr-1.de-11' })]).toEqual([
    'admitted',
    'elsewhere',
    'elsewhere',
  ]);
});

test('a token of another key is invalid, and so is any other text', async () => {
  expect([await check(await signed({ ...other, kid: 'one' })), await check('x.y.z'), await check('')]).toEqual([
    'invalid',
    'invalid',
    'invalid',
  ]);
});

test('a token with an unknown key id is checked against a newer set', async () => {
  newer = setOf(key, other);
  expect(await check(await signed(other))).toBe('admitted');
});

test('a token with a key id that the issuer does not have is invalid', async () => {
  expect(await check(await signed(other))).toBe('invalid');
});

test('a token of a key without an id is checked against a newer set, when the issuer has replaced that key', async () => {
  const anonymous = ({ jwk: { kid: _, ...jwk }, ...rest }: IssuerKey): IssuerKey => ({ ...rest, jwk });
  set = newer = setOf(anonymous(key));
  expect(await check(good)).toBe('admitted');
  newer = setOf(anonymous(other));
  expect(await check(await signed(other))).toBe('admitted');
});

test('each app has one line a minute with the reason of a refusal, and nothing of the token', async () => {
  const first = await signed(other);
  const app = { ...jwtApp(), appId: 'ap-2' };
  for (const token of [first, good, 'none', 'none']) await check(token, { device: 'pr-1.de-2' });
  await check('none', { app });
  const shown = { device: 'pr-1.de-2', address: '192.0.2.1' };
  expect(lines).toEqual([
    ['a token was refused', { ...shown, app: 'ap-jwt', reason: 'no key of the issuer has signed it' }],
    [
      'a token was refused',
      { app: 'ap-2', device: 'pr-1.de-1', address: '192.0.2.1', reason: 'it is not a JWT with an accepted algorithm' },
    ],
  ]);
  await sim.run(60_000);
  expect(lines[2]?.[1]).toEqual({ 'a token was refused: ap-jwt': 3 });
  await check(good, { device: 'pr-1.de-2' });
  expect(lines[3]).toEqual(['a token was refused', { ...shown, app: 'ap-jwt', reason: 'its svc_ids does not name the device' }]);
  expect(JSON.stringify(lines)).not.toContain(first.slice(0, 8));
});

test('no token can be checked without the issuer’s keys', async () => {
  set = null;
  expect(await check(good)).toBe('unavailable');
});

test('a valid token is checked once for all devices', async () => {
  const verify = vi.spyOn(crypto.subtle, 'verify');
  for (let times = 0; times < 20; times++) expect(await check(good)).toBe('admitted');
  expect(await check(good, { device: 'pr-1.de-2' })).toBe('elsewhere');
  expect(verify).toHaveBeenCalledTimes(1);
});

test('a cached token is dropped a minute after it expires', async () => {
  await check(good);
  wallTime = NOW + 3_600_000 + 59_999;
  expect(await check(good)).toBe('admitted');
  wallTime++;
  expect(await check(good)).toBe('invalid');
  expect(verifier.size).toBe(0);
});

test('a cached token is dropped when its key is withdrawn', async () => {
  await check(good);
  set = newer = setOf(other);
  expect(await check(good)).toBe('invalid');
  expect(verifier.size).toBe(0);
});

test('a cached token stays when its key has another id', async () => {
  await check(good);
  set = newer = setOf({ ...key, jwk: { ...key.jwk, kid: 'renamed' } });
  expect(await check(good)).toBe('admitted');
});

test.each<[string, object, string]>([
  ['another app', { appId: 'ap-2' }, 'admitted'],
  ['another issuer', { jwt: { ...jwtApp().jwt, issuer: 'https://other.example' } }, 'invalid'],
  ['another audience', { jwt: { ...jwtApp().jwt, audience: 'other' } }, 'invalid'],
  ['another claim', { jwt: { ...jwtApp().jwt, svcIdsClaim: 'other' } }, 'elsewhere'],
])('a cached result is not used for %s', async (_, changes, verdict) => {
  await check(good);
  const verify = vi.spyOn(crypto.subtle, 'verify');
  expect(await check(good, { app: { ...jwtApp(), ...changes } })).toBe(verdict);
  expect(verify).toHaveBeenCalledTimes(1);
});

test('an address has a rate of checks, cached tokens excluded; another address has its own', async () => {
  await check(good);
  expect(await check(await signed(other))).toBe('invalid');
  expect(await check(await signed(other))).toEqual({ wait: 1 });
  expect(await check(good)).toBe('admitted');
  expect(await check(await signed(other), { address: '192.0.2.2' })).toBe('invalid');
  await sim.run(1_000);
  expect(await check(await signed(other))).toBe('invalid');
});

test('a text that cannot be a token costs no check', async () => {
  for (let times = 0; times < 10; times++) await check('none');
  expect(await check(good)).toBe('admitted');
});

test('10,000 valid tokens are cached, and the oldest is dropped; invalid ones never are', { tags: ['slow'] }, async () => {
  const known = { keyId: set!.candidates({ alg: 'ES256', kid: 'one' })[0]!.id, expires: NOW + 1e6, devices: new Set(['pr-1.de-1']) };
  const verify = vi.fn<VerifyToken>().mockResolvedValue(known);
  verifier = new TokenVerifier({ clock, tally, keySets, rate: 1, burst: 2, verify });
  const claims = goodClaims();
  const token = (number: number) =>
    `${good.split('.')[0]}.${Buffer.from(JSON.stringify({ ...claims, number })).toString('base64url')}.AAAA`;
  for (let number = 0; number < 10_001; number++) expect(await check(token(number), { address: String(number) })).toBe('admitted');
  expect(verifier.size).toBe(10_000);
  verify.mockClear();
  await check(token(1));
  expect(verify).toHaveBeenCalledTimes(0);
  await check(token(0));
  expect(verify).toHaveBeenCalledTimes(1);
  verify.mockResolvedValue('it has expired');
  await check(token(20_000), { address: 'another' });
  expect(verifier.size).toBe(10_000);
});

test('tokens that name many devices make way earlier, when they name 100,000 together', async () => {
  const keyId = set!.candidates({ alg: 'ES256', kid: 'one' })[0]!.id;
  const devices = new Set(Array.from({ length: 30_000 }, (_, index) => `pr-1.de-${index}`));
  const verify = vi.fn<VerifyToken>().mockResolvedValue({ keyId, expires: NOW + 1e6, devices });
  verifier = new TokenVerifier({ clock, tally, keySets, rate: 9, burst: 9, verify });
  const tokens = await Promise.all(['a', 'b', 'c', 'd', 'e'].map((jti) => signed(key, { ...goodClaims(), jti })));
  for (const token of [...tokens, ...tokens.slice(-1)]) expect(await check(token)).toBe('admitted');
  expect(verifier.size).toBe(3);
  expect(verify).toHaveBeenCalledTimes(5);
  wallTime = NOW + 1e8;
  for (const token of tokens) await check(token);
  expect(verifier.size).toBe(3);
});
