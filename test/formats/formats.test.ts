/**
 * The stored formats: the product reads each file of stored/, and writes the same files now.
 *
 * Frozen from the tag of 0.1.0 on: a later version reads these files as they are, and puts those of a changed format
 * beside them. Until then `npm run formats` writes them again after a change of a format.
 */
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import Database from 'libsql';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { Known } from '../../cli/client/known.ts';
import { readKnownFile } from '../../cli/client/known-file.ts';
import { lastUsed } from '../../cli/client/last-used.ts';
import { DeviceData } from '../../cli/device-app/data.ts';
import { readPendingJoin } from '../../cli/device-app/pending-join.ts';
import { AuditLog, readAuditEntries, verifyAuditLog } from '../../device/audit/index.ts';
import { createIamSecrets, openIam } from '../../device/iam/index.ts';
import { readThrottleDocument } from '../../device/password/throttle-document.ts';
import { nodeCrypto } from '../../platform/node/index.ts';
import { openStationData } from '../../server/storage/data-directory.ts';
import { readLastStart } from '../../server/storage/last-start.ts';
import { credentialRecord, serviceRecord } from '../../server/storage/sealing.ts';
import { client, created, device, station, writeFormats } from './write.ts';

const stored = fileURLToPath(new URL('stored', import.meta.url));
const parent = mkdtempSync(join(tmpdir(), 'svc-formats-'));
const copy = (name: string): string => join(parent, 'copy', name);

beforeAll(() => cpSync(stored, copy(''), { recursive: true }));
afterAll(() => rmSync(parent, { recursive: true }));

const never = (): never => {
  throw new Error('there is a file');
};

/** The files by their paths: their text, and of a database its schema and its rows. */
function contentOf(directory: string): Record<string, unknown> {
  const files = readdirSync(directory, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  const paths = files.map(({ parentPath, name }) => join(parentPath, name)).toSorted();
  const read = (path: string) => (path.endsWith('.sqlite') ? dump(path) : readFileSync(path, 'utf8'));
  return Object.fromEntries(paths.map((path) => [path.slice(directory.length), read(path)]));
}

function dump(file: string): unknown {
  const database = new Database(file);
  const schema = database.prepare('select type, name, sql from sqlite_master order by type, name').all([]) as Record<string, string>[];
  const tables = schema.filter(({ type }) => type === 'table');
  return { schema, rows: tables.map(({ name }) => database.prepare(`select * from "${name}"`).all([])) };
}

test('the product writes the same files now', { tags: ['slow'] }, async () => {
  await writeFormats(join(parent, 'now'));
  expect(contentOf(join(parent, 'now'))).toEqual(contentOf(stored));
});

test('the directory of a base station', async () => {
  const { identity, resetSecret, store, sealer, close } = await openStationData(copy('station'), nodeCrypto);
  const { organizationId } = station.organization;
  expect([identity.export(), resetSecret]).toEqual([station.identity, station.resetSecret]);
  expect(await readLastStart(copy('station'))).toEqual(station.start);
  expect(await store.organizations()).toEqual([station.organization]);
  expect(await store.products()).toEqual([station.product]);
  expect(await store.devices()).toEqual([station.device, station.joined].map((each) => ({ ...each, organizationId })));
  expect(await store.devicesRevision()).toBe(1);
  const has = (hash: string) => store.hasToken('pr-1', 'de-1', hash);
  expect(await Promise.all([...station.tokens.hashes, station.tokens.digest].map(has))).toEqual([true, true, false]);
  expect(await store.tokensDigest('pr-1', 'de-1')).toBe(station.tokens.digest);
  expect(await store.apps()).toEqual([station.app]);
  expect([await store.apiKeys(), await store.apiKeyHash('ak-1')]).toEqual([[station.key], station.keyHash]);
  expect(await store.outbound.pushCredentials()).toEqual([station.push]);
  expect(sealer.open(station.push.sealedKey, credentialRecord(station.push))).toBe(station.sealed.key);
  expect(await store.outbound.services()).toEqual([station.service]);
  expect(sealer.open(station.service.sealedSecret, serviceRecord(station.service))).toBe(station.sealed.secret);
  expect(await store.outbound.productsOfService('se-1')).toEqual(['pr-1']);
  expect(await store.invitations.all()).toEqual(station.invitations);
  await close();
});

test('the key, the state and the waiting join of a device', async () => {
  const data = await DeviceData.open(copy('device'));
  expect(await data.privateKey(never)).toBe(device.key);
  expect(data.state).toEqual(device.state);
  expect(await readPendingJoin(data.joinFile)).toEqual(device.join);
});

test('the users, roles, passwords and failed attempts of a device', { tags: ['slow'] }, async () => {
  const first = { firstConfiguration: never, firstState: never };
  const { notificationCategories } = device.ann;
  const iam = await openIam(copy('device'), { secrets: createIamSecrets(device.key), ...first, notificationCategories });
  const { users: _, openPairingPasswordSealed: __, ...settings } = iam.state;
  expect([iam.configuration, iam.users, settings]).toEqual([device.configuration, [device.ann, device.bob], device.settings]);
  expect(await iam.openPairingPassword()).toBe(device.passwords.open);
  expect(await iam.passwordOf('ann')).toEqual(await device.secrets.makeVerifier(device.passwords.ann));
  expect(iam.hasPassword('bob')).toBe(false);
  expect(readThrottleDocument(iam.passwordThrottle?.stored)).toEqual(device.throttle);
});

test('the audit log of a device', async () => {
  const { productId: ProductId, deviceId: DeviceId, fingerprint: DeviceFingerprint } = device.identity;
  const log = await AuditLog.open(copy('device'), { identity: device.identity, clock: device.clock });
  const binding = { Version: 1, ProductId, DeviceId, DeviceFingerprint, AuditKey: log.publicKey };
  const frame = { Time: created, Prev: expect.stringMatching(/^[0-9a-f]{64}$/), Sig: expect.stringMatching(/^[0-9a-f]{128}$/) };
  expect(await readAuditEntries(copy('device'))).toEqual([
    { Seq: 0, ...frame, Event: 'log-started', ...binding },
    { Seq: 1, ...frame, Event: 'made-up', ...device.details },
  ]);
  expect(await verifyAuditLog(copy('device'), { publicKey: log.publicKey })).toMatchObject({ ok: true, entries: 2, head: log.head });
  await log.close();
});

test('the directory of a client', async () => {
  expect(await (await Known.open(copy('client'))).existingPrivateKey()).toBe(client.key);
  expect(await readKnownFile(copy('client'))).toEqual(client.known);
  expect(await lastUsed(copy('client'))).toEqual(client.used);
});
