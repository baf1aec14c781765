/**
 * A device with an audit log, and clients over real sockets: their actions and refusals are written with their users'
 * names.
 */
import { describe, expect, it } from 'vitest';
import type { Connection } from '../../../client/node.ts';
import { AuditLog, createIamSecrets, Device, defaultConfiguration, Iam, nodeEnvironment, verifyAuditLog } from '../../../device/index.ts';
import { encode } from '../../../protocol/cbor/index.ts';
import { PasswordPath } from '../../../protocol/password/index.ts';
import { withCheapScrypt } from '../../support/cheap-scrypt.ts';
import { codeOf } from '../../support/code-of.ts';
import { LoopbackFixture } from '../../support/fixture/loopback.ts';
import { stateOf, user } from '../iam/model.ts';
import { identity } from './chain.ts';
import { useLogDirectory } from './log-directory.ts';

const logs = useLogDirectory();
const environment = withCheapScrypt(nodeEnvironment());

interface AuditedDevice {
  readonly fixture: LoopbackFixture;
  readonly device: Device;
  readonly iam: Iam;
  readonly log: AuditLog;
}

/** A device with a guest `ann`, who has a password, and open pairing. */
async function start(order: 'log first' | 'iam first' = 'iam first'): Promise<AuditedDevice> {
  const fixture = new LoopbackFixture(environment);
  const privateKey = new Device({ environment }).createPrivateKey();
  const { productId, deviceId } = identity;
  const { device } = fixture.device({ productId, deviceId, privateKey, appName: 'test' });
  const state = stateOf([user('ann', { role: 'Guest' })], { localOpenPairing: true, openPairingRole: 'Guest' });
  const secrets = createIamSecrets(privateKey, environment.crypto);
  const iam = new Iam({ configuration: defaultConfiguration(), state, secrets });
  await iam.setUserPassword('ann', 'secret');
  const log = await AuditLog.open(logs().directory, {
    identity: { ...identity, fingerprint: device.deviceFingerprint },
    clock: environment.clock,
  });
  fixture.ends(() => log.close());
  if (order === 'iam first') device.setIam(iam);
  device.setAuditLog(log);
  if (order === 'log first') device.setIam(iam);
  await device.start();
  return { fixture, device, iam, log };
}

function connect({ fixture, device }: AuditedDevice): Promise<Connection> {
  return fixture.connected({ device }, { ProductId: identity.productId, DeviceId: identity.deviceId });
}

async function request(connection: Connection, method: string, path: string, body?: Record<string, unknown> | string): Promise<number> {
  return (await connection.request(method, path, body === undefined ? {} : { body: encode(body as never), format: 60 })).status;
}

/** Entries since the start, without fields that a test cannot know. */
const entries = () => logs().events().slice(2);

describe('a device with an audit log', () => {
  it.each(['iam first', 'log first'] as const)(
    'logs a pairing and a refusal, with user and key (%s)',
    { tags: ['slow'] },
    async (order) => {
      const audited = await start(order);
      const connection = await connect(audited);
      const Fingerprint = connection.getClientFingerprint();
      expect(await request(connection, 'POST', '/iam/pairing/local-open', { Username: 'carl' })).toBe(201);
      // No flush: it was on the disk before the answer.
      const by = { Fingerprint, Local: true };
      expect(entries()).toEqual([
        { Event: 'user-created', Username: 'carl', Role: 'Guest', By: by },
        { Event: 'paired', Username: 'carl', Mode: 'LocalOpen', Fingerprint, Local: true, By: by },
      ]);
      expect(await request(connection, 'DELETE', '/iam/users/ann')).toBe(403);
      expect(await request(connection, 'PUT', '/iam/users/carl/display-name', 'Carl')).toBe(204);
      const byCarl = { Username: 'carl', ...by };
      expect(entries().slice(2)).toEqual([
        { Event: 'denied', Action: 'IAM:DeleteUser', Attributes: { 'IAM:Username': 'ann' }, By: byCarl },
        { Event: 'user-setting-changed', Username: 'carl', Setting: 'display-name', By: byCarl },
      ]);
    },
  );

  it('logs wrong passwords, with the name only if it is a user’s', { tags: ['slow'] }, async () => {
    const audited = await start();
    const connection = await connect(audited);
    const by = { Fingerprint: connection.getClientFingerprint(), Local: true };
    for (const name of ['ann', 'my-password', ''])
      expect(await codeOf(() => connection.passwordAuthenticate(name, 'wrong'))).toBe('UNAUTHORIZED');
    await audited.log.flush();
    expect(entries()).toEqual([
      { Event: 'password-failed', Username: 'ann', Reason: 'wrong', By: by },
      { Event: 'password-failed', Reason: 'wrong', By: by },
      { Event: 'password-failed', Username: '', Reason: 'wrong', By: by },
    ]);
    await connection.passwordAuthenticate('ann', 'secret');
    await audited.log.flush();
    expect(entries()).toHaveLength(3);
    expect(logs().lines().join()).not.toMatch(/my-password|secret/);
  });

  it('logs an invalid proof like a wrong password, and charges as much for it', { tags: ['slow'] }, async () => {
    const audited = await start();
    const connection = await connect(audited);
    expect(await request(connection, 'POST', PasswordPath.FIRST, { Username: 'ann' })).toBe(201);
    expect(await request(connection, 'POST', PasswordPath.SECOND, { Y: new Uint8Array(32), Tag: new Uint8Array(64) })).toBe(400);
    await audited.log.flush();
    const by = { Fingerprint: connection.getClientFingerprint(), Local: true };
    expect(entries()).toEqual([{ Event: 'password-failed', Username: 'ann', Reason: 'wrong', By: by }]);
  });

  it('logs its start and stop, and nothing after them', { tags: ['slow'] }, async () => {
    const { device, iam, log } = await start();
    await device.close();
    await iam.update((draft) => draft.deleteUser('ann'));
    await log.close();
    expect(logs().events().slice(1)).toEqual([
      { Event: 'device-started', SvcVersion: Device.version(), AppName: 'test' },
      { Event: 'device-stopped' },
    ]);
    expect(await verifyAuditLog(logs().directory, { publicKey: log.publicKey, expect: log.head })).toMatchObject({
      ok: true,
      fingerprint: device.deviceFingerprint,
    });
  });

  it('accepts one log, before start', async () => {
    const { device, log } = await start();
    expect(() => device.setAuditLog(log)).toThrow(expect.objectContaining({ code: 'INVALID_STATE' }));
    const other = new Device({ environment });
    other.setAuditLog(log);
    expect(() => other.setAuditLog(log)).toThrow(expect.objectContaining({ code: 'IN_USE' }));
  });
});
