/** The lock of a directory or file: one process at a time, and a killed one leaves no obstacle. */
import { once } from 'node:events';
import { lstatSync, readFileSync, readlinkSync } from 'node:fs';
import { link, mkdir, readdir, rm, utimes, writeFile } from 'node:fs/promises';
import { connect, createServer, Server } from 'node:net';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { type Lock, ownLock, whileLocked } from '../../../platform/node/index.ts';
import { CONNECTIONS } from '../../../platform/node/lock-sign.ts';
import { TestProcess } from '../../support/process.ts';
import { temporaryDirectory } from '../../support/temporary-directory.ts';

const CHILD = fileURLToPath(new URL('lock-child.mjs', import.meta.url));
const LOCK = fileURLToPath(new URL('../../../dist/platform/node/lock.js', import.meta.url));
const { listen } = Server.prototype;
/** More operations than locking needs. */
const MOST = 60;
/** Names of signs of this lock, lower and higher than any other. */
const LOW = 'a.lock.000000000000';
const HIGH = 'a.lock.ffffffffffff';

let directory: string;
beforeEach(() => {
  directory = temporaryDirectory();
});
afterEach(() => {
  vi.restoreAllMocks();
  vi.useRealTimers();
});

const inUse = (by: string): Error => new Error(`in use by ${by}`);
const own = (name = 'a.lock'): Promise<Lock> => ownLock(join(directory, name), { inUse });
const signs = async (): Promise<string[]> => (await readdir(directory)).sort();

/** A sign as a killed process leaves it. */
async function deadSign(name = LOW): Promise<void> {
  const server = createServer();
  await new Promise<void>((resolve) => listen.call(server, join(directory, 'socket'), resolve));
  await link(join(directory, 'socket'), join(directory, name));
  await new Promise((resolve) => server.close(resolve));
}

/** The line of a sign of this process, with one part changed. */
function lineOf({ start, namespace = readlinkSync('/proc/self/ns/pid') }: { start?: string; namespace?: string }): string {
  const boot = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
  const since = readFileSync('/proc/self/stat', 'utf8').split(') ')[1]!.split(' ')[19];
  return `${process.pid} ${boot}/${start ?? since} ${namespace}\n`;
}

/** As on a volume that takes no sockets. */
function withoutSockets(): void {
  vi.spyOn(Server.prototype, 'listen').mockImplementation(function (this: Server) {
    queueMicrotask(() => this.emit('error', Object.assign(new Error('not supported'), { code: 'EOPNOTSUPP' })));
    return this;
  });
}

describe.each([
  ['a socket', () => {}, true],
  ['a file, where sockets are impossible,', withoutSockets, false],
])('with %s', (_, prepare, isSocket) => {
  beforeEach(prepare);

  test('one owner at a time has a lock, and the next one gets it', async () => {
    const first = await own();
    const [name, ...others] = await signs();
    expect([lstatSync(join(directory, name!)).isSocket(), others]).toEqual([isSocket, []]);
    expect(lstatSync(join(directory, name!)).mode & 0o777).toBe(0o600);
    await expect(own()).rejects.toThrow('in use by this process');
    await (await own('b.lock')).release();
    await first.release();
    await (await own()).release();
    expect(await signs()).toEqual([]);
  });

  test('short sections run one after another', async () => {
    const running: string[] = [];
    const section = (name: string) => async (): Promise<string> => {
      running.push(name);
      await new Promise((resolve) => setImmediate(resolve));
      running.push(name);
      return name;
    };
    const names = ['a', 'b', 'c'];
    expect(await Promise.all(names.map((name) => whileLocked(join(directory, 'a.lock'), section(name))))).toEqual(names);
    expect(running.filter((_, index) => index % 2 === 0)).toEqual(running.filter((_, index) => index % 2 === 1));
    expect(await signs()).toEqual([]);
  });

  test.each([
    ['of a killed process', () => deadSign()],
    ['of an earlier process with the same number', () => writeFile(join(directory, LOW), lineOf({ start: 'earlier' }))],
    ['of a process that no longer exists', async () => writeFile(join(directory, LOW), lineOf({}).replace(/^\d+/, String(2 ** 22 + 7)))],
    ['that names no process', () => writeFile(join(directory, LOW), 'nonsense')],
    ['that is empty', () => writeFile(join(directory, LOW), '')],
    ['that is a FIFO', async () => void (await new TestProcess('mkfifo', [join(directory, LOW)]).succeeded())],
  ])('a sign %s does not count, and is removed', async (__, leave) => {
    await leave();
    const lock = await own();
    expect(await signs()).not.toContain(LOW);
    await lock.release();
  });

  test('one of several owners that start at once gets it', async () => {
    await deadSign(HIGH);
    const results = await Promise.allSettled(Array.from({ length: 5 }, () => own()));
    const outcomes = results.map((result) => (result.status === 'fulfilled' ? 'locked' : result.reason.message));
    expect(outcomes.sort()).toEqual([...new Array(4).fill('in use by this process'), 'locked']);
    expect(await signs()).toHaveLength(1);
  });
});

describe('a sign of another namespace', () => {
  const foreign = (age: number) => async (): Promise<void> => {
    await writeFile(join(directory, LOW), lineOf({ namespace: 'pid:[1]' }), { mode: 0o600 });
    const time = Date.now() / 1_000 - age;
    await utimes(join(directory, LOW), time, time);
  };

  test.each([
    ['29 s', foreign(29)],
    ['29 s ahead', foreign(-29)],
  ])('counts at an age of %s, and its process is named', async (_, leave) => {
    await leave();
    await expect(own()).rejects.toThrow(`in use by process ${process.pid} of another container`);
  });

  test.each([
    ['31 s', foreign(31)],
    ['31 s ahead, by a clock that was set back', foreign(-31)],
  ])('does not count at an age of %s', async (_, leave) => {
    await leave();
    await (await own()).release();
    expect(await signs()).toEqual([]);
  });

  test('is renewed each 10 s, and its owner notices that others took it for dead', async () => {
    withoutSockets();
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    const lock = await own();
    const file = join(directory, (await signs())[0]!);
    await utimes(file, 1, 1);
    await vi.advanceTimersByTimeAsync(9_999);
    expect(lstatSync(file).mtimeMs).toBe(1_000);
    await vi.advanceTimersByTimeAsync(1);
    await vi.waitFor(() => expect(lstatSync(file).mtimeMs).toBeGreaterThan(1_000));
    expect(lock.lost.aborted).toBe(false);
    await rm(file);
    await vi.advanceTimersByTimeAsync(10_000);
    await vi.waitFor(() => expect(lock.lost.reason).toEqual(inUse('another process')));
    await lock.release();
  });
});

test('an owner notices that its socket was removed', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  const lock = await own();
  await vi.advanceTimersByTimeAsync(10_000);
  await rm(join(directory, (await signs())[0]!));
  expect(lock.lost.aborted).toBe(false);
  await vi.waitFor(async () => {
    await vi.advanceTimersByTimeAsync(10_000);
    expect(lock.lost.reason).toEqual(inUse('another process'));
  });
  await lock.release();
});

test('a short section waits 5 s, however slowly the holder of the lock answers', async () => {
  const lock = await own();
  let passed = 0;
  vi.spyOn(performance, 'now').mockImplementation(() => (passed += 1_000));
  await expect(whileLocked(join(directory, 'a.lock'), async () => {})).rejects.toMatchObject({ code: 'IN_USE' });
  expect(passed).toBeLessThan(15_000);
  await lock.release();
});

test.each([
  ['a directory with a long path', 'd'.repeat(120), 'a.lock'],
  ['a long name', 'd', 'n'.repeat(240)],
])('a socket is the sign also in %s', async (_, folder, name) => {
  await mkdir(join(directory, folder));
  const lock = await own(join(folder, name));
  const [sign] = await readdir(join(directory, folder));
  expect(lstatSync(join(directory, folder, sign!)).isSocket()).toBe(true);
  await expect(own(join(folder, name))).rejects.toThrow('in use by this process');
  await lock.release();
});

test('an owner with as many connections as it serves still has the lock', async () => {
  const lock = await own();
  const [sign] = await signs();
  const clients = Array.from({ length: CONNECTIONS }, () => connect({ path: join(directory, sign!), allowHalfOpen: true }));
  await Promise.all(clients.map((client) => once(client, 'data')));
  await expect(own()).rejects.toThrow('in use by another process');
  for (const client of clients) client.destroy();
  await lock.release();
});

test('an owner that answers nothing still has the lock', { tags: ['slow'] }, async () => {
  const server = createServer(() => {});
  await new Promise<void>((resolve) => server.listen(join(directory, LOW), resolve));
  await expect(own()).rejects.toThrow('in use by another process');
  server.close();
});

test('on Windows the lock is a named pipe', async () => {
  vi.spyOn(process, 'platform', 'get').mockReturnValue('win32');
  const listen = vi.spyOn(Server.prototype, 'listen');
  const first = await own();
  expect(listen.mock.calls[0]![0]).toMatch(/^\\\\\.\\pipe\\svc-[0-9a-f]{32}$/);
  await expect(own()).rejects.toThrow('in use by this process');
  await (await own('b.lock')).release();
  await first.release();
  await (await own()).release();
  expect(await signs()).toEqual([]);
});

/** At every second operation: the one directory at the odd ones, the other at the even ones. */
const STEP = 2;

describe.each([
  ['fresh', 1, async () => {}],
  ['left', 2, () => deadSign()],
] as const)('a %s directory', { tags: ['slow'] }, (_, first, prepare) => {
  const lockElsewhere = (operation: number, signal: NodeJS.Signals): TestProcess =>
    new TestProcess(process.execPath, [CHILD, LOCK, join(directory, 'a.lock'), String(operation), signal]);

  /** Calls `round` for file operations in turn, until it reports that none is left. */
  async function atEachOperation(round: (operation: number) => Promise<boolean>): Promise<void> {
    let operation: number = first;
    for (let more = true; more && operation < MOST; operation += STEP) {
      await rm(directory, { recursive: true });
      directory = temporaryDirectory();
      await prepare();
      more = await round(operation);
      expect(await signs(), `at operation ${operation}`).toEqual([]);
    }
    expect(operation).toBeGreaterThan(5);
    expect(operation).toBeLessThan(MOST);
  }

  test('can be locked after a kill at any operation', () =>
    atEachOperation(async (operation) => {
      const { signal } = await lockElsewhere(operation, 'SIGKILL').ended;
      await (await own()).release();
      return signal === 'SIGKILL';
    }));

  test('has one holder, whenever another process pauses', () =>
    atEachOperation(async (operation) => {
      const child = lockElsewhere(operation, 'SIGSTOP');
      const stopped = await child.line((line) => line === 'stopped').catch(() => null);
      if (stopped === null) {
        expect(child.lines).toEqual(['locked']);
        return false;
      }
      const hadIt = child.lines.includes('locked');
      // Twice, so that the first one's sign is gone.
      const first = await own().catch((error: unknown) => {
        expect(error, `at operation ${operation}`).toEqual(inUse('another process'));
        return null;
      });
      await first?.release();
      const second = first === null ? null : await own();
      // Repeatedly: the first signal may arrive before it has stopped.
      const again = setInterval(() => child.running && process.kill(child.pid, 'SIGCONT'), 5);
      await child.ended;
      clearInterval(again);
      const outcome = child.lines.filter((line) => line !== 'stopped');
      expect(outcome, `at operation ${operation}`).toEqual([expect.stringMatching(hadIt || second === null ? /^locked$/ : /^refused/)]);
      await second?.release();
      return true;
    }));
});

/** The other process has a PID namespace of its own, as that of another container on the same volume. */
test('a process in another PID namespace is refused, and gets the lock when its owner is killed', { tags: ['slow'] }, async ({ skip }) => {
  const { code } = await new TestProcess('unshare', ['--pid', '--fork', '--mount-proc', 'true']).ended;
  skip(code !== 0, 'needs root and unshare');
  const elsewhere = (): TestProcess => {
    const child = [process.execPath, CHILD, LOCK, join(directory, 'a.lock'), '0', 'SIGKILL'];
    return new TestProcess('unshare', ['--pid', '--fork', '--kill-child', '--mount-proc', ...child]);
  };
  const first = elsewhere();
  expect(await first.line()).toBe('locked');
  const second = elsewhere();
  expect(await second.line()).toBe('refused: in use by process 1 of another container');
  await second.ended;
  await first.end('SIGKILL');
  const third = elsewhere();
  expect(await third.line()).toBe('locked');
  await third.end('SIGKILL');
  await (await own()).release();
});
