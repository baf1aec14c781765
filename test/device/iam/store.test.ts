/** The files of access control: made once, found again, refused unchanged when broken, and whole after any kill. */
import { readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { beforeEach, describe, expect, it } from 'vitest';
import {
  CONFIGURATION_FILE,
  defaultConfiguration,
  demoState,
  type Iam,
  type IamStoreOptions,
  openIam,
  productionState,
  STATE_FILE,
} from '../../../device/iam/index.ts';
import { Random } from '../../../testing/random.ts';
import { codeOf } from '../../support/code-of.ts';
import { TestProcess } from '../../support/process.ts';
import { temporaryDirectory } from '../../support/temporary-directory.ts';
import { caller, fakeSecrets } from './model.ts';

let directory: string;
const file = (name: string) => join(directory, name);

beforeEach(() => {
  directory = temporaryDirectory();
});

function open(options: Partial<IamStoreOptions> = {}): Promise<Iam> {
  const secrets = fakeSecrets();
  return openIam(directory, {
    secrets,
    firstConfiguration: defaultConfiguration,
    firstState: async () => (await demoState(secrets)).state,
    ...options,
  });
}

const never = () => {
  throw new Error('there is a file');
};

describe('the files', () => {
  it('are made once, and contain every later change', async () => {
    const iam = await open();
    await iam.pairLocalOpen(caller(1), 'ann');
    await iam.setUserPassword('ann', 'secret');
    await iam.setConfiguration({ ...defaultConfiguration(), unpairedRole: 'Guest' });
    const again = await open({ firstConfiguration: never, firstState: never });
    expect(again.user('ann')).toEqual(iam.user('ann'));
    expect(await again.passwordOf('ann')).toEqual(await iam.passwordOf('ann'));
    expect(again.configuration).toEqual(iam.configuration);
    expect(await again.openPairingPassword()).toBe(await iam.openPairingPassword());
    expect(statSync(file(STATE_FILE)).mode & 0o777).toBe(0o600);
  });

  it('are readable, without a clear password', async () => {
    const iam = await open();
    await iam.update((draft) => draft.createUser('ann'));
    await iam.setUserPassword('ann', 'top-secret');
    const text = readFileSync(file(STATE_FILE), 'utf8');
    expect(text).toContain('\n      "Username": "ann",\n');
    expect(text).not.toContain('top-secret');
  });

  it('of version 2 stay as they are until the next change', async () => {
    const old = JSON.stringify({ Version: 2, OpenPairingPassword: 'open-sesame', Users: [{ Username: 'ann', Password: 'top-secret' }] });
    writeFileSync(file(STATE_FILE), old);
    const iam = await open();
    expect(iam.hasPassword('ann')).toBe(true);
    expect(readFileSync(file(STATE_FILE), 'utf8')).toBe(old);
    await iam.update((draft) => draft.setFriendlyName('Kitchen'));
    const text = readFileSync(file(STATE_FILE), 'utf8');
    expect(JSON.parse(text)).toMatchObject({ Version: 3, Users: [{ PasswordVerifier: { Kdf: 1 } }] });
    expect(text).not.toContain('top-secret');
  });

  const broken: [name: string, file: string, content: string, code: string, message: RegExp][] = [
    ['a truncated state', STATE_FILE, '{"Version": 3, "Users": [{"Username"', 'PARSE', /iam-state\.json line 1 column \d+: not valid JSON/],
    ['an empty state', STATE_FILE, '', 'PARSE', /iam-state\.json line 1 column \d+: not valid JSON/],
    ['a newer state', STATE_FILE, '{"Version": 4, "Users": []}', 'PARSE', /iam-state\.json: Version: is 4.*left as it is/],
    [
      'a state over a limit',
      STATE_FILE,
      '{"Version": 3, "Users": [{"Username": "abcd"}]}',
      'INVALID_ARGUMENT',
      /iam-state\.json: Users\[0\]: the username is longer than 3 bytes/,
    ],
    ['a truncated configuration', CONFIGURATION_FILE, '{"Version": 1', 'PARSE', /iam-configuration\.json line 1 column 14: not valid JSON/],
    ['a newer configuration', CONFIGURATION_FILE, '{"Version": 2}', 'PARSE', /iam-configuration\.json: Version: is 2.*left as it is/],
  ];
  for (const [name, which, content, code, message] of broken) {
    it(`with ${name} are refused and left unchanged`, async () => {
      writeFileSync(file(which), content);
      await expect(open({ limits: { maxUsername: 3 } })).rejects.toMatchObject({ code, message: expect.stringMatching(message) });
      expect(readFileSync(file(which), 'utf8')).toBe(content);
      expect(readdirSync(directory)).toEqual([which]);
    });
  }

  it('keep the count of password attempts; a device starts even if that file is unreadable', async () => {
    const kept = (await open()).passwordThrottle!;
    expect(kept.stored).toBeUndefined();
    await kept.save({ Version: 1 });
    expect((await open()).passwordThrottle?.stored).toEqual({ Version: 1 });
    writeFileSync(file('password-throttle.json'), '{');
    expect((await open()).passwordThrottle?.stored).toBeNull();
  });

  it('with more users than the limit are loaded: it applies to new ones', async () => {
    const Users = Array.from({ length: 1_200 }, (_, index) => ({ Username: `user${index}` }));
    writeFileSync(file(STATE_FILE), JSON.stringify({ Version: 3, Users }));
    const iam = await open();
    expect(iam.usernames).toHaveLength(1_200);
    expect(await codeOf(() => iam.update((draft) => draft.createUser('more')))).toBe('OUT_OF_MEMORY');
    await iam.update((draft) => draft.deleteUser('user7'));
    expect(iam.usernames).toHaveLength(1_199);
  });

  it('that cannot be written make the change fail', async () => {
    const iam = await open();
    rmSync(directory, { recursive: true });
    expect(await codeOf(() => iam.update((draft) => draft.createUser('ann')))).toBe('FAILED');
    expect(iam.user('ann')).toBeUndefined();
  });
});

describe('a product’s first state', () => {
  it('invites the administrator by a password that is shown once', async () => {
    const secrets = fakeSecrets();
    const first = await productionState(secrets);
    const iam = await open({ firstState: async () => first.state });
    expect(iam.state).toMatchObject({
      localOpenPairing: false,
      passwordOpenPairing: false,
      passwordInvitePairing: true,
      localInitialPairing: false,
      openPairingRole: 'Guest',
      initialPairingUsername: 'admin',
      friendlyName: 'Tcp Tunnel',
    });
    expect(first.adminPassword).toHaveLength(12);
    expect(await iam.passwordOf('')).toEqual({ kdf: 0, password: first.openPairingPassword });
    await iam.pairPasswordInvite(caller(1, { isLocal: false, passwordUsername: 'admin' }));
    expect(iam.check(caller(1), 'IAM:CreateUser')).toBe(true);
    expect(iam.serverConnectTokens).toHaveLength(2);
  });

  it('of a demo makes any client an administrator', async () => {
    const iam = await open();
    expect(iam.availablePairingModes(caller(1))).toEqual(['PasswordOpen', 'LocalOpen', 'PasswordInvite']);
    await iam.pairLocalOpen(caller(1), 'ann');
    expect(iam.check(caller(1), 'IAM:CreateUser')).toBe(true);
  });
});

describe('a process that is killed', () => {
  it('has lost no acknowledged change, and left a whole file', { tags: ['slow'] }, async () => {
    const wanted = 1_000;
    const random = new Random(`iam-kill-${process.env.SVC_TEST_SEED ?? 1}`);
    let [acknowledged, kills] = [0, 0];
    // On a busy machine a process makes much progress before it is killed.
    while (acknowledged < wanted || kills < 3) {
      acknowledged = await changeUntilKilled(acknowledged + 1, acknowledged + 1 + Math.floor(random.fraction() * 400));
      kills++;
      const state = JSON.parse(readFileSync(file(STATE_FILE), 'utf8'));
      const numbers: number[] = state.Users.map(({ DisplayName = '0' }: { DisplayName?: string }) => Number(DisplayName));
      for (let number = Math.max(1, acknowledged - 9); number <= acknowledged; number++) {
        expect(numbers[number % 10], `change ${number} was acknowledged`).toBeGreaterThanOrEqual(number);
      }
      await open({ firstState: never });
    }
  });
});

/**
 * Starts a process at change `first`, kills it when it has acknowledged another one, and returns the last acknowledged
 * number.
 */
async function changeUntilKilled(first: number, killAt: number): Promise<number> {
  const script = fileURLToPath(new URL('changing-child.mjs', import.meta.url));
  const child = new TestProcess(process.execPath, [script, directory, String(first)]);
  let last = first - 1;
  for await (const line of child.eachLine()) {
    expect(Number(line), 'changes are acknowledged in order').toBe(last + 1);
    last = Number(line);
    if (last === killAt) child.kill();
  }
  expect(await child.ended).toMatchObject({ signal: 'SIGKILL' });
  return last;
}
