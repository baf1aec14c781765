/** Pairing from the client's side: the password first where one is needed, and the helper that chooses the mode. */
import { describe, expect, test } from 'vitest';
import {
  choosePairingMode,
  type IamConnection,
  IamUtil,
  missingForPairing,
  type PairingMode,
  type PairingResult,
  type PairOptions,
} from '../../../client/node.ts';
import { LocalError, RemoteError } from '../../../protocol/errors/index.ts';
import { encodePairingLink } from '../../../protocol/records/index.ts';
import { cbor, ScriptedDevice, user } from './scripted-device.ts';

let scripted: ScriptedDevice;

/** The connection of the scripted device, with logins that are only recorded, and refused with `refusal`. */
function withLogins(refusal?: Error): { iam: IamUtil; logins: string[][] } {
  const logins: string[][] = [];
  const connection: IamConnection = {
    request: (method, path, options) => scripted.connection.request(method, path, options),
    getClientFingerprint: () => scripted.connection.getClientFingerprint(),
    passwordAuthenticate: async (...login) => {
      logins.push(login);
      if (refusal !== undefined) throw refusal;
    },
  };
  return { iam: new IamUtil(connection), logins };
}

describe('pairing by password', () => {
  test('open: logs in with the empty name, then requests the user', async () => {
    scripted = await ScriptedDevice.make({ 'POST /iam/pairing/password-open': 201 });
    const { iam, logins } = withLogins();
    expect(await scripted.outcome(iam.pairPasswordOpen('bob', 'secret', { fingerprintName: 'phone' }))).toBeUndefined();
    expect(logins).toEqual([['', 'secret']]);
    expect(scripted.asked).toEqual([['POST /iam/pairing/password-open', { Username: 'bob', FingerprintName: 'phone' }]]);
  });

  test('by invitation: logs in as the user', async () => {
    scripted = await ScriptedDevice.make({ 'POST /iam/pairing/password-invite': 201 });
    const { iam, logins } = withLogins();
    expect(await scripted.outcome(iam.pairPasswordInvite('bob', 'secret'))).toBeUndefined();
    expect(logins).toEqual([['bob', 'secret']]);
    expect(scripted.asked).toEqual([['POST /iam/pairing/password-invite']]);
  });

  test.each([
    ['UNAUTHORIZED', 'AUTHENTICATION_ERROR'],
    ['NOT_FOUND', 'PAIRING_MODE_DISABLED'],
    ['TOO_MANY_REQUESTS', 'TOO_MANY_REQUESTS'],
    ['STOPPED', 'STOPPED'],
  ])('a login that ends with %s is %s, and no request follows', async (code, expected) => {
    scripted = await ScriptedDevice.make();
    const { iam } = withLogins(new RemoteError(code, 'no'));
    expect(await scripted.outcome(iam.pairPasswordOpen('bob', 'secret'))).toBe(expected);
    expect(await scripted.outcome(iam.pairPasswordInvite('bob', 'secret'))).toBe(expected);
    expect(scripted.asked).toEqual([]);
  });

  test('an empty password is INVALID_INPUT, and so is an invitation without a name', async () => {
    scripted = await ScriptedDevice.make();
    expect(await scripted.outcome(scripted.iam.pairPasswordOpen('bob', ''))).toBe('INVALID_INPUT');
    expect(await scripted.outcome(scripted.iam.pairPasswordInvite('', 'secret'))).toBe('INVALID_INPUT');
    expect(scripted.asked).toEqual([]);
  });

  test('passes on the device’s answer to the request', { tags: ['slow'] }, async () => {
    const [open, invite] = ['POST /iam/pairing/password-open', 'POST /iam/pairing/password-invite'];
    scripted = await ScriptedDevice.make({ [open]: [401, 403, 404, 409], [invite]: [401, 403, 404, 409] });
    const { iam } = withLogins();
    const codes = async (pair: () => Promise<void>) => [
      await scripted.outcome(pair()),
      await scripted.outcome(pair()),
      await scripted.outcome(pair()),
      await scripted.outcome(pair()),
    ];
    const common = ['AUTHENTICATION_ERROR', 'BLOCKED_BY_DEVICE_CONFIGURATION', 'PAIRING_MODE_DISABLED'];
    expect(await codes(() => iam.pairPasswordOpen('bob', 'secret'))).toEqual([...common, 'USERNAME_EXISTS']);
    expect(await codes(() => iam.pairPasswordInvite('bob', 'secret'))).toEqual([...common, 'FINGERPRINT_IN_USE']);
  });
});

describe('pair', () => {
  const modes = (...offered: PairingMode[]) => cbor(205, { Modes: offered });
  const becomes = (name: string) => [404, cbor(205, user(name))];

  test.each<[string, PairOptions, PairingMode[], string, unknown, string[][]]>([
    ['a name alone', { username: 'bob' }, ['LocalOpen', 'LocalInitial'], 'local-open', { Username: 'bob' }, []],
    ['nothing', {}, ['LocalOpen', 'LocalInitial'], 'local-initial', undefined, []],
    ['a name of the key', { fingerprintName: 'phone' }, ['LocalInitial'], 'local-initial', { FingerprintName: 'phone' }, []],
    [
      'a name and the open password',
      { username: 'bob', password: 'pw' },
      ['PasswordOpen'],
      'password-open',
      { Username: 'bob' },
      [['', 'pw']],
    ],
    [
      'an invitation',
      { pairing: 'p=pr,d=de,u=bob,pwd=pw' },
      ['PasswordOpen', 'PasswordInvite'],
      'password-invite',
      undefined,
      [['bob', 'pw']],
    ],
    [
      'a link',
      { pairing: encodePairingLink({ productId: 'pr', deviceId: 'de', username: 'bob', password: 'pw' }) },
      ['PasswordInvite'],
      'password-invite',
      undefined,
      [['bob', 'pw']],
    ],
    [
      'a string of the device and a name',
      { pairing: { productId: 'pr', deviceId: 'de', password: 'pw' }, username: 'bob' },
      ['PasswordOpen', 'PasswordInvite'],
      'password-open',
      { Username: 'bob' },
      [['', 'pw']],
    ],
    ['a mode', { mode: 'LocalOpen', username: 'bob' }, [], 'local-open', { Username: 'bob' }, []],
  ])('pairs with %s', async (_, options, offered, path, body, expectedLogins) => {
    const line = `POST /iam/pairing/${path}`;
    scripted = await ScriptedDevice.make({ 'GET /iam/me': becomes('bob'), 'GET /iam/pairing': modes(...offered), [line]: 201 });
    const { iam, logins } = withLogins();
    const paired = (await scripted.outcome(iam.pair(options))) as PairingResult;
    // The path has the words of the mode.
    expect([paired.mode?.replace(/\B[A-Z]/g, '-$&').toLowerCase(), paired.user?.username]).toEqual([path, 'bob']);
    expect(logins).toEqual(expectedLogins);
    expect(scripted.asked).toContainEqual(body === undefined ? [line] : [line, body]);
  });

  test('changes nothing when this client is already that user', async () => {
    scripted = await ScriptedDevice.make();
    const Fingerprints = [{ Fingerprint: scripted.connection.getClientFingerprint() }];
    scripted.answers('GET /iam/me', cbor(205, user('bob', { Fingerprints })));
    const { iam, logins } = withLogins();
    for (const options of [{}, { username: 'bob' }, { pairing: 'p=pr,d=de,u=bob,pwd=pw' }])
      expect(await scripted.outcome(iam.pair(options))).toMatchObject({ mode: null, user: { username: 'bob' } });
    expect(logins).toEqual([]);
    expect(new Set(scripted.asked.map(([line]) => line))).toEqual(new Set(['GET /iam/me']));
  });

  test('asks for the missing values, and only for those', async () => {
    scripted = await ScriptedDevice.make({
      'GET /iam/me': becomes('bob'),
      'GET /iam/pairing': modes('PasswordOpen'),
      'POST /iam/pairing/password-open': 201,
    });
    const { iam, logins } = withLogins();
    const questions: unknown[] = [];
    const ask = async (...question: [string, string]) => {
      questions.push(question);
      return question[0] === 'password' ? 'pw' : 'bob';
    };
    expect(await scripted.outcome(iam.pair({ ask }))).toMatchObject({ mode: 'PasswordOpen' });
    expect(questions).toEqual([
      ['user name', 'PasswordOpen'],
      ['password', 'PasswordOpen'],
    ]);
    expect(logins).toEqual([['', 'pw']]);
    expect(scripted.asked).toContainEqual(['POST /iam/pairing/password-open', { Username: 'bob' }]);
  });

  test('continues when this client is a user by password alone', async () => {
    const me = cbor(205, user('bob'));
    scripted = await ScriptedDevice.make({ 'GET /iam/me': me, 'POST /iam/pairing/password-invite': 201 });
    const { iam } = withLogins();
    expect(await scripted.outcome(iam.pair({ mode: 'PasswordInvite', username: 'bob', password: 'pw' }))).toMatchObject({
      mode: 'PasswordInvite',
    });
  });

  test.each<[string, PairOptions, PairingMode[], string, RegExp]>([
    ['nothing is offered', {}, [], 'PAIRING_MODE_DISABLED', /offers no pairing/],
    [
      'an invitation is no use',
      { pairing: 'p=pr,d=de,u=bob,pwd=pw' },
      ['PasswordOpen', 'LocalOpen'],
      'PAIRING_MODE_DISABLED',
      /PasswordOpen, LocalOpen.*PasswordInvite/,
    ],
    ['the name is missing', {}, ['LocalOpen'], 'INVALID_INPUT', /LocalOpen needs a user name$/],
    ['the password is missing', { username: 'bob' }, ['PasswordOpen'], 'INVALID_INPUT', /PasswordOpen needs a password$/],
    [
      'the password may be for either',
      { username: 'bob', password: 'pw' },
      ['PasswordOpen', 'PasswordInvite'],
      'INVALID_INPUT',
      /choose the mode/,
    ],
    ['the string is none', { pairing: 'p=pr' }, [], 'INVALID_ARGUMENT', /not a pairing string/],
  ])('gives a remedy when %s', async (_, options, offered, code, message) => {
    scripted = await ScriptedDevice.make({ 'GET /iam/me': 404, 'GET /iam/pairing': modes(...offered) });
    const { iam, logins } = withLogins();
    const error = await scripted.failure(iam.pair(options));
    expect(error).toBeInstanceOf(LocalError);
    expect(error).toMatchObject({ code, message: expect.stringMatching(message) });
    expect(logins).toEqual([]);
  });
});

test('missingForPairing names the missing values of a mode', () => {
  expect(missingForPairing('LocalInitial', {})).toEqual([]);
  expect(missingForPairing('LocalOpen', {})).toEqual(['user name']);
  expect(missingForPairing('PasswordInvite', { username: 'bob' })).toEqual(['password']);
  expect(missingForPairing('PasswordOpen', { username: 'bob', password: 'pw' })).toEqual([]);
});

test.each<[PairingMode[], Parameters<typeof choosePairingMode>[1], PairingMode]>([
  [['PasswordOpen', 'LocalOpen', 'PasswordInvite', 'LocalInitial'], {}, 'LocalInitial'],
  [['PasswordOpen', 'LocalOpen', 'PasswordInvite', 'LocalInitial'], { username: 'bob' }, 'LocalOpen'],
  [['PasswordOpen', 'PasswordInvite'], {}, 'PasswordOpen'],
  [['PasswordInvite'], { username: 'bob' }, 'PasswordInvite'],
  [['PasswordInvite', 'LocalInitial'], { username: 'bob', invited: true }, 'PasswordInvite'],
  [['LocalOpen', 'PasswordInvite'], { username: 'bob', password: 'pw' }, 'PasswordInvite'],
])('of the modes %j with %j the choice is %s', (modes, given, expected) => {
  expect(choosePairingMode(modes, given)).toBe(expected);
});
