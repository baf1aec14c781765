/**
 * The quick start of README.md and docs/getting-started.md as it stands: each line is a process of its own, with the
 * default directories below its own home, with free ports and without multicast DNS. There is no terminal, so the two
 * strings come from the commands that the first two lines print.
 *
 * @module-tag slow
 */
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { decodePairing } from '../../protocol/records/index.ts';
import { MAIN } from '../support/fixture/processes.ts';
import { TestProcess } from '../support/process.ts';
import { svcProcess } from './commands.ts';

const PAGE = 'the page of the board';
const home = await mkdtemp(join(tmpdir(), 'svc-quick-start-'));
const running: TestProcess[] = [];
const web = createServer((_request, response) => response.end(PAGE));

beforeAll(() => new Promise<void>((resolve) => void web.listen(0, '127.0.0.1', resolve)));
afterAll(async () => {
  web.close();
  for (const each of running) await each.end('SIGKILL');
  await rm(home, { recursive: true, force: true });
});

/** The home of one of the three machines. */
const machine = (name: string) => ({ XDG_STATE_HOME: join(home, name) });

/** A command that runs until it is stopped. */
function run(name: string, input: string, ...args: string[]): TestProcess {
  const started = new TestProcess(process.execPath, [MAIN, ...args], { input, variables: machine(name) });
  running.push(started);
  return started;
}

/** The part of its output that matches. */
function shown(by: TestProcess, text: RegExp): Promise<string> {
  return by.until(String(text), () => text.exec(by.stdout + by.stderr)?.[0]);
}

async function quickStart(document: string): Promise<string[][]> {
  const text = await readFile(new URL(`../../${document}`, import.meta.url), 'utf8');
  const block = /```sh quick-start\n([\s\S]*?)```/.exec(text)?.[1] ?? '';
  return block
    .trim()
    .split('\n')
    .map((line) => line.replace(/\s+#.*/, '').split(' '));
}

/** Runs a command that was printed for a person, unchanged. @returns its output */
async function printed(name: string, by: TestProcess, command: RegExp): Promise<string> {
  const [, ...words] = (await shown(by, command)).trim().split(/\s+/);
  const { code, stdout, stderr } = await svcProcess({ variables: machine(name) }, ...words);
  expect({ code, stderr }).toMatchObject({ code: 0 });
  return stdout;
}

test('three commands and one string each lead to a page behind a tunnel', async () => {
  const lines = await quickStart('README.md');
  expect(await quickStart('docs/getting-started.md')).toEqual(lines);
  expect(lines.map(([, command]) => command)).toEqual(['basestation', 'device', 'pair', 'tunnel']);
  const [basestation = [], board = [], laptop = [], tunnel = []] = lines.map((words) => words.slice(1));

  const station = run('station', '', ...basestation, '--port', '0', '--stun-port', '0');
  const invited = await printed('station', station, /svc admin device invite(?= |$).*/m);
  const joinString = /svc:\/\/join#\S+/.exec(invited)?.[0] ?? '';

  const port = String((web.address() as AddressInfo).port);
  const offer = board.map((word) => word.replace('8080', port));
  const device = run('board', joinString, ...offer, '--local-port', '0', '--p2p-port', '0', '--port-mapping', 'off', '--no-mdns');
  const pairing = await shown(device, /^p=\S+,pwd=\S+$/m);
  expect(device.stdout).not.toContain('svc admin');
  expect(decodePairing(pairing)).toMatchObject({ productId: 'pr-home', username: 'admin', serverFingerprint: expect.any(String) });

  const paired = await svcProcess({ input: pairing, variables: machine('laptop') }, ...laptop, '--no-local');
  expect(paired).toMatchObject({ code: 0, stdout: expect.stringMatching(/^you are admin \(Administrator\)$/m) });

  const open = run('laptop', '', ...tunnel.map((word) => word.replace(':8081', ':0')), '--no-local');
  const ready = await shown(open, /http:\/\/127\.0\.0\.1:\d+/);
  expect(await (await fetch(ready)).text()).toBe(PAGE);
});
