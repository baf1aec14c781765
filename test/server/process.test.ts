/** The command as a person starts it, in processes of its own; it needs what `npm run build` makes. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, expect, test } from 'vitest';

const main = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url));
let data: string;
const children: ChildProcess[] = [];

beforeEach(() => {
  data = mkdtempSync(join(tmpdir(), 'svc-process-'));
});
afterEach(() => {
  for (const child of children.splice(0)) child.kill('SIGKILL');
  rmSync(data, { recursive: true });
});

interface Listening {
  port: number;
  fingerprint: string;
}

function svc(...words: string[]): ChildProcess {
  const child = spawn(process.execPath, [main, ...words, '--data', data], { stdio: ['ignore', 'pipe', 'pipe'] });
  children.push(child);
  return child;
}

async function run(...words: string[]): Promise<{ code: number; out: string; err: string }> {
  const child = svc(...words);
  const captured = { out: '', err: '' };
  child.stdout!.on('data', (chunk) => (captured.out += chunk));
  child.stderr!.on('data', (chunk) => (captured.err += chunk));
  const [code] = await once(child, 'close');
  return { code, ...captured };
}

const admin = (...words: string[]) => run('admin', ...words);

async function basestation(port = 0): Promise<{ child: ChildProcess; listening: Listening; lines: string[] }> {
  const child = svc('basestation', '--port', String(port), '--json', '--log-level', 'error');
  const lines: string[] = [];
  const reader = createInterface(child.stdout!);
  reader.on('line', (line) => lines.push(line));
  let errors = '';
  child.stderr!.on('data', (chunk) => (errors += chunk));
  await Promise.race([once(reader, 'line'), once(child, 'close').then(() => Promise.reject(new Error(`it ended: ${errors}`)))]);
  return { child, listening: JSON.parse(lines[0]!) as Listening, lines };
}

async function record(port: number, organization: string, key: string, secret: string): Promise<Response> {
  return fetch(`http://127.0.0.1:${port}/v1/organizations/${organization}/apikeys/${key}`, {
    headers: { authorization: `Bearer ${secret}` },
  });
}

test('administration beside a running base station counts at once, and what was acknowledged outlives SIGKILL', async () => {
  const first = await basestation();
  const added = JSON.parse((await admin('apikey', 'add', 'ak-1', '--json')).out);
  expect((await record(first.listening.port, added.organizationId, 'ak-1', added.secret)).status).toBe(200);
  first.child.kill('SIGKILL');
  await once(first.child, 'close');
  const second = await basestation(first.listening.port);
  expect(second.listening).toMatchObject({ port: first.listening.port, fingerprint: first.listening.fingerprint });
  expect(await (await record(second.listening.port, added.organizationId, 'ak-1', added.secret)).json()).toMatchObject({
    apikeyId: 'ak-1',
  });
  expect((await admin('apikey', 'remove', 'ak-1')).code).toBe(0);
  expect((await record(second.listening.port, added.organizationId, 'ak-1', added.secret)).status).toBe(401);
});

test('SIGTERM ends it with 0 and a last line; a second one on the same directory is refused with one', async () => {
  const { child, lines } = await basestation();
  const refused = await run('basestation', '--port', '0');
  expect(refused).toMatchObject({ code: 1, out: '' });
  expect(refused.err).toMatch(/^svc: another base station runs on [^\n]+\n$/);
  child.kill('SIGTERM');
  expect((await once(child, 'close'))[0]).toBe(0);
  expect(JSON.parse(lines.at(-1)!)).toEqual({ event: 'closed' });
});

test('several administrations on a new directory at the same time all hold', async () => {
  const results = await Promise.all([1, 2, 3, 4].map((i) => admin('product', 'add', `pr-${i}`)));
  expect(results.map(({ code, err }) => `${code}${err}`)).toEqual(['0', '0', '0', '0']);
  const listed = JSON.parse((await admin('product', 'list', '--json')).out) as { productId: string; organizationId: string }[];
  expect(listed.map(({ productId }) => productId).sort()).toEqual(['pr-1', 'pr-2', 'pr-3', 'pr-4']);
  expect(new Set(listed.map(({ organizationId }) => organizationId)).size).toBe(1);
});
