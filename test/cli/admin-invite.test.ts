/** `svc admin device invite`, and the start of a base station without devices, on a data directory. */
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { Command } from 'commander';
import { beforeEach, describe, expect, test } from 'vitest';
import { adminCommand } from '../../cli/admin/index.ts';
import { Output } from '../../cli/frame/output.ts';
import { sayHowToJoin } from '../../cli/how-to-join.ts';
import { decodeJoinString } from '../../protocol/records/index.ts';
import { openStore, type Store } from '../../server/administration/index.ts';
import { type LastStart, rememberStart } from '../../server/storage/last-start.ts';
import { hashToken } from '../../server/storage/secrets.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';
import { captured } from './captured.ts';
import { TextStream } from './text-stream.ts';

const fingerprint = 'ab'.repeat(32);
const start: LastStart = { fingerprint, port: 5000, host: null, url: 'https://station.example:4433', tlsProves: false };
let data: string;

beforeEach(async () => {
  data = temporaryDirectory();
  await (await openStore(data)).close();
  await rememberStart(data, start);
});

const admin = (...words: string[]) => captured(new Command('svc').addCommand(adminCommand()), ['admin', ...words, '--data', data]);

const invite = (...words: string[]) => admin('device', 'invite', ...words);

async function inStore<T>(run: (store: Store) => Promise<T>): Promise<T> {
  const store = await openStore(data);
  try {
    return await run(store);
  } finally {
    await store.close();
  }
}

describe('invite', () => {
  test('makes the product and prints a join string, alone on standard output', async () => {
    const { code, out, err } = await invite();
    expect(code).toBe(0);
    const { token, ...rest } = decodeJoinString(out);
    expect(rest).toEqual({ server: 'station.example:4433', serverFingerprint: fingerprint, productId: 'pr-home' });
    expect(err).toContain('product pr-home was missing and has been created\n');
    expect(err).toContain('svc device --join -');
    expect(await inStore((store) => store.invitations.find(hashToken(token)))).toMatchObject({ productId: 'pr-home', deviceId: null });
    expect(err).not.toContain(out.trim());
  });

  test('has options for product, device id and time, and --json has all of it', async () => {
    const before = Date.now();
    const { out } = await invite('pr-1', '--device-id', 'de-1', '--expires', '30m', '--json');
    const printed = JSON.parse(out);
    expect(printed).toMatchObject({ productId: 'pr-1', deviceId: 'de-1', productMade: true, command: 'svc device --join -' });
    expect(decodeJoinString(printed.joinString)).toMatchObject({ productId: 'pr-1', deviceId: 'de-1' });
    const made = Date.parse(printed.expires) - 30 * 60_000;
    expect(made).toBeGreaterThanOrEqual(before);
    expect(made).toBeLessThanOrEqual(Date.now());
    expect((await invite()).err).not.toContain('was missing');
  });

  test('refuses when there are several products and none is given, naming them and a command that runs', async () => {
    for (const product of ['pr-1', 'pr-2']) await admin('product', 'add', product);
    const { code, err } = await invite();
    expect([code, err]).toEqual([
      1,
      `svc: there are several products, pr-1, pr-2: name one, as in svc admin device invite pr-1 --data ${data}\n`,
    ]);
  });

  test.each([
    [['--expires', '0m'], 2, /Expected a time from 1m to 30d/],
    [['--expires', '31d'], 2, /Expected a time from 1m to 30d/],
    [['--expires', '24'], 2, /Expected a time from 1m to 30d/],
    [['--device-id', 'no id'], 2, /An id is 1 to 61/],
    [['p'.repeat(52)], 2, /leaves no room for a generated device id/],
    [['p'.repeat(61), '--device-id', 'de-1'], 2, /at most 62 characters/],
    [['list', '--expires', '1h'], 2, /--expires has no effect on svc admin device invite list/],
    [['revoke', 'zz'], 2, /6 or more of the hexadecimal digits/],
    [['revoke', '012345'], 1, /there is no invitation 012345: see svc admin device invite list --data/],
  ])('refuses %j with one line', async (words, code, message) => {
    const result = await invite(...words);
    expect(result.code).toBe(code);
    expect(result.err).toMatch(message);
    expect(result.err.trimEnd()).not.toContain('\n');
    expect(await inStore((store) => store.products())).toEqual([]);
  });

  test('refuses a device that has a key', async () => {
    await admin('product', 'add', 'pr-1');
    await admin('device', 'add', 'pr-1', 'de-1', '--fingerprint', fingerprint);
    const { code, err } = await invite('--device-id', 'de-1');
    expect(code).toBe(1);
    expect(err).toContain(`has a key already: choose another id, or svc admin device remove pr-1 de-1 --data ${data}\n`);
  });

  test('refuses for a base station that was never started', async () => {
    rmSync(join(data, 'station.json'));
    const { code, err } = await invite();
    expect([code, err]).toEqual([1, `svc: the base station was never started: start it once with svc basestation --data ${data}\n`]);
  });

  test('has the same --help below a product', async () => {
    expect((await invite('pr-1', '--help')).out).toContain('--expires <time>');
  });
});

describe('the list', () => {
  test('shows open, revoked and used invitations, and whose key used one', { tags: ['slow'] }, async () => {
    expect((await invite('list')).out).toBe('no invitations\n');
    const made: string[] = [];
    for (let count = 0; count < 3; count++) made.push(JSON.parse((await invite('--json')).out).invitationId as string);
    expect((await invite('revoke', made[1]!.slice(0, 6))).out).toBe(`revoked ${made[1]}\n`);
    await inStore(async (store) => {
      const { tokenHash } = (await store.invitations.all()).find((each) => each.tokenHash.startsWith(made[2]!))!;
      const time = new Date().toISOString();
      await store.invitations.redeem({ tokenHash, deviceId: 'de-x', fingerprint, address: '192.0.2.9', time });
    });
    const list = JSON.parse((await invite('list', '--json')).out) as { invitationId: string; revoked: boolean; use: object | null }[];
    const byId = Object.fromEntries(list.map((each) => [each.invitationId, each]));
    expect(byId[made[0]!]).toMatchObject({ revoked: false, use: null });
    expect(byId[made[1]!]).toMatchObject({ revoked: true, use: null });
    expect(byId[made[2]!]).toMatchObject({ use: { deviceId: 'de-x', fingerprint, address: '192.0.2.9' } });
    const text = (await invite('list')).out;
    expect(text).toMatch(/^ID +PRODUCT +DEVICE +EXPIRES/);
    expect(text).toContain(fingerprint);
    const { code, err } = await invite('revoke', made[2]!);
    expect(code).toBe(1);
    expect(err).toContain(`svc admin device remove pr-home de-x --data ${data} removes it`);
  });
});

test('the list of devices shows that no base station runs', async () => {
  await admin('product', 'add', 'pr-1');
  await admin('device', 'add', 'pr-1', 'de-1');
  const { out, err } = await admin('device', 'list');
  expect(out).toMatch(/^PRODUCT +DEVICE +ATTACHED +SINCE +ADDRESS +NAME +KEY\npr-1 +de-1 +\? +- +- +- +-\n$/);
  expect(err).toContain(`no base station runs on ${data}`);
  expect(JSON.parse((await admin('device', 'list', '--json')).out)).toMatchObject([{ attached: null, since: null, address: null }]);
});

describe('a base station without devices', () => {
  async function said(isTerminal: boolean): Promise<string> {
    const stdout = new TextStream();
    await sayHowToJoin(new Output(false, { stdout, stderr: stdout }), data, start, isTerminal);
    return stdout.text;
  }

  test('prints a join string at a terminal, and withdraws the previous one', async () => {
    const strings = [await said(true), await said(true)].map((text) => /^svc:\/\/join#\S+$/m.exec(text)![0]);
    expect(decodeJoinString(strings[1]!)).toMatchObject({ server: 'station.example:4433', productId: 'pr-home' });
    const states = await inStore((store) =>
      Promise.all(strings.map(async (text) => (await store.invitations.find(hashToken(decodeJoinString(text).token)))?.revoked)),
    );
    expect(states).toEqual([true, false]);
  });

  test('only names the command without a terminal', async () => {
    expect(await said(false)).toBe(`no devices yet; this prints a join string for one:  svc admin device invite --data ${data}\n`);
    expect(await inStore((store) => store.products())).toEqual([]);
  });

  test('with several products names one, also at a terminal', async () => {
    for (const product of ['pr-1', 'pr-2']) await admin('product', 'add', product);
    expect(await said(true)).toContain(`svc admin device invite pr-1 --data ${data}\n`);
  });

  test('prints nothing about joining once it has a device', async () => {
    await admin('product', 'add', 'pr-1');
    await admin('device', 'add', 'pr-1', 'de-1');
    expect([await said(true), await said(false)]).toEqual(['', '']);
  });
});
