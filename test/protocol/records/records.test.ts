/** Records that both ends use: ids, pairing strings, and bodies byte for byte. */
import { readFileSync } from 'node:fs';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { type CborValue, decode, encode } from '../../../protocol/cbor/index.ts';
import { LocalError, RemoteError } from '../../../protocol/errors/index.ts';
import * as records from '../../../protocol/records/index.ts';
import { anyText } from '../../support/text.ts';
import { seededRandom } from '../coap/pair.ts';

const fingerprint = '0123456789abcdef'.repeat(4);

describe('ids', () => {
  test.each([
    ['pr-12345678', 'de-abcdefgh', true],
    ['p', 'd', true],
    ['Pr_A', 'D-1', true],
    ['x'.repeat(61), 'd', true],
    ['x'.repeat(31), 'y'.repeat(31), true],
    ['x'.repeat(31), 'y'.repeat(32), false],
    ['x'.repeat(62), 'd', false],
    ['', 'd', false],
    ['p', '', false],
    ['p.q', 'd', false],
    ['p', 'd e', false],
    ['p', 'dü', false],
    ['p', 'd\n', false],
    ['p,d', 'd', false],
  ])('%o and %o: %s', (productId, deviceId, valid) => {
    expect(records.areIds(productId, deviceId)).toBe(valid);
    if (valid) expect(() => records.checkIds(productId, deviceId)).not.toThrow();
    else expect(() => records.checkIds(productId, deviceId)).toThrow(LocalError);
  });
});

describe('pairing strings', () => {
  test.each<[records.PairingString, string]>([
    [{ productId: 'pr-1', deviceId: 'de-1' }, 'p=pr-1,d=de-1'],
    [{ productId: 'pr-1', deviceId: 'de-1', password: 'secret', sct: 'abc123' }, 'p=pr-1,d=de-1,pwd=secret,sct=abc123'],
    [{ productId: 'pr-1', deviceId: 'de-1', sct: 'abc', username: 'bob', fingerprint }, `p=pr-1,d=de-1,sct=abc,u=bob,fp=${fingerprint}`],
    [{ productId: 'pr-1', deviceId: 'de-1', password: 'a,b=c%d é' }, 'p=pr-1,d=de-1,pwd=a%2Cb=c%25d%20%C3%A9'],
    [{ productId: 'pr-1', deviceId: 'de-1', password: '' }, 'p=pr-1,d=de-1,pwd='],
    [
      { productId: 'pr-1', deviceId: 'de-1', server: 'a.example:4433', serverFingerprint: fingerprint, password: 'x', username: 'bob' },
      `p=pr-1,d=de-1,s=a.example:4433,sf=${fingerprint},pwd=x,u=bob`,
    ],
    [
      { productId: 'pr-1', deviceId: 'de-1', addresses: ['192.168.1.7:5592', '[fe80::1]:5592'], sct: 'abc', fingerprint },
      `p=pr-1,d=de-1,a=192.168.1.7:5592;[fe80::1]:5592,sct=abc,fp=${fingerprint}`,
    ],
    [{ productId: 'pr-1', deviceId: 'de-1', server: `${'x'.repeat(250)}:4433` }, `p=pr-1,d=de-1,s=${'x'.repeat(250)}:4433`],
  ])('%j is %s', (pairing, text) => {
    expect(records.encodePairingString(pairing)).toBe(text);
    expect(records.decodePairingString(text)).toEqual(pairing);
  });

  test('may have any order, blanks around them, and unknown names', () => {
    expect(records.decodePairingString('  sct=abc, new=x=y ,d=de-1,p=pr-1\n')).toEqual({ productId: 'pr-1', deviceId: 'de-1', sct: 'abc' });
  });

  test.each([
    ['', /name=value/],
    ['hello', /part 1 of it is not of the form name=value: it is cut or mistyped/],
    ['p=pr-1,d=de-1,pwd=a,secret', /^(?!.*secret).*part 4 of it/],
    ['p=pr-1', /no device id/],
    ['d=de-1', /no product id/],
    ['p=pr-1,d=de-1,p=pr-2', /"p" twice/],
    ['p=pr-1,d=de-1,', /name=value/],
    ['p=pr-1,d=de-1,=x', /name=value/],
    ['p=pr 1,d=de-1', /product id must be/],
    ['p=pr-1,d=', /device id must be/],
    ['p=pr-1,d=de-1,fp=abc', /device \(fp=\) must be 64 lower-case hex digits: it is cut or mistyped/],
    ['p=pr-1,d=de-1,s=a:1,sf=abc', /base station \(sf=\) must be 64 lower-case hex/],
    [`p=pr-1,d=de-1,sf=${fingerprint}`, /\(sf=\) and no base station \(s=\)/],
    ['p=pr-1,d=de-1,s=station.example', /base station \(s=\) must be host:port/],
    [`p=pr-1,d=de-1,s=${'x'.repeat(251)}:4433`, /base station \(s=\) must be host:port/],
    ['p=pr-1,d=de-1,s=a:1,s=b:1', /"s" twice/],
    ['p=pr-1,d=de-1,a=', /1 to 8 times host:port/],
    ['p=pr-1,d=de-1,a=10.0.0.1:1;', /1 to 8 times host:port/],
    [`p=pr-1,d=de-1,a=${'a:1;'.repeat(8)}a:1`, /1 to 8 times host:port/],
    [`p=pr-1,d=de-1,fp=${fingerprint.toUpperCase()}`, /64 lower-case hex/],
    ['p=pr-1,d=de-1,pwd=50%', /"pwd" has a "%"/],
    ['p=pr-1,d=de-1,pwd=%ff', /"pwd" has a "%"/],
    [`p=pr-1,d=de-1,pwd=${'x'.repeat(65)}`, /longer than 64 bytes/],
    [`p=pr-1,d=de-1,x=${'x'.repeat(1024)}`, /longer than 1024/],
  ])('are refused: %o', (text, problem) => {
    expect(() => records.decodePairingString(text)).toThrow(problem);
    expect(() => records.decodePairingString(text)).toThrow(LocalError);
  });

  test('preserve any values', { tags: ['slow'] }, () => {
    const id = fc.stringMatching(/^[A-Za-z0-9_-]{1,30}$/);
    const value = anyText(16).filter((text) => new TextEncoder().encode(text).length <= 64);
    const pairing = fc.record(
      { productId: id, deviceId: id, password: value, sct: value, username: value, fingerprint: fc.stringMatching(/^[0-9a-f]{64}$/) },
      { requiredKeys: ['productId', 'deviceId'] },
    );
    fc.assert(
      fc.property(pairing, (sample) => {
        const text = records.encodePairingString(sample);
        expect(text).toMatch(/^[!-~]+$/);
        expect(records.decodePairingString(text)).toEqual(sample);
      }),
      { numRuns: 300, seed: 1 },
    );
  });

  test.each([
    { productId: 'p', deviceId: 'd', password: 'x'.repeat(65) },
    { productId: 'p', deviceId: 'd', fingerprint: 'x' },
    { productId: '', deviceId: 'd' },
    { productId: 'p', deviceId: 'd', sct: '\ud800' },
    { productId: 'p', deviceId: 'd', server: 'station.example' },
    { productId: 'p', deviceId: 'd', serverFingerprint: fingerprint },
    { productId: 'p', deviceId: 'd', addresses: [] },
    { productId: 'p', deviceId: 'd', addresses: Array.from({ length: 8 }, (_, i) => `${'x'.repeat(150)}:${i + 1}`) },
  ])('cannot be encoded from %j', (pairing) => {
    expect(() => records.encodePairingString(pairing)).toThrow(LocalError);
  });
});

const service = { id: 'web', type: 'http', host: '127.0.0.1', port: 8080, streamPort: 0xffff_ffff, metadata: { title: 'größe' } };
const details = {
  modes: ['LocalOpen'],
  svcVersion: '0.1.0',
  appName: 'Tunnel',
  appVersion: '2.1',
  productId: 'pr-1',
  deviceId: 'de-1',
  friendlyName: 'Cellar',
} as const;
const user = {
  username: 'bob',
  displayName: 'Bob',
  role: 'Guest',
  fingerprints: [{ fingerprint, name: 'phone', added: '2026-01-02', lastUsed: '2026-01-03' }, { fingerprint: 'f'.repeat(64) }],
  sct: 'abc',
  push: { token: 't', projectId: 'p' },
  notificationCategories: ['INFO'],
  oauthSubject: 's',
};

const codecs: readonly (readonly [string, (value: never) => Uint8Array, (payload: Uint8Array) => unknown, unknown, CborValue])[] = [
  [
    'tunnel service',
    records.encodeTunnelService,
    records.decodeTunnelService,
    service,
    { Id: 'web', Type: 'http', Host: '127.0.0.1', Port: 8080, StreamPort: 0xffff_ffff, Metadata: { title: 'größe' } },
  ],
  [
    'UDP service that lost datagrams',
    records.encodeTunnelService,
    records.decodeTunnelService,
    { ...service, lost: 3 },
    { Id: 'web', Type: 'http', Host: '127.0.0.1', Port: 8080, StreamPort: 0xffff_ffff, Metadata: { title: 'größe' }, Lost: 3 },
  ],
  ['tunnel service ids', records.encodeTunnelServiceIds, records.decodeTunnelServiceIds, ['web', 'ssh'], ['web', 'ssh']],
  [
    'device details',
    records.encodeDeviceDetails,
    records.decodeDeviceDetails,
    details,
    {
      Modes: ['LocalOpen'],
      SvcVersion: '0.1.0',
      AppVersion: '2.1',
      AppName: 'Tunnel',
      ProductId: 'pr-1',
      DeviceId: 'de-1',
      FriendlyName: 'Cellar',
    },
  ],
  [
    'user',
    records.encodeUser,
    records.decodeUser,
    user,
    {
      Username: 'bob',
      DisplayName: 'Bob',
      Role: 'Guest',
      Fingerprints: [
        { Fingerprint: fingerprint, Name: 'phone', Added: '2026-01-02', LastUsed: '2026-01-03' },
        { Fingerprint: 'f'.repeat(64) },
      ],
      Fingerprint: 'f'.repeat(64),
      Sct: 'abc',
      Push: { Token: 't', ProjectId: 'p' },
      NotificationCategories: ['INFO'],
      OauthSubject: 's',
    },
  ],
  [
    'small user',
    records.encodeUser,
    records.decodeUser,
    { username: 'eve', fingerprints: [], notificationCategories: [] },
    { Username: 'eve', Fingerprints: [], NotificationCategories: [] },
  ],
  ['push', records.encodePush, records.decodePush, { token: 't', projectId: 'p' }, { Token: 't', ProjectId: 'p' }],
  ['push test', records.encodePushAnswer, records.decodePushAnswer, { statusCode: 404, body: '{}' }, { StatusCode: 404, Body: '{}' }],
  [
    'settings',
    records.encodeSettings,
    records.decodeSettings,
    {
      passwordOpenPairing: true,
      passwordInvitePairing: false,
      localOpenPairing: true,
      passwordOpenSct: 'sct',
      passwordOpenPassword: 'pwd',
    },
    {
      PasswordOpenPairing: true,
      PasswordInvitePairing: false,
      LocalOpenPairing: true,
      PasswordOpenSct: 'sct',
      PasswordOpenPassword: 'pwd',
    },
  ],
  [
    'small settings',
    records.encodeSettings,
    records.decodeSettings,
    { passwordOpenPairing: false, passwordInvitePairing: false, localOpenPairing: false },
    { PasswordOpenPairing: false, PasswordInvitePairing: false, LocalOpenPairing: false },
  ],
  [
    'open pairing',
    records.encodeOpenPairing,
    records.decodePasswordOpenPairing,
    { username: 'bob', fingerprintName: 'phone' },
    { Username: 'bob', FingerprintName: 'phone' },
  ],
  ['small open pairing', records.encodeOpenPairing, records.decodeOpenPairing, { username: 'bob' }, { Username: 'bob' }],
  ['fingerprint name', records.encodeFingerprintName, records.decodeFingerprintName, 'phone', { FingerprintName: 'phone' }],
  ['no fingerprint name', records.encodeFingerprintName, records.decodeFingerprintName, undefined, {}],
  ['new user', records.encodeNewUser, records.decodeNewUser, 'bob', { Username: 'bob' }],
  ['flag', records.encodeFlag, records.decodeFlag, true, true],
  ['text', records.encodeText, records.decodeText, 'Bob', 'Bob'],
  ['no text', records.encodeText, records.decodeText, undefined, null],
  ['names', records.encodeNames, records.decodeNames, ['admin', 'bob'], ['admin', 'bob']],
];

describe.each(codecs)('%s', (_, write, read, value, wire) => {
  test('has its names on the wire and survives a round trip', () => {
    expect(decode(write(value as never))).toEqual(wire);
    expect(read(write(value as never))).toEqual(value);
  });

  test('raises only remote errors when cut or mutated', () => {
    const whole = write(value as never);
    for (let length = 0; length < whole.length; length++) expect(() => read(whole.subarray(0, length))).toThrow(RemoteError);
    const random = seededRandom(1);
    for (let i = 0; i < 1_000; i++) {
      const payload = whole.slice();
      for (let j = random(3); j >= 0; j--) payload[random(payload.length)] = random(256);
      try {
        read(payload);
      } catch (error) {
        if (!(error instanceof RemoteError)) throw error;
      }
    }
  });
});

describe('pairing links', () => {
  const pairing = { productId: 'pr-1', deviceId: 'de-1', password: 'a,b#"<é%', username: 'bob' };

  test('preserve any pairing string, also after a browser has parsed the link', () => {
    const value = anyText(16).filter((text) => !/\p{Surrogate}/u.test(text) && text.trim() === text);
    fc.assert(
      fc.property(value, value, (password, sct) => {
        const link = records.encodePairingLink({ ...pairing, password, sct }, 'https://app.example/');
        expect(records.decodePairing(link)).toEqual({ ...pairing, password, sct });
        expect(new URL(link).href).toBe(link);
      }),
      { numRuns: 300, seed: 1 },
    );
  });

  test.each(['svc:pair', 'pair', 'https://a#b', 'https://a b', 'https://ä/', ''])('refuse the base %j', (base) => {
    expect(() => records.encodePairingLink(pairing, base)).toThrow(/base of a pairing link/);
  });

  test('are not mistaken for strings, whatever values those hold', () => {
    expect(records.decodePairing(' p=pr,d=de,pwd=x://y#z\n')).toEqual({ productId: 'pr', deviceId: 'de', password: 'x://y#z' });
    expect(() => records.decodePairing('https://app.example/#p=pr')).toThrow(/^not a pairing link/);
    expect(() => records.decodePairing('https://app.example/')).toThrow(LocalError);
  });
});

describe('records with missing or unknown members', () => {
  test('a service without metadata has none', () => {
    const { Metadata: _, ...rest } = decode(records.encodeTunnelService(service)) as Record<string, CborValue>;
    expect(records.decodeTunnelService(encode(rest))).toEqual({ ...service, metadata: {} });
  });

  test.each<[string, CborValue]>([
    ['StreamPort', 2 ** 32],
    ['Port', 65_536],
    ['Id', ''],
    ['Metadata', { a: 1 }],
    ['Host', 'x'.repeat(256)],
  ])('a service with a bad %s is refused', (name, value) => {
    const wire = decode(records.encodeTunnelService(service)) as Record<string, CborValue>;
    expect(() => records.decodeTunnelService(encode({ ...wire, [name]: value }))).toThrow(RemoteError);
  });

  test('unknown pairing modes are skipped', () => {
    expect(records.decodeDeviceDetails(encode({ Modes: ['LocalOpen', 'Telepathy', 7, 'PasswordInvite'] }))).toEqual({
      modes: ['LocalOpen', 'PasswordInvite'],
    });
    expect(records.decodeDeviceDetails(encode({}))).toEqual({ modes: [] });
  });
});

describe('invalid bodies', () => {
  const long = 'x'.repeat(1024);
  const refused: readonly (readonly [(payload: Uint8Array) => unknown, CborValue])[] = [
    ...[{}, null, [], 'bob', { Username: null }, { Username: 7 }, { Username: long }].flatMap(
      (body): (readonly [(payload: Uint8Array) => unknown, CborValue])[] => [
        [records.decodeNewUser, body],
        [records.decodeOpenPairing, body],
        [records.decodePasswordOpenPairing, body],
      ],
    ),
    [records.decodePasswordOpenPairing, { Username: 'bob', Password: 'secret' }],
    [records.decodePasswordOpenPairing, { Username: 'bob', Password: null }],
    [records.decodeOpenPairing, { Username: 'bob', FingerprintName: 7 }],
    [records.decodeFingerprintName, { FingerprintName: long }],
    [records.decodeFingerprintName, 'phone'],
    [records.decodePush, { Token: 't' }],
    [records.decodePush, { ProjectId: 'p' }],
    [records.decodePush, { Token: 't', ProjectId: null }],
    [records.decodeFlag, null],
    [records.decodeFlag, 1],
    [records.decodeFlag, 'true'],
    [records.decodeText, true],
    [records.decodeText, long],
    [records.decodeNames, 'admin'],
    [records.decodeNames, ['admin', null]],
    [records.decodeNames, ['admin', long]],
    [records.decodeNames, { 0: 'admin' }],
    [records.decodeSettings, { PasswordOpenPairing: true, LocalOpenPairing: true }],
    [records.decodePushAnswer, { StatusCode: -1, Body: '' }],
    [records.decodePushAnswer, { StatusCode: 200 }],
  ];

  test.each(refused)('%o refuses %j', (read, body) => {
    expect(() => read(encode(body))).toThrow(RemoteError);
  });

  test('unknown members are ignored, but a password is refused', () => {
    const body = { Username: 'bob', Password: 'secret', Extra: [long] };
    expect(records.decodeOpenPairing(encode(body))).toEqual({ username: 'bob' });
    expect(records.decodeNewUser(encode(body))).toBe('bob');
    expect(() => records.decodePasswordOpenPairing(encode(body))).toThrow(/Password/);
  });
});

test('settings have the names of docs/iam.md', () => {
  expect(Object.keys(records.settingFields)).toEqual(['password-open-pairing', 'password-invite-pairing', 'local-open-pairing']);
  expect(records.isSettingName('local-open-pairing')).toBe(true);
  expect(records.isSettingName('toString')).toBe(false);
});

test('the version is that of the package', () => {
  const { version } = JSON.parse(readFileSync(new URL('../../../package.json', import.meta.url), 'utf8')) as { version: string };
  expect(records.VERSION).toBe(version);
});
