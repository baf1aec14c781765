/**
 * The programs of docs/device.md, docs/pairing.md, docs/audit.md and docs/trust.md, as they stand there: one base
 * station in this process, and on loopback and free ports the devices and the client of the blocks.
 */
import { generateKeyPairSync } from 'node:crypto';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import * as client from '../../client/node.ts';
import * as device from '../../device/index.ts';
import { type RunningBasestation, startBasestation } from '../../server/index.ts';
import { type Block, blocksOf, Program } from '../support/document-blocks.ts';
import { drawnProduct } from '../support/fixture/identifiers.ts';
import { svcInProcess } from './in-process.ts';

const silent = { error() {}, warn() {}, info() {}, debug() {}, trace() {} };
const environment = client.nodeEnvironment({ mdnsInterfaces: ['lo'] });
const folder = await mkdtemp(join(tmpdir(), 'svc-guides-'));
const data = join(folder, 'station');
/** In place of that of the documents. */
const PRODUCT = drawnProduct();

class Device extends device.Device {
  constructor(options: device.DeviceOptions = {}) {
    super({ environment, localPort: 0, p2pPort: 0, rendezvous: 'off', ...options });
  }
}

/** The directory `./state` of the page lies in the folder of this test. */
const openIam: typeof device.openIam = (directory, options) => device.openIam(join(folder, directory), options);

const modules = { 'svc-connect/client': client, 'svc-connect/device': { ...device, Device, openIam } };
const closing: (() => Promise<unknown>)[] = [];

let station: RunningBasestation;
let joined: Program;
let guarded: Program;

beforeAll(async () => {
  station = await startBasestation({ data, port: 0, host: '127.0.0.1', log: silent });
});

afterAll(async () => {
  for (const close of closing.toReversed()) await close();
  await station?.close();
  await rm(folder, { recursive: true, force: true });
});

it('docs/device.md: joins a base station', { tags: ['slow'] }, async () => {
  const { stdout } = await svcInProcess(['admin', 'device', 'invite', PRODUCT, '--device-id', 'de-1', '--data', data, '--json']);
  joined = new Program(modules, { Device, joinBaseStation: device.joinBaseStation, joinString: JSON.parse(stdout).joinString });
  await joined.run(await block('device.md', 'join'));
  expect(joined.value('joined')).toMatchObject({ productId: PRODUCT, deviceId: 'de-1' });
});

it('docs/pairing.md: puts a device under access control', { tags: ['slow'] }, async () => {
  const { serverUrl, serverFingerprint } = joined.value('joined') as device.JoinResult;
  guarded = new Program(modules, { privateKey: joined.value('privateKey'), serverUrl, serverFingerprint });
  await guarded.run(await block('pairing.md', 'access-control'));
  closing.push(() => (guarded.value('device') as device.Device).close());
  expect((guarded.value('iam') as device.Iam).user('admin')?.role).toBe('Administrator');
});

it('docs/pairing.md: pairs as the invited user, and invites another one', { tags: ['slow'] }, async () => {
  const iam = guarded.value('iam') as device.Iam;
  const at = guarded.value('device') as device.Device;
  await iam.setUserPassword('admin', 'a-long-password');
  const sdk = client.SvcClient.create({ environment, mapsPort: false });
  closing.push(() => sdk.stop());
  const connection = sdk.createConnection();
  connection.updateOptions({ PrivateKey: sdk.createPrivateKey(), ProductId: PRODUCT, DeviceId: 'de-1', Local: false, Remote: false });
  connection.enableDirectCandidates();
  connection.addDirectCandidate('127.0.0.1', at.localPort);
  connection.endOfDirectCandidates();
  await connection.connect();
  const pairing = { productId: PRODUCT, deviceId: 'de-1', username: 'admin', password: 'a-long-password' };
  const program = new Program(modules, { connection, pairingString: client.encodePairingString(pairing) });
  await program.run(await block('pairing.md', 'pairing'));
  await program.end();
  expect(iam.user('carol')?.role).toBe('Guest');
});

it('docs/audit.md: keeps an audit log and verifies it', async () => {
  const { privateKey } = generateKeyPairSync('x25519', {
    privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
    publicKeyEncoding: { type: 'spki', format: 'pem' },
  });
  const audited = new Device({ productId: PRODUCT, deviceId: 'de-2', privateKey, basestationAttach: false });
  const program = new Program(modules, {
    device: audited,
    ...{ directory: join(folder, 'audit'), productId: PRODUCT, deviceId: 'de-2', fingerprint: audited.deviceFingerprint },
    ...{ publicKey: undefined, expect: undefined },
  });
  await program.run(await block('audit.md', 'audit-log'));
  await (program.value('log') as device.AuditLog).close();
  expect(program.value('verdict')).toMatchObject({ ok: true, entries: 2 });
});

it('docs/trust.md: gives the client a server key and a function that fetches tokens', async () => {
  const connection = client.SvcClient.create({ environment }).createConnection();
  const login = { currentSession: async () => ({ accessToken: 'a-token' }) };
  await new Program(modules, { connection, login }).run(await block('trust.md', 'jwt'));
});

async function block(page: string, name: string): Promise<Block> {
  const text = await readFile(new URL(`../../docs/${page}`, import.meta.url), 'utf8');
  const blocks = blocksOf(text.replaceAll('pr-home', PRODUCT));
  const found = blocks.find((each) => each.name === name);
  if (found === undefined) throw new Error(`docs/${page} has the blocks ${blocks.map((each) => each.name)}`);
  return found;
}
