/**
 * The state as JSON: version 3 is read back equal, versions 1 and 2 are converted, all else is refused with the place
 * of the error.
 */
import { describe, expect, it } from 'vitest';
import { defaultIamLimits, type IamLimits, Rules, readState, stateDocument } from '../../../device/iam/index.ts';
import { fakeSecrets, key, stateOf, user } from './model.ts';

const read = (document: unknown, limits: Partial<IamLimits> = {}, notificationCategories: string[] = ['Alarm']) =>
  readState(document, { rules: new Rules({ ...defaultIamLimits, ...limits }), notificationCategories, secrets: fakeSecrets() });
const throughText = (document: unknown) => JSON.parse(JSON.stringify(document));

const flags = { LocalOpenPairing: true, PasswordOpenPairing: false, PasswordInvitePairing: true, LocalInitialPairing: false };
const fullUser = {
  Username: 'ann',
  DisplayName: 'Ann',
  ServerConnectToken: 'sct-ann',
  Role: 'Guest',
  Push: { Token: 'token', ProjectId: 'project' },
  NotificationCategories: ['Alarm'],
  OauthSubject: 'subject',
};
const version2 = {
  Version: 2,
  OpenPairingPassword: 'open-sesame',
  OpenPairingSct: 'sct-open',
  ...flags,
  OpenPairingRole: 'Guest',
  InitialPairingUsername: 'admin',
  FriendlyName: 'Kitchen',
  Users: [
    {
      ...fullUser,
      Password: 'secret',
      Fingerprints: [{ Fingerprint: key(1), Name: 'Phone', Added: '2026-01-02' }, { Fingerprint: key(2) }],
    },
  ],
};

describe('the state document', () => {
  it('of version 2 is loaded, and written as version 3 without a clear password', async () => {
    const before = throughText(version2);
    const written = throughText(stateDocument(await read(version2)));
    expect(version2).toEqual(before);
    const { OpenPairingPassword: _, Users: __, ...settings } = version2;
    const { Password: ___, ...kept } = version2.Users[0]!;
    expect(written).toEqual({
      ...settings,
      Version: 3,
      OpenPairingPasswordSealed: 'sealed:open-sesame',
      Users: [
        {
          ...kept,
          PasswordVerifier: { Kdf: 1, Salt: 'BwcHBwcHBwcHBwcHBwcHBw==', Value: Buffer.from('secret'.padEnd(16)).toString('base64') },
        },
      ],
    });
  });

  it('of version 3 is read back as it was written', async () => {
    const written = throughText(stateDocument(await read(version2)));
    expect(throughText(stateDocument(await read(written)))).toEqual(written);
    expect(throughText(stateDocument(await read(stateDocument(await read(written)))))).toEqual(written);
  });

  it('of version 1 has one fingerprint for each user', async () => {
    const { users } = await read({
      Version: 1,
      Users: [{ Username: 'ann', Fingerprint: key(1), Password: 'secret' }, { Username: 'bob' }],
    });
    expect(users.user('ann')?.fingerprints).toEqual([{ fingerprint: key(1) }]);
    expect(users.entry('ann')?.verifier?.kdf).toBe(1);
    expect(users.user('bob')?.fingerprints).toEqual([]);
  });

  it('without flags has them all off', async () => {
    expect(await read({ Version: 2, Users: [] })).toEqual(stateOf());
  });

  it('keeps order and every field of many users', async () => {
    const users = Array.from({ length: 100 }, (_, index) =>
      user(`u${index}`, { fingerprints: [{ fingerprint: key(index) }], sct: `sct${index}` }),
    );
    const state = await read(throughText(stateDocument(stateOf(users))));
    expect([...state.users.entries]).toEqual(users);
    expect(state.users.byFingerprint(key(42))?.username).toBe('u42');
  });

  const only = (fields: object) => ({ Version: 3, Users: [{ Username: 'ok' }, { Username: 'ann', ...fields }] });
  const verifier = { Kdf: 1, Salt: 'BwcHBwcHBwcHBwcHBwcHBw==', Value: 'BwcHBwcHBwcHBwcHBwcHBw==' };
  const refused: [name: string, document: unknown, message: string, limits?: Partial<IamLimits>][] = [
    ['a later version', { ...version2, Version: 4 }, 'Version: is 4, and only versions 1 to 3 can be read'],
    ['a version of every object', { Version: 'constructor' }, 'Version: must be a whole number'],
    ['no users', { Version: 3 }, '"Users" is missing'],
    ['a clear password in version 3', only({ Password: 'secret' }), 'Users[1]: unknown member "Password"'],
    ['a clear open password in version 3', { Version: 3, OpenPairingPassword: 'x', Users: [] }, 'unknown member "OpenPairingPassword"'],
    ['a flag that is no boolean', { Version: 3, LocalOpenPairing: 1, Users: [] }, 'LocalOpenPairing: must be true or false'],
    ['a null', { Version: 3, FriendlyName: null, Users: [] }, 'FriendlyName: must be a text'],
    ['a user without name', { Version: 2, Users: [{}] }, 'Users[0]: "Username" is missing'],
    [
      'a bad username',
      { Version: 2, Users: [{ Username: 'Ann' }] },
      'Users[0]: a username has only the characters a-z, 0-9, "_", "." and "-"',
    ],
    ['an empty username', { Version: 2, Users: [{ Username: '' }] }, 'Users[0]: the username is empty'],
    ['a name twice', { Version: 2, Users: [{ Username: 'ann' }, { Username: 'ann' }] }, 'Users[1]: an earlier user has the same name'],
    [
      'a key of two users',
      { Version: 1, Users: ['ann', 'bob'].map((Username) => ({ Username, Fingerprint: key(1) })) },
      'Users[1]: a fingerprint is listed twice',
    ],
    ['a key twice', only({ Fingerprints: [1, 1].map((n) => ({ Fingerprint: key(n) })) }), 'Users[1]: a fingerprint is listed twice'],
    [
      'a day of another form',
      only({ Fingerprints: [{ Fingerprint: key(1), Added: '2026-1-2' }] }),
      'Users[1].Fingerprints[0].Added: a day is YYYY-MM-DD',
    ],
    ['a short fingerprint', only({ Fingerprints: [{ Fingerprint: 'ab' }] }), 'Users[1]: a fingerprint has 64 lower-case hex digits'],
    [
      'an unknown category',
      only({ NotificationCategories: ['Fire'] }),
      'Users[1]: user "ann" has the notification category "Fire", which the device does not have',
    ],
    ['a long display name', only({ DisplayName: 'é'.repeat(33) }), 'Users[1]: the display name is longer than 64 bytes'],
    ['a long push token', only({ Push: { Token: 'x'.repeat(1024) } }), 'Users[1]: the push token is longer than 1023 bytes'],
    [
      'too many fingerprints',
      only({ Fingerprints: [1, 2].map((n) => ({ Fingerprint: key(n) })) }),
      'Users[1]: the limit of 1 fingerprints of a user is reached',
      { maxFingerprintsPerUser: 1 },
    ],
    [
      'a short clear password',
      { Version: 2, Users: [{ Username: 'ann', Password: 'abc' }] },
      'Users[0].Password: the password is shorter than 4 bytes',
    ],
    [
      'an empty open password',
      { Version: 2, OpenPairingPassword: '', Users: [] },
      'OpenPairingPassword: the password is shorter than 4 bytes',
    ],
    ['another key derivation', only({ PasswordVerifier: { ...verifier, Kdf: 2 } }), 'Users[1].PasswordVerifier.Kdf: must be 1'],
    [
      'a salt that is not base64',
      only({ PasswordVerifier: { ...verifier, Salt: 'Bwc' } }),
      'Users[1].PasswordVerifier.Salt: must be base64',
    ],
    ['a short salt', only({ PasswordVerifier: { ...verifier, Salt: 'Bwc=' } }), 'Users[1].PasswordVerifier.Salt: must have 16 bytes'],
    [
      'a short value',
      only({ PasswordVerifier: { ...verifier, Value: 'Bwc=' } }),
      'Users[1].PasswordVerifier.Value: must have 16 to 64 bytes',
    ],
  ];
  for (const [name, document, message, limits] of refused) {
    it(`refuses ${name}`, async () => {
      await expect(read(document, limits)).rejects.toMatchObject({ message });
    });
  }
});
