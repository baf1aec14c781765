/** The README's device and client run as they stand there, as processes of their own, through a base station started by its one command. */
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { generateKeyPairSync } from 'node:crypto';
import { once } from 'node:events';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, expect, it } from 'vitest';
import { fingerprint } from '../../protocol/identity/index.ts';
import { nodeCrypto } from '../../transport/node/crypto.ts';

const run = promisify(execFile);
const root = fileURLToPath(new URL('../..', import.meta.url));
const svc = join(root, 'dist/cli/main.js');
/** Inside the package, so that `svc-connect/…` resolves to it. */
const scratch = join(root, 'build', `readme-${process.pid}`);
const data = await mkdtemp(join(tmpdir(), 'svc-readme-'));
const children: ChildProcess[] = [];

afterAll(async () => {
  for (const child of children) child.kill('SIGKILL');
  await Promise.all([rm(data, { recursive: true, force: true }), rm(scratch, { recursive: true, force: true })]);
});

it('runs the device and the client of the README', async () => {
  const station = start([svc, 'basestation', '--data', data, '--port', '0', '--json']);
  const listening = JSON.parse(await line(station, (text) => text.includes('listening')));
  const deviceKey = key();
  await run(process.execPath, [svc, 'admin', 'product', 'add', 'pr-home', '--data', data]);
  await run(process.execPath, [svc, 'admin', 'device', 'add', 'pr-home', 'de-1', '--fingerprint', deviceKey.fingerprint, '--data', data]);

  const shared = {
    serverUrl: `https://127.0.0.1:${listening.port}`,
    serverFingerprint: listening.fingerprint,
    token: 'a-token-for-the-readme',
  };
  const device = start([await script('device', { ...shared, privateKey: deviceKey.pem })]);
  await line(device, (text) => text === 'ATTACHED');

  const client = start([
    await script('client', {
      ServerUrl: shared.serverUrl,
      ServerFingerprint: shared.serverFingerprint,
      ServerConnectToken: shared.token,
      DeviceFingerprint: deviceKey.fingerprint,
      PrivateKey: key().pem,
    }),
  ]);
  expect(await line(client, () => true)).toBe('205 21.5');
});

/** The fenced block marked with `name`, with its free names defined in front of it. */
async function script(name: 'device' | 'client', values: Record<string, string>): Promise<string> {
  const readme = await readFile(join(root, 'README.md'), 'utf8');
  const block = new RegExp(`\`\`\`js ${name}\n([\\s\\S]*?)\`\`\``).exec(readme)?.[1] as string;
  const statements = block.trim().split('\n');
  expect(statements).toHaveLength(6);
  const imported = name === 'client' ? "import { SvcClient } from 'svc-connect/client';" : '';
  const defined = Object.entries(values).map(([key, value]) => `const ${key} = ${JSON.stringify(value)};`);
  await mkdir(scratch, { recursive: true });
  const file = join(scratch, `${name}.mjs`);
  await writeFile(file, [imported, ...defined, block].join('\n'));
  return file;
}

function key(): { pem: string; fingerprint: string } {
  const { publicKey, privateKey } = generateKeyPairSync('x25519');
  const raw = publicKey.export({ format: 'der', type: 'spki' }).subarray(-32);
  return {
    pem: privateKey.export({ format: 'pem', type: 'pkcs8' }).toString(),
    fingerprint: fingerprint(new Uint8Array(raw), nodeCrypto),
  };
}

function start(args: string[]): ChildProcess {
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] });
  children.push(child);
  return child;
}

/** The first line of standard output that `wanted` takes; rejects when the process ends before it. */
async function line(child: ChildProcess, wanted: (text: string) => boolean): Promise<string> {
  const lines = createInterface({ input: child.stdout as NodeJS.ReadableStream });
  const ended = once(child, 'exit').then(([code]) => {
    throw new Error(`the process ended with ${code}`);
  });
  const found = new Promise<string>((resolve) => lines.on('line', (text) => wanted(text) && resolve(text)));
  return Promise.race([found, ended]);
}
