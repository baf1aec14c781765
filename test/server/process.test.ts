/**
 * The command as a user starts it, in separate processes. Needs the results of `npm run build`.
 * @module-tag slow
 */
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { Commands } from '../e2e/commands.ts';
import { endProcesses, TestProcess } from '../support/process.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';

const main = fileURLToPath(new URL('../../dist/svc/main.cjs', import.meta.url));
let data: string;

beforeEach(() => {
  data = temporaryDirectory();
});
afterEach(async () => {
  await endProcesses();
});

interface Listening {
  port: number;
  fingerprint: string;
}

function svc(...words: string[]): TestProcess {
  return new TestProcess(process.execPath, [main, ...words, '--data', data]);
}

const commands = new Commands();
const admin = (...words: string[]) => commands.svc('admin', ...words, '--data', data);

async function basestation(port = 0): Promise<{ station: TestProcess; listening: Listening }> {
  const station = svc('basestation', '--port', String(port), '--json', '--log-level', 'error');
  return { station, listening: JSON.parse(await station.line()) as Listening };
}

async function record(port: number, organization: string, key: string, secret: string): Promise<Response> {
  return fetch(`http://127.0.0.1:${port}/v1/organizations/${organization}/apikeys/${key}`, {
    headers: { authorization: `Bearer ${secret}` },
  });
}

test('changes by administration beside a running base station count at once, and acknowledged ones survive SIGKILL', async () => {
  const first = await basestation();
  const added = JSON.parse((await admin('apikey', 'add', 'ak-1', '--json')).stdout);
  expect((await record(first.listening.port, added.organizationId, 'ak-1', added.secret)).status).toBe(200);
  await first.station.end('SIGKILL');
  const second = await basestation(first.listening.port);
  expect(second.listening).toMatchObject({ port: first.listening.port, fingerprint: first.listening.fingerprint });
  expect(await (await record(second.listening.port, added.organizationId, 'ak-1', added.secret)).json()).toMatchObject({
    apikeyId: 'ak-1',
  });
  expect((await admin('apikey', 'remove', 'ak-1')).code).toBe(0);
  expect((await record(second.listening.port, added.organizationId, 'ak-1', added.secret)).status).toBe(401);
});

test('SIGTERM ends it with status 0 and a last line; a second one on the same directory is refused with one line', async () => {
  const { station } = await basestation();
  const refused = await svc('basestation', '--port', '0').ended;
  expect(refused).toMatchObject({ code: 1, stdout: '' });
  expect(refused.stderr).toMatch(/^svc: another base station runs on [^\n]+\n$/);
  expect((await station.end('SIGTERM')).code).toBe(0);
  expect(JSON.parse(station.lines.at(-1)!)).toEqual({ event: 'closed' });
});

test('several administration commands on a new directory at the same time all succeed', async () => {
  const products = ['pr-1', 'pr-2', 'pr-3'];
  const results = await Promise.all(products.map((product) => svc('admin', 'product', 'add', product).ended));
  for (const { code, stderr } of results) expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  const listed = JSON.parse((await admin('product', 'list', '--json')).stdout) as { productId: string; organizationId: string }[];
  expect(listed.map(({ productId }) => productId).sort()).toEqual(products);
  expect(new Set(listed.map(({ organizationId }) => organizationId)).size).toBe(1);
});
