/** The status of a running base station, through a socket in its data directory. */
import { once } from 'node:events';
import { existsSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { stderrLog } from '../../platform/node/index.ts';
import { readStatus, serveStatus } from '../../server/status-socket.ts';
import { eventually } from '../support/eventually.ts';

const attached = [{ productId: 'pr-1', deviceId: 'de-1', since: '2026-01-02T03:04:05.678Z', address: '192.0.2.1:5000' }];
let directory: string;
let lines: string[];
let stop: () => void = () => {};
const log = stderrLog({ level: 'debug', write: (line) => lines.push(line) });

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'svc-status-'));
  lines = [];
});
afterEach(() => {
  stop();
  rmSync(directory, { recursive: true });
});

test('the status is readable while it runs, by many readers at once, and by this user only', async () => {
  stop = await serveStatus(directory, log, () => ({ attached }));
  expect(statSync(join(directory, 'basestation.sock')).mode & 0o777).toBe(0o600);
  const all = await Promise.all(Array.from({ length: 8 }, () => readStatus(directory)));
  expect(all).toEqual(Array(8).fill({ attached }));
  stop();
  expect(await readStatus(directory)).toBeNull();
  expect(existsSync(join(directory, 'basestation.sock'))).toBe(false);
});

test('a status with more devices than a socket takes at once is complete', async () => {
  const many = Array.from({ length: 10_000 }, (_, index) => ({ ...attached[0]!, deviceId: `de-${index}` }));
  stop = await serveStatus(directory, log, () => ({ attached: many }));
  expect((await readStatus(directory))?.attached).toHaveLength(10_000);
});

test('the socket of a killed process is replaced', async () => {
  writeFileSync(join(directory, 'basestation.sock'), '');
  expect(await readStatus(directory)).toBeNull();
  stop = await serveStatus(directory, log, () => ({ attached: [] }));
  expect(await readStatus(directory)).toEqual({ attached: [] });
});

test('the base station runs without a socket if none can be made', async () => {
  const long = join(directory, 'x'.repeat(100));
  stop = await serveStatus(long, log, () => ({ attached }));
  expect(lines.join('')).toContain('too long for a socket');
  stop = await serveStatus(join(directory, 'missing'), log, () => ({ attached }));
  expect([await readStatus(long), await readStatus(join(directory, 'missing'))]).toEqual([null, null]);
});

test.each(['', '{', 'null', '{"attached": 1}', '{"attached": [{"productId": 1}]}', '[]'])('%j is not a valid status', async (text) => {
  const server: Server = createServer((socket) => socket.end(text));
  stop = () => void server.close();
  await new Promise<void>((resolve) => server.listen(join(directory, 'basestation.sock'), resolve));
  expect(await readStatus(directory)).toBeNull();
});

test('programs that hold connections open keep others out for five seconds, and the base station continues', async () => {
  const large = [{ ...attached[0]!, deviceId: 'x'.repeat(2 ** 20) }];
  stop = await serveStatus(directory, log, () => ({ attached: large }));
  const held = await Promise.all(Array.from({ length: 16 }, () => holding(join(directory, 'basestation.sock'))));
  expect(await readStatus(directory)).toBeNull();
  for (const socket of held) socket.destroy();
  await eventually(async () => expect(await readStatus(directory)).toEqual({ attached: large }));
});

/** Connects and reads nothing. */
async function holding(path: string): Promise<Socket> {
  const socket = connect(path).pause();
  await once(socket, 'connect');
  return socket;
}
