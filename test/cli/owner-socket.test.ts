/** Invitations of the owner while the device runs. */
import { existsSync, statSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { beforeEach, expect, onTestFinished, test } from 'vitest';
import { askRunning, type Invitation, type InviteRequest, serveOwner } from '../../cli/device-app/owner-socket.ts';
import { silentLog } from '../../platform/environment.ts';
import { LocalError } from '../../protocol/errors/index.ts';
import { Deferred } from '../../runtime/deferred.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';

const invited: Invitation = {
  user: { username: 'admin', role: 'Administrator', sct: 'token' },
  password: 'secret',
  fingerprint: 'ab'.repeat(32),
  roles: ['Administrator', 'Guest'],
  modes: ['PasswordInvite'],
};

let directory: string;
let asked: InviteRequest[];
beforeEach(() => {
  directory = temporaryDirectory();
  asked = [];
});

async function serving(answer: () => Promise<Invitation> = async () => invited): Promise<() => void> {
  const stop = await serveOwner(directory, silentLog, (request) => {
    asked.push(request);
    return answer();
  });
  onTestFinished(stop);
  return stop;
}

/** What the device answers to a raw request. */
function raw(text: string): Promise<string> {
  return new Promise((resolve) => {
    let answer = '';
    const socket = connect(join(directory, 'device.sock'), () => socket.end(text));
    socket.on('data', (piece) => {
      answer += piece;
    });
    socket.on('error', () => {});
    socket.on('close', () => resolve(answer));
  });
}

test('a device that runs is asked, and a socket of a dead one is replaced', async () => {
  writeFileSync(join(directory, 'device.sock'), '');
  expect(await askRunning(directory, { username: 'admin' })).toBeNull();
  const stop = await serving();
  expect(statSync(join(directory, 'device.sock')).mode & 0o077).toBe(0);
  expect(await askRunning(directory, { username: 'admin' })).toEqual(invited);
  expect(await askRunning(directory, { username: 'bob', role: 'Guest' })).toEqual(invited);
  expect(asked).toEqual([{ username: 'admin' }, { username: 'bob', role: 'Guest' }]);
  stop();
  expect(existsSync(join(directory, 'device.sock'))).toBe(false);
  expect(await askRunning(directory, { username: 'admin' })).toBeNull();
});

test.each<[string, Error, RegExp]>([
  ['a role that does not exist', new LocalError('NOT_FOUND', 'there is no role "x"'), /^there is no role "x"$/],
  ['a full disk', Object.assign(new Error('write'), { code: 'ENOSPC' }), /no space left/],
])('a refusal is passed on: %s', async (_, error, text) => {
  await serving(async () => {
    throw error;
  });
  await expect(askRunning(directory, { username: 'admin' })).rejects.toThrow(text);
});

test.each(['', '{', 'null', '{"username":1}', '{"username":"a","role":1}'])(
  'garbage is refused, and the next is served: %s',
  async (text) => {
    await serving();
    expect(JSON.parse(await raw(text))).toMatchObject({ code: 'UNKNOWN' });
    expect(asked).toEqual([]);
    expect(await askRunning(directory, { username: 'admin' })).toEqual(invited);
  },
);

test('a request without end is cut off', async () => {
  await serving();
  expect(await raw('x'.repeat(100_000))).toBe('');
  expect(asked).toEqual([]);
});

test('four connections are served at once, and a fifth when one has ended', async () => {
  const held = new Deferred<Invitation>();
  const full = new Deferred<void>();
  await serving(() => {
    if (asked.length === 4) full.resolve();
    return held.promise;
  });
  const answers = [1, 2, 3, 4].map(() => askRunning(directory, { username: 'admin' }));
  await full.promise;
  expect(await raw('{"username":"fifth"}')).toBe('');
  held.resolve(invited);
  expect(await Promise.all(answers)).toEqual(Array(4).fill(invited));
  expect(await askRunning(directory, { username: 'admin' })).toEqual(invited);
  expect(asked.map(({ username }) => username)).toEqual(Array(5).fill('admin'));
});

test('where the path is too long, the device runs without it', async () => {
  directory = join(directory, 'x'.repeat(120));
  await serving();
  expect(await askRunning(directory, { username: 'admin' })).toBeNull();
});
