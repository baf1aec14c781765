/** How the keys of issuers are fetched and cached, also with misbehaving issuers. */
import { beforeEach, describe, expect, test } from 'vitest';
import { RemoteError } from '../../../protocol/errors/index.ts';
import { LogTally } from '../../../runtime/log-tally.ts';
import { KeySets, TIMEOUT } from '../../../server/jwt/key-sets.ts';
import type { KeySet } from '../../../server/jwt/keys.ts';
import type { HttpAnswer, HttpGetRequest } from '../../../server/outbound/http.ts';
import { defaultSettings } from '../../../server/station/settings.ts';
import type { SimulatedHost, Simulation } from '../../../testing/index.ts';
import { nativeSimulation } from '../../support/simulation.ts';
import { ISSUER, jwtApp } from './issuer.ts';

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const EC = { kty: 'EC', crv: 'P-256', x: 'f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU', y: 'x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0' };

let sim: Simulation;
let host: SimulatedHost;
let sets: KeySets;
let asked: HttpGetRequest[];
let warnings: string[];
let addresses: string[];
/** The issuer's answer. */
let answer: (request: HttpGetRequest) => Promise<HttpAnswer>;

function json(keys: unknown[], cacheControl?: string): HttpAnswer {
  const headers = cacheControl === undefined ? {} : { 'cache-control': cacheControl };
  return { status: 200, headers: headers as Record<string, string>, body: new TextEncoder().encode(JSON.stringify({ keys })), cut: false };
}

beforeEach(() => {
  sim = nativeSimulation();
  host = sim.host('station');
  [asked, warnings, addresses] = [[], [], ['8.8.8.9']];
  answer = async () => json([{ ...EC, kid: 'one' }]);
  const warn = (text: string, fields?: object): void => void warnings.push(`${text} ${JSON.stringify(fields)}`);
  const { clock } = host;
  sets = new KeySets({
    clock,
    network: { resolve: async () => addresses },
    tally: new LogTally(clock, { ...host.log, warn }),
    get: (request) => {
      asked.push(request);
      return answer(request);
    },
    allowPrivate: (address) => address === '10.0.0.1',
    signal: new AbortController().signal,
  });
});

const app = jwtApp();
const get = (lacking?: KeySet) => sim.settle(sets.of(app, lacking));
const has = (set: KeySet | null, kid = 'one') => set?.candidates({ alg: 'ES256', kid }).length === 1;

async function pass(time: number): Promise<void> {
  await sim.run(time);
}

describe('keys of issuers', () => {
  test.each<[string | undefined, number]>([
    [undefined, 5 * MINUTE],
    ['max-age=0', 5 * MINUTE],
    ['max-age=60', 5 * MINUTE],
    ['public, max-age=3600', HOUR],
    ['Max-Age="3600"', HOUR],
    ['max-age=604800', 24 * HOUR],
    ['max-age=99999999999', 5 * MINUTE],
    ['no-store, max-age=3600', 5 * MINUTE],
    ['max-age=-1', 5 * MINUTE],
    ['rubbish', 5 * MINUTE],
  ])('are cached, with Cache-Control %s, for %i ms', async (cacheControl, lifetime) => {
    answer = async () => json([{ ...EC, kid: 'one' }], cacheControl);
    await get();
    await pass(lifetime - 1);
    expect(has(await get())).toBe(true);
    expect(asked).toHaveLength(1);
    await pass(1);
    await get();
    expect(asked).toHaveLength(2);
  });

  test('are fetched by one request at a time, which all callers share', async () => {
    const results = await sim.settle(Promise.all(Array.from({ length: 50 }, () => sets.of(app))));
    expect([results.every((set) => has(set)), asked.length]).toEqual([true, 1]);
  });

  test('are fetched per app, and again when its URL changes', async () => {
    await get();
    await sim.settle(sets.of(jwtApp({}, 'ap-other')));
    await sim.settle(sets.of(jwtApp({ jwksUri: `${ISSUER}/moved` })));
    expect(asked.map(({ url }) => url.pathname)).toEqual(['/keys', '/keys', '/moved']);
  });

  test('are dropped after that time when withdrawn', async () => {
    expect(has(await get())).toBe(true);
    answer = async () => json([{ ...EC, kid: 'two' }]);
    await pass(5 * MINUTE);
    const set = await get();
    expect([has(set), has(set, 'two')]).toEqual([false, true]);
  });
});

describe('a token with an unknown key', () => {
  test('causes another request, every 30 s at most', async () => {
    for (let second = 0; second < 95; second++) {
      await get((await get())!);
      await pass(1_000);
    }
    // At 0, 30, 60 and 90 s.
    expect(asked).toHaveLength(4);
  });

  test('finds a key that the issuer has added', async () => {
    const first = await get();
    answer = async () =>
      json([
        { ...EC, kid: 'one' },
        { ...EC, kid: 'two' },
      ]);
    expect(has(await get(first!), 'two')).toBe(false);
    await pass(30_000);
    expect(has(await get(first!), 'two')).toBe(true);
  });

  test('gets a set that was replaced meanwhile without a request', async () => {
    const first = await get();
    await pass(5 * MINUTE);
    const second = await get();
    expect(await get(first!)).toBe(second);
    expect(asked).toHaveLength(2);
  });
});

const failures: [string, () => Promise<HttpAnswer>, RegExp][] = [
  ['is down', () => Promise.reject(new RemoteError('BAD_RESPONSE', 'the other side cannot be reached')), /cannot be reached/],
  ['does not answer in time', () => Promise.reject(new RemoteError('TIMEOUT', 'no answer in time')), /no answer in time/],
  ['answers 500', async () => ({ ...json([]), status: 500 }), /answered 500/],
  ['redirects', async () => ({ ...json([]), status: 302, headers: { location: 'http://169.254.169.254/' } }), /answered 302/],
  ['sends more than 64 KiB', async () => ({ ...json([EC]), cut: true }), /more than 65536 bytes/],
  ['sends HTML', async () => ({ ...json([]), body: new TextEncoder().encode('<html>') }), /not return a JWK Set/],
  ['sends 10,000 keys', async () => json(Array(10_000).fill(EC)), /more than 100 keys/],
];

describe.each(failures)('an issuer that %s', (_, failing, reason) => {
  test('provides no keys, and is asked again after 30 s', async () => {
    answer = failing;
    expect(await get()).toBeNull();
    await pass(29_999);
    expect(await get()).toBeNull();
    expect(asked).toHaveLength(1);
    expect(warnings).toEqual([expect.stringMatching(reason)]);
    answer = async () => json([{ ...EC, kid: 'one' }]);
    await pass(1);
    expect(has(await get())).toBe(true);
  });

  test('leaves the last valid keys in use for 24 hours', async () => {
    const good = await get();
    answer = failing;
    await pass(24 * HOUR);
    expect(await get()).toBe(good);
    await pass(5 * MINUTE);
    expect(await get()).toBeNull();
  });
});

describe('a silent issuer', () => {
  test('delays only one caller per period when its last keys are known', async () => {
    const good = await get();
    answer = () => new Promise((_, reject) => void host.clock.schedule(TIMEOUT, () => reject(new RemoteError('TIMEOUT', 'no answer'))));
    await pass(5 * MINUTE);
    const since = sim.now;
    const first = sets.of(app);
    await pass(TIMEOUT);
    expect(await sim.settle(first)).toBe(good);
    await pass(28_000);
    expect([await get(), sim.now - since, asked.length]).toEqual([good, 31_000, 3]);
    // Its keys may have changed meanwhile, so one caller waits again.
    await pass(90_000);
    answer = async () => json([{ ...EC, kid: 'two' }]);
    expect(has(await get(), 'two')).toBe(true);
  });
});

describe('an issuer', () => {
  test('without HTTPS is never asked', async () => {
    expect(await sim.settle(sets.of(jwtApp({ jwksUri: 'http://login.example/keys' })))).toBeNull();
    expect(asked).toEqual([]);
  });

  test.each([['10.0.0.2'], ['127.0.0.1'], ['169.254.169.254'], ['::1'], ['8.8.8.8', '192.168.1.1']])(
    'at %s is never asked',
    async (...all) => {
      addresses = all;
      expect(await get()).toBeNull();
      expect(asked).toEqual([]);
      expect(warnings[0]).toMatch(/not at an address that is allowed/);
    },
  );

  test('at a private address is asked if the operator allows it', async () => {
    addresses = ['10.0.0.1'];
    expect(has(await get())).toBe(true);
    expect(asked[0]?.addresses).toEqual(['10.0.0.1']);
  });

  test('whose name resolves elsewhere later is checked again, and asked at the checked address', async () => {
    await get();
    expect(asked[0]?.addresses).toEqual(['8.8.8.9']);
    addresses = ['127.0.0.1'];
    await pass(5 * MINUTE);
    await get();
    expect(asked).toHaveLength(1);
  });

  test('behind a slow resolver is given up before a session without a credential ends', async () => {
    addresses = new Promise(() => {}) as never;
    const since = sim.now;
    expect(await get()).toBeNull();
    expect(sim.now - since).toBe(TIMEOUT);
    expect(TIMEOUT + 1_000).toBeLessThan(defaultSettings.arrivalTimeout);
  });
});

test('slow issuers of one organization do not block those of another', async () => {
  let release = (): void => {};
  answer = () => new Promise((resolve) => (release = () => resolve(json([{ ...EC, kid: 'one' }]))));
  const slow = Array.from({ length: 100 }, (_, index) => sets.of(jwtApp({}, `ap-${index}`)));
  await sim.run(10);
  expect(asked).toHaveLength(4);
  expect(await sim.settle(slow[50]!)).toBeNull();
  answer = async () => json([{ ...EC, kid: 'one' }]);
  expect(has(await sim.settle(sets.of({ ...jwtApp({}, 'ap-b'), organizationId: 'or-b' })))).toBe(true);
  release();
});

test('keys of the 1,000 apps used last are kept', async () => {
  await get();
  for (let index = 0; index < 999; index++) await sim.settle(sets.of({ ...jwtApp({}, `ap-${index}`), organizationId: `or-${index}` }));
  await get();
  expect(asked).toHaveLength(1000);
  await sim.settle(sets.of(jwtApp({}, 'ap-more')));
  await get();
  expect(asked).toHaveLength(1001);
  await sim.settle(sets.of(jwtApp({}, 'ap-0')));
  expect(asked).toHaveLength(1002);
});
