/**
 * The README's device and client run as processes of their own, through a base station started by its one command. Only
 * the product id and the ports are others, and the client does not search the local network.
 *
 * @module-tag slow
 */
import { generateKeyPairSync } from 'node:crypto';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, expect, it } from 'vitest';
import { nodeCrypto } from '../../platform/node/crypto.ts';
import { fingerprint } from '../../protocol/identity/index.ts';
import { drawnProduct } from '../support/fixture/identifiers.ts';
import { TestProcess } from '../support/process.ts';
import { Commands } from './commands.ts';

const { svcJson } = new Commands();
const PRODUCT = drawnProduct();
const root = fileURLToPath(new URL('../..', import.meta.url));
const svc = join(root, 'dist/svc/main.cjs');
/** Inside the package, so that `svc-connect/…` resolves to it. */
const scratch = join(root, 'build', `readme-${process.pid}`);
const data = await mkdtemp(join(tmpdir(), 'svc-readme-'));

afterAll(async () => {
  await Promise.all([rm(data, { recursive: true, force: true }), rm(scratch, { recursive: true, force: true })]);
});

it('runs the device and the client of the README', async () => {
  const station = start([svc, 'basestation', '--data', data, '--port', '0', '--json']);
  const listening = JSON.parse(await station.line((text) => text.includes('listening')));
  const deviceKey = key();
  await svcJson('admin', 'product', 'add', PRODUCT, '--data', data);
  await svcJson('admin', 'device', 'add', PRODUCT, 'de-1', '--fingerprint', deviceKey.fingerprint, '--data', data);

  const shared = {
    serverUrl: `https://127.0.0.1:${listening.port}`,
    serverFingerprint: listening.fingerprint,
    token: 'a-token-for-the-readme',
  };
  const device = start([await script('device', { ...shared, privateKey: deviceKey.pem })]);
  await device.line((text) => text === 'ATTACHED');

  const client = start([
    await script('client', {
      ServerUrl: shared.serverUrl,
      ServerFingerprint: shared.serverFingerprint,
      ServerConnectToken: shared.token,
      DeviceFingerprint: deviceKey.fingerprint,
      PrivateKey: key().pem,
    }),
  ]);
  expect(await client.line()).toBe('205 21.5');
  expect(await client.ended).toMatchObject({ code: 0, stderr: '' });
});

/** What differs from the README, which has the default ports: another process of this machine may use them. */
const rewrites = {
  device: [
    ['new Device({', 'new Device({ localPort: 0, p2pPort: 0,'],
    ["'pr-home'", `'${PRODUCT}'`],
  ],
  client: [
    ['createConnection({', 'createConnection({ Local: false,'],
    ["'pr-home'", `'${PRODUCT}'`],
  ],
} as const;

/** The fenced block marked with `name`, with its free names defined in front of it. */
async function script(name: 'device' | 'client', values: Record<string, string>): Promise<string> {
  const readme = await readFile(join(root, 'README.md'), 'utf8');
  const block = new RegExp(`\`\`\`js ${name}\n([\\s\\S]*?)\`\`\``).exec(readme)?.[1] as string;
  const statements = block.trim().split('\n');
  expect(statements).toHaveLength(6);
  const rewritten = rewrites[name].reduce((text, [theirs, ours]) => {
    expect(text).toContain(theirs);
    return text.replace(theirs, ours);
  }, block);
  const imported = name === 'client' ? "import { SvcClient } from 'svc-connect/client';" : '';
  const defined = Object.entries(values).map(([key, value]) => `const ${key} = ${JSON.stringify(value)};`);
  await mkdir(scratch, { recursive: true });
  const file = join(scratch, `${name}.mjs`);
  await writeFile(file, [imported, ...defined, rewritten].join('\n'));
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

function start(args: string[]): TestProcess {
  return new TestProcess(process.execPath, args);
}
