/**
 * Hostile requests: each gets a documented status, changes nothing and leaves nothing in the log. Bodies are written by
 * hand and drawn from seeds; `SVC_TEST_SEED=n` replays one.
 */
import { describe, expect, it, test } from 'vitest';
import { type CborValue, encode } from '../../../../protocol/cbor/index.ts';
import { Random } from '../../../../testing/random.ts';
import { hostile, joined } from '../../../fuzz/mutate.ts';
import { seeds } from '../../../support/tiered.ts';
import { key } from '../model.ts';
import { type Body, type CallerName, cbor, EndpointBench } from './endpoint-bench.ts';
import { references } from './reference.ts';

type Keys = Readonly<Record<string, CborValue>>;

interface Target {
  readonly line: string;
  readonly caller: CallerName;
  /** A valid body. */
  readonly good: CborValue;
  readonly status: number;
  /** Ignores an invalid body. */
  readonly lenient?: true;
}

const targets: readonly Target[] = [
  { line: 'POST /iam/pairing/local-open', caller: 'stranger', good: { Username: 'new', FingerprintName: 'phone' }, status: 201 },
  { line: 'POST /iam/pairing/password-open', caller: 'opened', good: { Username: 'new', FingerprintName: 'phone' }, status: 201 },
  { line: 'POST /iam/pairing/local-initial', caller: 'stranger', good: { FingerprintName: 'phone' }, status: 201 },
  { line: 'POST /iam/pairing/password-invite', caller: 'invited', good: { FingerprintName: 'phone' }, status: 201, lenient: true },
  { line: 'PUT /iam/settings/local-open-pairing', caller: 'admin', good: false, status: 204 },
  { line: 'PUT /iam/device-info/friendly-name', caller: 'admin', good: 'Attic', status: 204 },
  { line: 'POST /iam/users', caller: 'admin', good: { Username: 'new' }, status: 201 },
  { line: `PUT /iam/users/ann/fingerprints/${key(7)}`, caller: 'admin', good: { FingerprintName: 'watch' }, status: 204 },
  { line: 'PUT /iam/users/ann/username', caller: 'admin', good: 'anna', status: 204 },
  { line: 'PUT /iam/users/ann/display-name', caller: 'admin', good: 'Änne', status: 204 },
  { line: 'PUT /iam/users/ann/password', caller: 'admin', good: 'secret', status: 204 },
  { line: 'PUT /iam/users/ann/role', caller: 'admin', good: 'Standard', status: 204 },
  { line: 'PUT /iam/users/ann/sct', caller: 'admin', good: 'abcdefghijkl', status: 204 },
  { line: 'PUT /iam/users/ann/oauth-subject', caller: 'admin', good: 'subject', status: 204 },
  { line: 'PUT /iam/users/ann/fingerprint', caller: 'admin', good: key(7), status: 204 },
  { line: 'PUT /iam/users/ann/push', caller: 'admin', good: { Token: 'token', ProjectId: 'other' }, status: 204 },
  { line: 'PUT /iam/users/ann/notification-categories', caller: 'admin', good: ['CRITICAL'], status: 204 },
];

/** Requests without a body that would be served. */
const bodiless: readonly (readonly [line: string, caller: CallerName, status: number])[] = [
  ['GET /iam/pairing', 'stranger', 205],
  ['GET /iam/settings', 'admin', 205],
  ['GET /iam/roles', 'admin', 205],
  ['GET /iam/me', 'ann', 205],
  ['GET /iam/users', 'admin', 205],
  ['GET /iam/users/ann', 'admin', 205],
  ['GET /iam/notification-categories', 'admin', 205],
  ['DELETE /iam/users/ann', 'admin', 202],
  [`DELETE /iam/users/ann/fingerprints/${key(2)}`, 'admin', 202],
  ['POST /iam/users/ann/push-test', 'admin', 201],
];

/** Arrays or maps nested to a depth. */
function nested(depth: number, around: (inner: CborValue) => CborValue): CborValue {
  return depth === 0 ? 0 : around(nested(depth - 1, around));
}

/** Values that are valid nowhere; null and the empty text have a meaning in some places. */
const never: readonly (readonly [string, CborValue])[] = [
  ['a number', 7],
  ['a negative number', -1],
  ['a fraction', 1.5],
  ['octets', Uint8Array.of(1, 2, 3)],
  ['a text of 1024 bytes', 'x'.repeat(1024)],
  ['a text of 100 kB', 'x'.repeat(100_000)],
  ['an array of numbers', [1, 2, 3]],
  ['nested arrays', nested(14, (inner) => [inner])],
  ['nested maps', { FingerprintName: nested(13, (inner) => ({ Username: inner })) }],
  ['many entries', Array.from({ length: 20_000 }, () => 0)],
];

const raw = (...bytes: number[]): Body => ({ contentFormat: 60, payload: Uint8Array.from(bytes) });
const brokenCbor: readonly (readonly [string, Body])[] = [
  ['100,000 open arrays', { contentFormat: 60, payload: new Uint8Array(100_000).fill(0x81) }],
  ['100,000 open arrays of unknown length', { contentFormat: 60, payload: new Uint8Array(100_000).fill(0x9f) }],
  ['a map key that claims 2^64 bytes', raw(0xa1, 0x7b, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff)],
  ['an array that claims 2^64 entries', raw(0x9b, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff)],
  ['a map that claims 2^32 entries', raw(0xbb, 0, 0, 0, 1, 0, 0, 0, 0)],
  ['a map with an open end', raw(0xbf, 0x68)],
  ['a text that is not UTF-8', raw(0x62, 0xc3, 0x28)],
  ['a tag', raw(0xc0, 0x61, 0x61)],
  ['undefined', raw(0xf7)],
  ['a lone break', raw(0xff)],
  ['a reserved length', raw(0x7c)],
  ['a number for a key', raw(0xa1, 0x01, 0x61, 0x61)],
  ['a key twice', { contentFormat: 60, payload: joined(Uint8Array.of(0xa2), ...[0, 0].map(() => encodedEntry('Username', 'new'))) }],
  ['the key __proto__', { contentFormat: 60, payload: joined(Uint8Array.of(0xa1), encodedEntry('__proto__', 'new')) }],
  ['one megabyte of zeros', { contentFormat: 60, payload: new Uint8Array(1 << 20) }],
];

function encodedEntry(name: string, value: string): Uint8Array {
  return joined(encode(name), encode(value));
}

/** Sends a request and expects a refusal that changes nothing. */
async function refused({ line, caller, lenient, status }: Target, body: Body, expected = 400): Promise<void> {
  const bench = new EndpointBench();
  const before = bench.snapshot;
  const reply = await bench.request(caller, line, body);
  expect(reply.status).toBe(lenient ? status : expected);
  expect(bench.errors).toEqual([]);
  if (lenient) return;
  expect(bench.snapshot).toBe(before);
  expect(bench.changes).toEqual([]);
  expect(reply.contentFormat).toBeUndefined();
  expect(reply.body).toMatch(/^[^\n]{5,100}$/);
}

describe.each(targets)('$line', (target) => {
  const { line, caller, good, status } = target;
  const isMap = typeof good === 'object' && !Array.isArray(good);
  const keys = (isMap ? good : {}) as Keys;

  it('accepts its body', async () => {
    const bench = new EndpointBench();
    const before = bench.snapshot;
    expect((await bench.request(caller, line, cbor(good))).status).toBe(status);
    expect(bench.snapshot === before).toBe(false);
  });

  it.each([undefined, 0, 40, 42, 50, 61, 0xffff])('refuses it as content format %s', async (contentFormat) => {
    const payload = encode(good);
    await refused(target, contentFormat === undefined ? { payload } : { payload, contentFormat });
  });

  it.each(never)('refuses %s', async (_what, value) => {
    await refused(target, cbor(value));
    for (const name of Object.keys(keys)) await refused(target, cbor({ ...keys, [name]: value }));
  });

  it('refuses true or an empty array or map for any other type', async () => {
    const others: CborValue[] = [true, [], {}].filter(
      (value) => typeof value !== typeof good || Array.isArray(value) !== Array.isArray(good),
    );
    for (const value of others) await refused(target, cbor(value));
    for (const name of Object.keys(keys)) for (const value of [true, [], {}]) await refused(target, cbor({ ...keys, [name]: value }));
  });

  it.each(brokenCbor)('refuses %s', async (_what, body) => {
    await refused(target, body);
  });

  it('refuses a part of it, or more than it', async () => {
    const whole = encode(good);
    for (let length = 1; length < whole.length; length++) await refused(target, { contentFormat: 60, payload: whole.subarray(0, length) });
    await refused(target, { contentFormat: 60, payload: joined(whole, Uint8Array.of(0)) });
    await refused(target, { contentFormat: 60, payload: joined(whole, whole) });
  });

  if (isMap)
    it('ignores unknown keys, up to the depth that is parsed', async () => {
      const more = {
        Extra: nested(15, (inner) => [inner]),
        '': null,
        constructor: 'x',
        hasOwnProperty: 1,
        username: 7,
        Long: 'x'.repeat(5000),
      };
      expect((await new EndpointBench().request(caller, line, cbor({ ...keys, ...more }))).status).toBe(status);
      const depth = joined(new Uint8Array(16).fill(0x81), Uint8Array.of(0));
      const map = joined(Uint8Array.of(0xa0 + Object.keys(keys).length + 1), encode(keys).subarray(1), encode('Extra'), depth);
      await refused(target, { contentFormat: 60, payload: map });
    });

  const { statuses } = references.find(({ endpoint }) => matches(endpoint, line))!;

  async function survives(seed: number): Promise<void> {
    const random = new Random(`${line} ${seed}`);
    for (let count = 0; count < 15; count++) {
      const bench = new EndpointBench();
      const before = bench.snapshot;
      const reply = await bench.request(caller, line, {
        contentFormat: 60,
        payload: hostile(random, [encode(good), encode({ Username: 'x' })]),
      });
      expect(statuses.filter((each) => each !== 500)).toContain(reply.status);
      if (reply.status >= 400) expect(bench.snapshot).toBe(before);
      expect(bench.errors).toEqual([]);
    }
  }
  it.each(seeds(1, 1))('survives damaged bodies, seed %i', survives);
  it.each(seeds(2, 12))('survives damaged bodies, seed %i', { tags: ['slow'] }, survives);
});

function matches(endpoint: string, line: string): boolean {
  const pattern = endpoint.replaceAll(/\{\w+\}/g, '[^/]+');
  return new RegExp(`^${pattern}$`).test(line);
}

test('every endpoint is among the targets', () => {
  const lines = [...targets.map(({ line }) => line), ...bodiless.map(([line]) => line)];
  for (const { endpoint } of references) expect(lines.filter((line) => matches(endpoint, line)).length, endpoint).toBeGreaterThan(0);
});

describe.each(bodiless)('%s', (line, caller, status) => {
  it('ignores the body', async () => {
    for (const body of [cbor({ Username: 'x' }), raw(0xff), { payload: new Uint8Array(100_000) }, { contentFormat: 50 }]) {
      const bench = new EndpointBench();
      expect((await bench.request(caller, line, body)).status).toBe(status);
      expect(bench.errors).toEqual([]);
    }
  });
});

describe.each([...targets.map(({ line, caller, good, status }) => ({ line, caller, body: cbor(good), status })), ...bodilessTargets()])(
  'options of $line',
  ({ line, caller, body, status }) => {
    /** If-Match, If-None-Match, Uri-Query, Accept, Proxy-Uri, Proxy-Scheme, and some that are undefined. */
    it.each([1, 5, 15, 17, 35, 39, 9, 4095, 65_001])('refuse a critical, unknown option: %i', async (number) => {
      const bench = new EndpointBench();
      const before = bench.snapshot;
      expect(await bench.message(caller, line, body, number)).toBe(400);
      expect(bench.snapshot).toBe(before);
      expect(bench.pushes).toEqual([]);
    });

    it('accept a known critical option and elective ones', async () => {
      for (const number of [3, 7, 4, 8, 14, 20, 60, 2048, 65_000]) {
        expect(await new EndpointBench().message(caller, line, body, number), String(number)).toBe(status);
      }
    });
  },
);

function bodilessTargets(): { line: string; caller: CallerName; body: Body; status: number }[] {
  return bodiless.map(([line, caller, status]) => ({ line, caller, body: {}, status }));
}

/** Without `.` and `..`: a path with them as segments is invalid (RFC 7252 §5.10.1). */
describe('impossible names of users', () => {
  const names = [
    '',
    ' ',
    'ANN',
    'ann ',
    'ann\0',
    'änn',
    '__proto__',
    'constructor',
    'toString',
    '*',
    '%',
    'a/b',
    '{username}',
    'x'.repeat(120),
  ];
  const lines = [...targets.map(({ line, good }) => ({ line, body: cbor(good) })), ...bodiless.map(([line]) => ({ line, body: {} }))];

  it.each(lines.filter(({ line }) => line.includes('/ann')))('$line', async ({ line, body }) => {
    for (const name of names) {
      const bench = new EndpointBench();
      const before = bench.snapshot;
      const reply = await bench.request('admin', line.replace('/ann', `/${encodeURIComponent(name)}`), body);
      expect(reply.status, name).toBe(404);
      expect(bench.snapshot).toBe(before);
    }
  });
});
