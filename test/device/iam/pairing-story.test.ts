/**
 * Pairing and its consequences from the client's side: directly to the device, and through the base station.
 *
 * @module-tag slow
 */
import { describe, expect, test } from 'vitest';
import type { Connection } from '../../../client/node.ts';
import type { IamOptions } from '../../../device/index.ts';
import { Router } from '../../../protocol/coap/index.ts';
import { DevicePath, encodeTokens } from '../../../protocol/control/index.ts';
import { PasswordPath } from '../../../protocol/password/index.ts';
import { decodePushAnswer } from '../../../protocol/records/index.ts';
import type { Session } from '../../../runtime/session/index.ts';
import type { HttpRequest } from '../../../server/index.ts';
import { addProvider, http, PROJECT } from '../../server/station/provider.ts';
import { ids, SCT } from '../../support/fixture/identifiers.ts';
import { address, GuardedDevice } from './guarded-device.ts';
import { stateOf, user } from './model.ts';

let guarded: GuardedDevice;

const OPEN = 'open sesame';
const INVITE = 'come in';
const isClosed = ({ closeReason }: Connection): boolean => closeReason !== null;

/** Open pairing on, `admin` waits for the first client, `guest` is invited. */
async function house(): Promise<void> {
  guarded = await GuardedDevice.attached(options());
  guarded.device.addTcpTunnelService({ id: 'web', type: 'http', host: '127.0.0.1', port: 80 });
  await passwords();
}

function options(): Partial<IamOptions> {
  const state = stateOf([user('admin', { role: 'Administrator' }), user('guest', { role: 'Guest', sct: 'sct-of-guest' })], {
    localOpenPairing: true,
    passwordOpenPairing: true,
    passwordInvitePairing: true,
    localInitialPairing: true,
    openPairingRole: 'Standard',
    initialPairingUsername: 'admin',
  });
  return { state };
}

async function passwords(): Promise<void> {
  await guarded.settle(guarded.iam.setOpenPairingPassword(OPEN));
  await guarded.settle(guarded.iam.setUserPassword('guest', INVITE));
  await guarded.pass(1000);
}

const pair = (connection: Connection, mode: string, body?: { Username?: string; FingerprintName?: string }): Promise<number> =>
  guarded.request(connection, 'POST', `/iam/pairing/${mode}`, body);
const get = (connection: Connection, path: string): Promise<number> => guarded.request(connection, 'GET', path);

/** A connection that is paired as an administrator. */
async function administrator(): Promise<Connection> {
  const connection = await guarded.direct();
  expect(await pair(connection, 'local-initial')).toBe(201);
  return connection;
}

describe.each(['direct', 'relayed'] as const)('%s', (way) => {
  test('open pairing by password makes a user with its key, which returns without a password', { tags: ['slow'] }, async () => {
    await house();
    const PrivateKey = guarded.key();
    const connection = await guarded[way]({ PrivateKey });
    expect(await pair(connection, 'password-open', { Username: 'anna' })).toBe(401);
    expect(await guarded.login(connection, '', 'open simsim')).toBe('UNAUTHORIZED');
    expect(await guarded.login(connection, '', OPEN)).toBe('OK');
    expect(await pair(connection, 'password-open', { Username: 'anna', FingerprintName: 'phone' })).toBe(201);
    expect(await pair(connection, 'password-open', { Username: 'anna' })).toBe(201);
    expect(await pair(connection, 'password-open', { Username: 'bert' })).toBe(409);
    expect(connection.verified).toBe('password');
    const again = await guarded[way]({ PrivateKey });
    expect(await guarded.me(again)).toBe('anna');
    expect([await get(again, '/tcp-tunnels/services/web'), await get(again, '/iam/users')]).toEqual([205, 205]);
    expect(await guarded.request(again, 'POST', '/iam/users', { Username: 'bert' })).toBe(403);
  });

  test('an invitation pairs one key with the user; a second key takes over no user', { tags: ['slow'] }, async () => {
    await house();
    const [one, two] = [await guarded[way](), await guarded[way]()];
    for (const each of [one, two]) expect(await guarded.login(each, 'guest', INVITE)).toBe('OK');
    expect(await pair(one, 'password-invite')).toBe(201);
    expect(await pair(one, 'password-invite')).toBe(201);
    expect([await pair(two, 'password-invite'), await guarded.me(two)]).toEqual([401, null]);
    expect(await guarded.login(two, 'guest', INVITE)).toBe('UNAUTHORIZED');
    expect(await guarded.login(two, '', OPEN)).toBe('OK');
    expect(await pair(two, 'password-open', { Username: 'guest' })).toBe(409);
    expect(guarded.iam.user('guest')?.fingerprints.map(({ fingerprint }) => fingerprint)).toEqual([one.getClientFingerprint()]);
  });

  test('local modes work only on a direct connection', { tags: ['slow'] }, async () => {
    await house();
    const [one, two] = [await guarded[way](), await guarded[way]()];
    const local = way === 'direct';
    expect(await pair(one, 'local-open', { Username: 'anna' })).toBe(local ? 201 : 403);
    expect(await pair(two, 'local-initial')).toBe(local ? 201 : 403);
    expect(await pair(await guarded[way](), 'local-initial')).toBe(local ? 409 : 403);
    expect([await guarded.me(one), await guarded.me(two)]).toEqual(local ? ['anna', 'admin'] : [null, null]);
  });

  test('roles: an unpaired client, a guest, a standard user and an administrator have their rights from the next request on', async () => {
    await house();
    const admin = await administrator();
    const connection = await guarded[way]();
    const may = async () => [
      await get(connection, '/iam/users/guest'),
      await get(connection, '/tcp-tunnels/services/web'),
      await get(connection, '/iam/settings'),
    ];
    expect(await may()).toEqual([403, 403, 403]);
    await guarded.login(connection, 'guest', INVITE);
    expect(await may()).toEqual([205, 403, 403]);
    for (const [role, expected] of [
      ['Standard', [205, 205, 403]],
      ['Administrator', [205, 205, 205]],
      ['Guest', [205, 403, 403]],
    ] as const) {
      expect(await guarded.request(admin, 'PUT', '/iam/users/guest/role', role)).toBe(204);
      expect(await may()).toEqual(expected);
    }
  });

  test('deleting a user closes its connections and withdraws its token; it has to pair again', { tags: ['slow'] }, async () => {
    await house();
    const admin = await administrator();
    const PrivateKey = guarded.key();
    const paired = await guarded[way]({ PrivateKey });
    await guarded.login(paired, 'guest', INVITE);
    expect(await pair(paired, 'password-invite')).toBe(201);
    const second = await guarded[way]({ PrivateKey, ServerConnectToken: 'sct-of-guest' });
    expect(await guarded.me(second)).toBe('guest');
    expect(await guarded.request(admin, 'DELETE', '/iam/users/guest')).toBe(202);
    await guarded.pass(2000);
    expect([isClosed(paired), isClosed(second), isClosed(admin)]).toEqual([true, true, false]);
    await expect(guarded.relayed({ PrivateKey, ServerConnectToken: 'sct-of-guest' })).rejects.toMatchObject({
      remoteChannelErrorCode: 'TOKEN_REJECTED',
    });
    const stranger = await guarded[way]({ PrivateKey });
    expect([await guarded.me(stranger), await guarded.login(stranger, 'guest', INVITE)]).toEqual([null, 'UNAUTHORIZED']);
  });
});

test('a new user’s token is at the base station, however the user was made', async () => {
  await house();
  const admin = await administrator();
  expect(await guarded.request(admin, 'POST', '/iam/users', { Username: 'carl' })).toBe(201);
  await guarded.pass(1000);
  const sct = guarded.iam.user('carl')?.sct ?? '';
  expect(await guarded.request(await guarded.relayed({ ServerConnectToken: sct }), 'GET', '/iam/pairing')).toBe(205);
  expect(await guarded.request(admin, 'PUT', '/iam/users/carl/sct', 'sct-of-carl')).toBe(204);
  await guarded.pass(1000);
  await guarded.relayed({ ServerConnectToken: 'sct-of-carl' });
  await expect(guarded.relayed({ ServerConnectToken: sct })).rejects.toMatchObject({ remoteChannelErrorCode: 'TOKEN_REJECTED' });
});

test('a setting that an administrator switches off is off for all', { tags: ['slow'] }, async () => {
  await house();
  const admin = await administrator();
  const connection = await guarded.direct();
  for (const setting of ['password-open-pairing', 'password-invite-pairing', 'local-open-pairing'])
    expect(await guarded.request(admin, 'PUT', `/iam/settings/${setting}`, false)).toBe(204);
  expect(await guarded.login(connection, '', OPEN)).toBe('UNAUTHORIZED');
  expect(await guarded.login(connection, 'guest', INVITE)).toBe('OK');
  expect(await pair(connection, 'password-invite')).toBe(404);
  expect(await pair(connection, 'local-open', { Username: 'anna' })).toBe(404);
  expect(await guarded.me(connection)).toBe('guest');
});

test('a base station that intercepts a first contact and forwards everything pairs no key and is detected', {
  tags: ['slow'],
}, async () => {
  guarded = await GuardedDevice.make(options(), false);
  guarded.device.setIam(guarded.iam);
  guarded.device.setBasestationAttach(false);
  await guarded.fixture.start(guarded.under);
  await passwords();
  // The station leads clients of the device to its own key.
  const middle = await guarded.fixture.raw.attached();
  await middle.request('PUT', DevicePath.SCT, encodeTokens([SCT]));
  const path = middle.host.sockets.bound[0]!.path(address(1).split('/')[0]!, guarded.device.localPort);
  const onward = await guarded.settle(middle.host.dials.connect({ path, name: `device:${ids.productId}.${ids.deviceId}` }));
  const router = new Router<Session>();
  const passed: string[] = [];
  for (const each of [PasswordPath.FIRST, PasswordPath.SECOND, '/iam/pairing/password-open', '/iam/pairing/password-invite'])
    router.on('POST', each, async ({ payload, contentFormat }) => {
      passed.push(each);
      const answer = await onward.request({ method: 'POST', path: each, payload, ...(contentFormat !== undefined && { contentFormat }) });
      return { status: answer.status, contentFormat: 60, payload: answer.payload };
    });
  middle.host.onSession = (session) => {
    session.router = router;
  };
  const victim = await guarded.relayed();
  expect(victim.getDeviceFingerprint()).toBe(middle.host.fingerprint);
  expect(await guarded.login(victim, '', OPEN)).toBe('UNAUTHORIZED');
  expect(await pair(victim, 'password-open', { Username: 'anna' })).toBe(401);
  expect(await guarded.login(victim, 'guest', INVITE)).toBe('UNAUTHORIZED');
  expect(await pair(victim, 'password-invite')).toBe(401);
  expect(passed).toHaveLength(6);
  expect(victim.verified).toBe('none');
  expect(guarded.iam.users.map(({ username, fingerprints }) => [username, fingerprints.length])).toEqual([
    ['admin', 0],
    ['guest', 0],
  ]);
  expect(await guarded.login(await guarded.direct(), 'guest', INVITE)).toBe('OK');
});

test('a push test goes out through the base station, and returns the provider’s answer', { tags: ['slow'] }, async () => {
  const asked: HttpRequest[] = [];
  guarded = await GuardedDevice.make(options());
  await addProvider(guarded.station, (request) => {
    asked.push(request);
    return http(404, 'application/json', '{"error":{"status":"NOT_FOUND"}}');
  });
  await guarded.attach();
  const admin = await administrator();
  const test = () => guarded.request(admin, 'POST', '/iam/users/guest/push-test');
  expect(await test()).toBe(404);
  expect(await guarded.request(admin, 'PUT', '/iam/users/guest/push', { Token: 'token-of-phone', ProjectId: PROJECT })).toBe(204);
  const answer = await guarded.settle(admin.post('/iam/users/guest/push-test'));
  expect(answer.status).toBe(201);
  expect(decodePushAnswer(answer.bytes)).toEqual({ statusCode: 404, body: '{"error":{"status":"NOT_FOUND"}}' });
  expect(String(asked[0]?.body)).toContain('token-of-phone');
  guarded.station.kill();
  await guarded.fixture.until(guarded.under, 'DETACHED', 1, 200_000);
  expect(await test()).toBe(503);
  await guarded.station.start();
});
