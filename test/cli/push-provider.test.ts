/**
 * `svc dev push-provider` as a process: it accepts its account file, prints what it receives, and ends at a signal.
 *
 * @module-tag slow
 */
import { readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { beforeEach, expect, test } from 'vitest';
import { nodePost } from '../../server/outbound/http.ts';
import { fetchToken, parseServiceAccount, signAssertion } from '../../server/push/account.ts';
import { TestProcess } from '../support/process.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';

const MAIN = fileURLToPath(new URL('../../dist/svc/main.cjs', import.meta.url));
let directory: string;

beforeEach(() => {
  directory = temporaryDirectory();
});

test('the push provider accepts its account file, prints messages on standard output, and answers with a chosen error', async () => {
  const file = join(directory, 'account.json');
  const provider = new TestProcess(process.execPath, [MAIN, 'dev', 'push-provider', '--json', '--account', file]);
  const lines = provider.eachLine();
  const next = async () => JSON.parse(String((await lines.next()).value));
  const { event, url, project } = await next();
  expect([event, project]).toEqual(['listening', 'demo-project']);
  expect(statSync(file).mode & 0o777).toBe(0o600);
  const account = parseServiceAccount(JSON.parse(readFileSync(file, 'utf8')));
  const { token } = await fetchToken({ post: nodePost, sign: signAssertion }, account, {
    wallTime: Date.now(),
    timeout: 10_000,
    signal: new AbortController().signal,
  });
  const send = (to: string, bearer = token) =>
    fetch(`${url}/v1/projects/${project}/messages:send`, {
      method: 'POST',
      headers: { authorization: `Bearer ${bearer}` },
      body: JSON.stringify({ message: { token: to } }),
    });
  expect((await send('abc')).status).toBe(200);
  expect(await next()).toMatchObject({ event: 'message', message: { token: 'abc' } });
  expect((await send('abc', 'wrong')).status).toBe(401);
  const quota = await send('QUOTA_EXCEEDED:5');
  expect([quota.status, quota.headers.get('retry-after')]).toEqual([429, '5']);
  expect((await provider.end('SIGTERM')).code).toBe(0);
});
