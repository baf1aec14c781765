/** Certificate files that change under a server: which pair is used, and what is logged how often. */
import { createPrivateKey, generateKeyPairSync } from 'node:crypto';
import { rename, symlink, unlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeAll, beforeEach, expect, test } from 'vitest';
import { type Clock, silentLog } from '../../../platform/environment.ts';
import { Certificates, type Pair } from '../../../server/rest/certificates.ts';
import { type Authority, authority, type ServerPair, serverPair } from '../../support/certificates.ts';
import { temporaryDirectory } from '../../support/temporary-directory.ts';

const DAY = 86_400_000;
const NOT_ITS_KEY = 'the private key is not that of the certificate';
let root: Authority;
let first: ServerPair;
let second: ServerPair;
beforeAll(async () => {
  root = await authority('Root');
  [first, second] = [await serverPair(root, { until: 365 }), await serverPair(root, { until: 365 })];
});

let folder: string;
beforeEach(() => {
  folder = temporaryDirectory();
});

/** Time that the test advances from one check of the files to the next. */
class TestClock implements Pick<Clock, 'now' | 'wallTime' | 'schedule'> {
  #now = 0;
  #due: (() => void) | null = null;
  now = (): number => this.#now;
  wallTime = (): number => Date.now() + this.#now;
  schedule = (_: number, run: () => void) => {
    this.#due = run;
    return () => {
      this.#due = null;
    };
  };
  get waits(): boolean {
    return this.#due !== null;
  }
  async pass(time: number): Promise<void> {
    this.#now += time;
    const run = this.#due;
    this.#due = null;
    run?.();
    while (run !== null && this.#due === null) await new Promise((resolve) => setImmediate(resolve));
  }
}

const file = (name: string): string => join(folder, name);

async function write({ cert, key }: ServerPair, names = ['cert.pem', 'key.pem'] as const): Promise<void> {
  await writeFile(file(names[0]), cert);
  await writeFile(file(names[1]), key);
}

async function following() {
  const clock = new TestClock();
  const lines: string[] = [];
  const log = {
    ...silentLog,
    info: (message: string) => lines.push(`info ${message}`),
    warn: (message: string) => lines.push(`warn ${message}`),
    error: (message: string) => lines.push(`error ${message}`),
  };
  const files = { certFile: file('cert.pem'), keyFile: file('key.pem') };
  const certificates = await Certificates.open({ clock: clock as unknown as Clock, log, files });
  const taken: Pair[] = [];
  certificates.follow({ setSecureContext: (pair) => taken.push(pair) });
  return { clock, lines, certificates, taken };
}

test('unchanged files are read once', async () => {
  await write(first);
  const { clock, lines, certificates, taken } = await following();
  expect(certificates.pair).toEqual(first);
  for (let look = 0; look < 3; look++) await clock.pass(10_000);
  expect([taken, lines]).toEqual([[], []]);
});

test.each<[string, () => Promise<void>]>([
  ['written over', () => write(second)],
  [
    'renamed into place',
    async () => {
      await write(second, ['new-cert.pem', 'new-key.pem'] as never);
      await rename(file('new-cert.pem'), file('cert.pem'));
      await rename(file('new-key.pem'), file('key.pem'));
    },
  ],
  [
    'behind a link that is replaced',
    async () => {
      await write(second, ['live-cert.pem', 'live-key.pem'] as never);
      for (const name of ['cert.pem', 'key.pem']) {
        await unlink(file(name));
        await symlink(file(`live-${name}`), file(name));
      }
    },
  ],
])('files %s are passed to the server', async (_, change) => {
  await write(first);
  const { clock, lines, taken } = await following();
  await change();
  await clock.pass(10_000);
  expect(taken).toEqual([second]);
  expect(lines).toEqual(['info the TLS certificate was reloaded']);
});

test('an unusable pair is logged once per change, and the previous one stays', async () => {
  await write(first);
  const { clock, lines, certificates, taken } = await following();
  await writeFile(file('cert.pem'), second.cert);
  for (let look = 0; look < 3; look++) await clock.pass(10_000);
  expect(lines).toEqual(['error the changed TLS certificate is unusable, the previous one stays in use']);
  await unlink(file('cert.pem'));
  for (let look = 0; look < 3; look++) await clock.pass(10_000);
  expect(lines.length).toBe(2);
  expect([taken, certificates.pair]).toEqual([[], first]);
  await write(second);
  await clock.pass(10_000);
  expect([taken, certificates.pair]).toEqual([[second], second]);
});

test('reload reads the files at once, on each call', async () => {
  await write(first);
  const { certificates, taken } = await following();
  await write(second);
  await Promise.all([certificates.reload(), certificates.reload()]);
  expect(taken).toEqual([second, second]);
});

test('expiry is logged once a day from 14 days before, until renewal', async () => {
  await write(await serverPair(root, { until: 15 }));
  const { clock, lines } = await following();
  await clock.pass(DAY / 2);
  expect(lines).toEqual([]);
  for (let look = 0; look < 6; look++) await clock.pass(DAY / 2);
  expect(lines).toEqual(Array(3).fill('warn the TLS certificate expires soon: renew it'));
  lines.length = 0;
  await clock.pass(12 * DAY);
  expect(lines).toEqual(['error the TLS certificate has expired: devices and clients without a pin of this base station cannot connect']);
  lines.length = 0;
  await write(second);
  await clock.pass(DAY);
  expect(lines).toEqual(['info the TLS certificate was reloaded']);
});

test('close ends the checks', async () => {
  await write(first);
  const { clock, certificates } = await following();
  expect(clock.waits).toBe(true);
  certificates.close();
  expect(clock.waits).toBe(false);
});

test('files that cannot be read or used are refused at the start', async () => {
  await expect(following()).rejects.toMatchObject({ code: 'FAILED', message: expect.stringContaining('cert.pem') });
  await write({ cert: first.cert, key: second.key });
  await expect(following()).rejects.toMatchObject({ code: 'INVALID_ARGUMENT', message: expect.stringContaining(NOT_ITS_KEY) });
});

test('a key of another type than the certificate is refused, although OpenSSL accepts both', async () => {
  const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
  await write({ cert: first.cert, key: String(privateKey.export({ type: 'pkcs8', format: 'pem' })) });
  await expect(following()).rejects.toMatchObject({ code: 'INVALID_ARGUMENT', message: expect.stringContaining(NOT_ITS_KEY) });
});

test('a key with a passphrase is reported as such', async () => {
  const encrypted = createPrivateKey(first.key).export({ type: 'pkcs8', format: 'pem', cipher: 'aes-256-cbc', passphrase: 'x' });
  await write({ cert: first.cert, key: String(encrypted) });
  await expect(following()).rejects.toMatchObject({ code: 'INVALID_ARGUMENT', message: expect.stringContaining('without a passphrase') });
});
