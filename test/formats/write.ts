/**
 * Writes one file of each stored format with the product's code, made-up keys and a fixed clock. `station`, `device`
 * and `client` are what the files contain.
 */
import { createPrivateKey } from 'node:crypto';
import { rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import Database from 'libsql';
import { Known } from '../../cli/client/known.ts';
import { noteUse } from '../../cli/client/last-used.ts';
import { DeviceData } from '../../cli/device-app/data.ts';
import { savePendingJoin } from '../../cli/device-app/pending-join.ts';
import type { SvcClient } from '../../client/node.ts';
import { AUDIT_KEY_FILE, AuditLog } from '../../device/audit/index.ts';
import { createIamSecrets, type IamConfiguration, openIam, Users } from '../../device/iam/index.ts';
import { type StoredThrottle, throttleDocument } from '../../device/password/throttle-document.ts';
import { nativeCrypto } from '../../platform/node/crypto.ts';
import { prepareDirectory, replaceFile } from '../../platform/node/index.ts';
import { encodePrivateKey } from '../../protocol/identity/index.ts';
import { encodeJoinString } from '../../protocol/records/index.ts';
import { openStationData } from '../../server/storage/data-directory.ts';
import { rememberStart } from '../../server/storage/last-start.ts';

const START = Date.UTC(2026, 0, 2, 3, 4, 5);
export const created = new Date(START).toISOString();
const [hash, raw] = [(byte: number) => Buffer.alloc(32, byte).toString('hex'), (byte: number) => new Uint8Array(32).fill(byte)];
const [url, webSocket] = ['https://station.example:4433', 'wss://station.example:4433/svc/v1'];
/** A DER sequence of 260 bytes that begins with another one. */
const certificate = Buffer.concat([Buffer.from('3082010030', 'hex'), Buffer.alloc(255)]).toString('base64');
const roots = `-----BEGIN CERTIFICATE-----\n${certificate}\n-----END CERTIFICATE-----\n`;

const owner = { organizationId: 'or-1', created };
const invitation = { productId: 'pr-1', expires: '2026-01-03T03:04:05.000Z', maker: 'ann', created };
const use = { deviceId: 'de-3', fingerprint: hash(0xa3), address: '192.0.2.3', time: '2026-01-02T03:05:00.000Z' };
const rights = { isAdmin: false, actions: ['a:b'], enforceIpWhitelist: true, ipWhiteList: [{ ip: '::1', name: 'Here' }] };
const jwt = {
  issuer: 'https://issuer.example',
  audience: 'svc',
  audienceClaim: 'aud',
  jwksUri: 'https://issuer.example/jwks',
  svcIdsClaim: 'devices',
};
const push = { projectId: 'project-1', clientEmail: 'svc@project-1.example', keyId: 'key-1', tokenUrl: 'https://push.example/token' };
const service = { serviceId: 'se-1', name: 'Service', url: 'https://service.example/', timeout: 10_000, allowPrivate: true };

/** Sealed texts have a random nonce: these two were made once. */
export const station = {
  identity: raw(1),
  resetSecret: raw(2),
  outboundKey: hash(3),
  start: { fingerprint: hash(0xa0), port: 4433, host: '192.0.2.1', url, tlsProves: true },
  organization: { ...owner, name: 'One' },
  product: { ...owner, productId: 'pr-1', name: 'Heating' },
  device: { productId: 'pr-1', deviceId: 'de-1', name: 'Hall', fingerprint: hash(0xa1), created },
  /** Came with the second invitation. */
  joined: { productId: 'pr-1', deviceId: use.deviceId, name: null, fingerprint: use.fingerprint, created: use.time },
  tokens: { hashes: [hash(0xb1), hash(0xb2)], digest: hash(0xb3) },
  app: { ...owner, appId: 'ap-1', name: 'App', authType: 'JWT' as const, jwt, keyHash: hash(0xc1), productIds: ['pr-1'] },
  key: { ...owner, ...rights, apikeyId: 'ak-1', name: 'Key' },
  keyHash: hash(0xd1),
  push: { ...owner, ...push, baseUrl: 'https://push.example', sealedKey: 'cTHhvtoWrZv0t2aW1OjUeSvZKBg_TsiMkFIaNLkQ-O-Ei-1wwCBALLYiIg' },
  service: { ...owner, ...service, sealedSecret: 'H1koD-xF9TCsWmqSWYb_nPeYvTECj5VSAm0dGa3uL_dqJ6S6bGa9LPg' },
  sealed: { key: 'made-up RSA key', secret: 'whsec_made-up' },
  invitations: [
    { ...invitation, tokenHash: hash(0xe1), deviceId: 'de-2', revoked: true, use: null },
    { ...invitation, tokenHash: hash(0xe2), deviceId: null, revoked: false, use },
  ],
};

async function writeStation(directory: string): Promise<void> {
  await prepareDirectory(directory);
  await replaceFile(join(directory, 'outbound.key'), `${station.outboundKey}\n`);
  const drawn = [station.identity.slice(), station.resetSecret];
  const crypto = nativeCrypto(() => drawn.shift()!);
  const { store, close } = await openStationData(directory, crypto);
  await store.addOrganization(station.organization);
  await store.addProduct(station.product);
  await store.addDevice(station.device);
  await store.setFingerprint('pr-1', 'de-1', station.device.fingerprint);
  await store.replaceTokens('pr-1', 'de-1', station.tokens);
  await store.addApp(station.app);
  await store.addApiKey(station.key, station.keyHash);
  await store.outbound.addPushCredential(station.push);
  await store.outbound.addService(station.service, ['pr-1']);
  for (const { revoked, use, ...each } of station.invitations) {
    await store.invitations.add(each, 9);
    if (revoked) await store.invitations.revoke(each.tokenHash);
    if (use !== null) await store.invitations.redeem({ ...use, tokenHash: each.tokenHash });
  }
  await close();
  await rememberStart(directory, station.start);
  await shrink(directory);
}

/** Replaces the database by a copy with a fixed time of its schema, and a fifth of its size; removes the lock. */
async function shrink(directory: string): Promise<void> {
  const [file, copy] = [join(directory, 'basestation.sqlite'), join(directory, 'copy')];
  const database = new Database(file);
  database.exec(`update kysely_migration set timestamp = '${created}'; pragma page_size = 512; vacuum into '${copy}'`);
  database.close();
  for (const name of ['basestation.sqlite-wal', 'basestation.sqlite-shm']) await rm(join(directory, name), { force: true });
  await rename(copy, file);
}

const der = Buffer.from(`302e020100300506032b657004220420${hash(5)}`, 'hex');
const ids = { productId: 'pr-1', deviceId: 'de-1' };
const invited = { ...ids, token: raw(6).slice(16), server: 'station.example:4433', serverFingerprint: hash(0xa0) };
const isRemote = { operator: 'Bool' as const, key: 'Connection:IsLocal', values: ['false'] };
const policies: IamConfiguration['policies'] = [
  { id: 'Look', statements: [{ effect: 'Allow', actions: ['Thermostat:Get'], conditions: [] }] },
  { id: 'Own', statements: [{ effect: 'Deny', actions: ['IAM:GetUser'], conditions: [isRemote] }] },
];
const key = encodePrivateKey(raw(4));

export const device = {
  key,
  state: {
    Version: 1 as const,
    ...{ ProductId: 'pr-1', DeviceId: 'de-1', Joined: true, OwnerInvited: true, AlarmTold: false },
    ...{ ServerUrl: url, ServerFingerprint: hash(0xa0), ServerRootCerts: roots, ServerWebSocketUrl: webSocket },
    Thermostat: { Target: 21.5, Mode: 'heat' as const, Temperature: 19.25, Time: START, BoostUntil: START + 60_000 },
  },
  join: {
    text: encodeJoinString(invited),
    join: invited,
    choices: { deviceId: 'de-1', server: url, rootCerts: roots, serverWebsocket: webSocket },
  },
  throttle: {
    state: {
      paired: { failures: 10, slots: [] },
      local: { failures: 9.5, slots: [[7, 1, 500, 0, 500, 1]] },
      remote: { failures: 4, slots: [[0, 6, 100, 900, 200, 6]] },
    },
    savedAt: START,
    isClean: true,
  } satisfies StoredThrottle,
  configuration: { policies, roles: [{ id: 'Guest', policies: ['Look', 'Own'] }], unpairedRole: 'Guest' },
  settings: {
    ...{ localOpenPairing: true, passwordOpenPairing: true, passwordInvitePairing: false, localInitialPairing: false },
    ...{ openPairingSct: 'open-token', openPairingRole: 'Guest', initialPairingUsername: 'ann', friendlyName: 'Hall' },
  },
  ann: {
    ...{ username: 'ann', displayName: 'Ann', role: 'Guest', sct: 'token-of-ann', oauthSubject: 'ann@issuer.example' },
    fingerprints: [{ fingerprint: hash(0xf1), name: 'Phone', added: '2026-01-02' }, { fingerprint: hash(0xf2) }],
    ...{ push: { token: 'push-token', projectId: 'project-1' }, notificationCategories: ['CRITICAL', 'INFO'] },
  },
  bob: { username: 'bob', fingerprints: [], notificationCategories: [] },
  passwords: { open: 'open sesame', ann: 'secret of ann' },
  /** Its secrets, with a salt and a nonce that are always the same. */
  secrets: createIamSecrets(
    key,
    nativeCrypto((length) => new Uint8Array(length).fill(7)),
  ),
  identity: { ...ids, fingerprint: hash(0xa1) },
  clock: { now: () => 0, wallTime: () => START, schedule: () => () => {} },
  details: { Text: 'ä', Number: 1, Flag: true, Nested: { Name: 'value' } },
};

async function writeDevice(directory: string): Promise<void> {
  const { secrets, configuration, settings, ann, bob, passwords } = device;
  const data = await DeviceData.open(directory);
  await data.privateKey(() => device.key);
  await data.update(device.state);
  await savePendingJoin(data.joinFile, device.join);
  const auditKey = createPrivateKey({ key: der, format: 'der', type: 'pkcs8' }).export({ format: 'pem', type: 'pkcs8' });
  await replaceFile(join(directory, AUDIT_KEY_FILE), auditKey.toString());
  const log = await AuditLog.open(directory, { identity: device.identity, clock: device.clock });
  await log.append('made-up', device.details);
  await log.close();
  const firstState = async () => {
    const users = Users.of([{ user: ann, verifier: await secrets.makeVerifier(passwords.ann) }, { user: bob }]);
    return { ...settings, openPairingPasswordSealed: await secrets.seal(passwords.open), users };
  };
  const { notificationCategories } = ann;
  const iam = await openIam(directory, { secrets, firstConfiguration: () => configuration, firstState, notificationCategories });
  await iam.passwordThrottle?.save(throttleDocument(device.throttle));
}

const known = { ProductId: 'pr-1', DeviceId: 'de-1', Fingerprint: hash(0xa1), Name: 'hall', Tokens: { [hash(0xa0)]: 'token-of-ann' } };

export const client = {
  key: encodePrivateKey(raw(8)),
  known: {
    Version: 1,
    Devices: [{ ...known, ServerUrl: url, ServerWebSocketUrl: webSocket, Address: '192.0.2.4:5683', User: 'ann' }],
    Stations: {
      [url]: { Fingerprint: hash(0xa0), Seen: true },
      'https://unseen.example:4433': { Fingerprint: hash(0xa5), Seen: false },
      'https://tls.example:443': { Roots: roots },
    },
  },
  used: { 'pr-1.de-1': '2026-01-02' },
};

async function writeClient(directory: string): Promise<void> {
  const { Devices, Stations } = client.known;
  const state = await Known.open(directory);
  await state.privateKey({ createPrivateKey: () => client.key } as SvcClient);
  for (const each of Devices) state.remember(each);
  for (const [url, station] of Object.entries(Stations)) state.rememberStation(url, station);
  await state.save();
  await noteUse(directory, 'pr-1.de-1', ['pr-1.de-1'], START);
}

/** Writes them into three directories below this one. */
export async function writeFormats(directory: string): Promise<void> {
  await writeStation(join(directory, 'station'));
  await writeDevice(join(directory, 'device'));
  await writeClient(join(directory, 'client'));
}
