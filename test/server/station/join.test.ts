/** Devices that join a base station by an invitation, in the simulator. */
import { beforeEach, describe, expect, test } from 'vitest';
import type { CoapResponse } from '../../../protocol/coap/index.ts';
import { DevicePath, decodeErrorBody, decodeJoinAnswer, encodeJoinRequest, type JoinRequest } from '../../../protocol/control/index.ts';
import { StationCode } from '../../../protocol/errors/index.ts';
import { LogTally } from '../../../runtime/log-tally.ts';
import { type Administration, inviteDevice, type NewInvitationRequest, revokeInvitation } from '../../../server/administration/index.ts';
import { JoinApi } from '../../../server/station/join-api.ts';
import { hashToken } from '../../../server/storage/secrets.ts';
import { ProductFixture } from '../../support/fixture/products.ts';
import { errorCode, type RawPeer } from '../../support/fixture/raw-peer.ts';
import type { StationUnderTest } from '../../support/fixture/station.ts';

const DAY = 86_400_000;

let fixture: ProductFixture;
let station: StationUnderTest;
let device: RawPeer;
let administration: Administration;

beforeEach(async () => {
  fixture = new ProductFixture();
  station = await fixture.station();
  device = await peer();
  administration = {
    store: station.store,
    sealer: () => Promise.reject(new Error('nothing is sealed')),
    wallTime: () => fixture.sim.wallTime,
    randomBytes: (length) => device.environment.crypto.randomBytes(length),
  };
});

async function peer(options: Parameters<ProductFixture['raw']['client']>[0] = {}): Promise<RawPeer> {
  const made = await fixture.raw.client(options);
  await made.open();
  return made;
}

async function invited(request: Partial<NewInvitationRequest> = {}): Promise<Uint8Array> {
  return (await inviteDevice(administration, { productId: 'pr-1', maker: 'test', ...request })).token;
}

function join(from: RawPeer, token: Uint8Array, request: Partial<JoinRequest> = {}): Promise<CoapResponse> {
  return from.request('POST', DevicePath.JOIN, encodeJoinRequest({ productId: 'pr-1', deviceId: null, token, ...request }));
}

const refusal = (response: CoapResponse) => [response.status, errorCode(response)];
const rejected = [401, StationCode.TOKEN_REJECTED];

describe('POST /device/join', () => {
  test('registers the key of the handshake, which then attaches on the same channel', async () => {
    const token = await invited();
    const response = await join(device, token);
    expect(response.status).toBe(201);
    const deviceId = decodeJoinAnswer(response.payload);
    expect(deviceId).toMatch(/^de-[a-z2-7]{8}$/);
    expect(await station.store.device('pr-1', deviceId)).toMatchObject({ fingerprint: device.host.fingerprint, organizationId: 'or-a' });
    expect((await device.attach({ productId: 'pr-1', deviceId })).status).toBe(201);
    expect(await station.store.invitations.find(hashToken(token))).toMatchObject({
      use: { deviceId, fingerprint: device.host.fingerprint, address: device.environment.addresses[0] },
    });
  });

  test('registers a key that attaches on a new channel, too', async () => {
    const deviceId = decodeJoinAnswer((await join(device, await invited())).payload);
    await fixture.sim.settle(device.channel.close());
    await device.open();
    expect((await device.attach({ productId: 'pr-1', deviceId })).status).toBe(201);
  });

  test.each([
    ['the invitation names the id', { deviceId: 'de-9' }, {}, 'de-9'],
    ['the device names the id', {}, { deviceId: 'de-7' }, 'de-7'],
    ['both name it', { deviceId: 'de-9' }, { deviceId: 'de-9' }, 'de-9'],
  ])('%s', async (_, request, given, expected) => {
    const response = await join(device, await invited(request), given);
    expect(decodeJoinAnswer(response.payload)).toBe(expected);
  });

  test('may be repeated by the same key until it expires, with the same answer', async () => {
    const token = await invited({ lifetime: 60_000 });
    const first = await join(device, token);
    const twin = await peer({ identity: device.identity });
    const again = await join(twin, token);
    expect([again.status, decodeJoinAnswer(again.payload)]).toEqual([201, decodeJoinAnswer(first.payload)]);
    expect(await station.store.devices('pr-1')).toHaveLength(1);
    await fixture.sim.run(60_000);
    const late = await peer({ identity: device.identity });
    expect(refusal(await join(late, token))).toEqual(rejected);
  });

  test('registers one device for two parallel requests of one key', { tags: ['slow'] }, async () => {
    const token = await invited();
    const twin = await peer({ identity: device.identity });
    const payload = encodeJoinRequest({ productId: 'pr-1', deviceId: null, token });
    const both = [device, twin].map(({ channel }) => channel.request({ method: 'POST', path: DevicePath.JOIN, payload }));
    const answers = await fixture.sim.settle(Promise.all(both));
    expect(answers.map(({ status }) => status)).toEqual([201, 201]);
    expect(new Set(answers.map((answer) => decodeJoinAnswer(answer.payload))).size).toBe(1);
    expect(await station.store.devices('pr-1')).toHaveLength(1);
  });

  test('rejects an unknown, expired, revoked or used token with the same message', async () => {
    const used = await invited();
    await join(device, used);
    const revoked = await invited();
    await revokeInvitation(administration, hashToken(revoked).slice(0, 12));
    const expired = await invited({ lifetime: 60_000 });
    await fixture.sim.run(61_000);
    const stranger = await peer();
    const answers = [];
    for (const token of [new Uint8Array(16), expired, revoked, used]) answers.push(await join(stranger, token));
    // Not even the product of an invalid token is revealed.
    answers.push(await join(stranger, used, { productId: 'pr-2' }));
    expect(answers.map(refusal)).toEqual(Array(5).fill(rejected));
    expect(new Set(answers.map(({ payload }) => decodeErrorBody(payload).message)).size).toBe(1);
    expect(await station.store.devices('pr-1')).toHaveLength(1);
  });

  test('rejects an invitation of more than 30 days, which was made while the clock was wrong', async () => {
    const { store, ...rest } = administration;
    const inAYear = { store, ...rest, wallTime: () => fixture.sim.wallTime + 365 * DAY };
    const { token } = await inviteDevice(inAYear, { productId: 'pr-1', maker: 'test' });
    expect(refusal(await join(device, token))).toEqual(rejected);
  });

  test('reports what does not match to the holder of a valid token, which stays open', async () => {
    await station.register({ productId: 'pr-1', deviceId: 'de-1' }, 'ab'.repeat(32));
    const token = await invited();
    expect(refusal(await join(device, token, { productId: 'pr-2' }))).toEqual([400, StationCode.WRONG_PRODUCT_ID]);
    expect(refusal(await join(device, token, { deviceId: 'de-1' }))).toEqual([409, StationCode.DEVICE_ID_IN_USE]);
    expect(refusal(await join(device, token, { deviceId: 'no id' }))).toEqual([400, StationCode.WRONG_DEVICE_ID]);
    const fixed = await invited({ deviceId: 'de-2' });
    expect(refusal(await join(device, fixed, { deviceId: 'de-3' }))).toEqual([400, StationCode.WRONG_DEVICE_ID]);
    expect((await join(device, fixed)).status).toBe(201);
    expect(refusal(await join(device, fixed, { deviceId: 'de-3' }))).toEqual([400, StationCode.WRONG_DEVICE_ID]);
    expect((await join(device, token)).status).toBe(201);
    expect(refusal(await join(device, token, { deviceId: 'de-4' }))).toEqual([400, StationCode.WRONG_DEVICE_ID]);
  });

  test('gives the key to a device that an operator added without one, if the invitation names it', async () => {
    await station.register({ productId: 'pr-1', deviceId: 'de-1' }, null);
    expect(refusal(await join(device, await invited(), { deviceId: 'de-1' }))).toEqual([409, StationCode.DEVICE_ID_IN_USE]);
    expect((await join(device, await invited({ deviceId: 'de-1' }))).status).toBe(201);
    expect((await station.store.device('pr-1', 'de-1'))?.fingerprint).toBe(device.host.fingerprint);
  });

  test('keeps the device of a key that is already registered', { tags: ['slow'] }, async () => {
    await station.register({ productId: 'pr-1', deviceId: 'de-1' }, device.host.fingerprint);
    expect(decodeJoinAnswer((await join(device, await invited(), { deviceId: 'de-1' })).payload)).toBe('de-1');
    expect(await station.store.devices('pr-1')).toHaveLength(1);
  });

  test('does not restore a removed device by its old invitation', async () => {
    const token = await invited({ deviceId: 'de-1' });
    await join(device, token);
    await station.store.removeDevice('pr-1', 'de-1');
    expect(refusal(await join(device, token))).toEqual(rejected);
    await station.register({ productId: 'pr-1', deviceId: 'de-1' }, 'ab'.repeat(32));
    expect(refusal(await join(device, token))).toEqual(rejected);
  });

  test('is 4.00 for an invalid body, and not available on an attached channel', async () => {
    expect((await device.request('POST', DevicePath.JOIN, new Uint8Array([0xa0]))).status).toBe(400);
    const token = await invited();
    await join(device, token, { deviceId: 'de-1' });
    await device.attach({ productId: 'pr-1', deviceId: 'de-1' });
    expect((await join(device, token)).status).toBe(404);
  });

  test('does not keep the session of a device open that does not attach', async () => {
    await join(device, await invited());
    await fixture.sim.run(6_000);
    expect(device.channel.isOpen).toBe(false);
  });

  test('is 5.03 when the disk takes no writes, and a later try succeeds', { tags: ['slow'] }, async () => {
    const token = await invited();
    const { redeem } = station.store.invitations;
    station.store.invitations.redeem = () => Promise.reject(new Error('database or disk is full'));
    const response = await join(device, token);
    expect([response.status, response.maxAge]).toEqual([503, 60]);
    expect(station.basestation.storageFailed).toBe(true);
    station.store.invitations.redeem = redeem;
    expect((await join(device, token)).status).toBe(201);
  });
});

describe('the rate', () => {
  test('of failures is ten a minute per address, then 4.29; a device with a valid token still joins from there', async () => {
    const token = await invited();
    for (let count = 0; count < 12; count++) expect((await join(device, token)).status).toBe(201);
    for (let count = 0; count < 10; count++) expect(refusal(await join(device, new Uint8Array(16)))).toEqual(rejected);
    const response = await join(device, new Uint8Array(16));
    expect([response.status, response.maxAge]).toEqual([429, 6]);
    expect((await join(device, token)).status).toBe(201);
    const elsewhere = await peer();
    expect(refusal(await join(elsewhere, new Uint8Array(16)))).toEqual(rejected);
    await fixture.sim.run(6_000);
    await fixture.sim.settle(device.channel.close());
    await device.open();
    expect(refusal(await join(device, new Uint8Array(16)))).toEqual(rejected);
    expect((await join(device, new Uint8Array(16))).status).toBe(429);
  });

  test('of successful joins is fifty at once per address, and five a second', async () => {
    const token = await invited();
    const { environment } = device;
    const tally = new LogTally(environment.clock, environment.log);
    const api = new JoinApi({
      environment,
      store: station.store,
      tally,
      health: { writeFailed: () => {} },
      steps: { look: async () => {} },
    });
    const payload = encodeJoinRequest({ productId: 'pr-1', deviceId: null, token });
    const context = (address: string) => ({ paths: { active: { address, key: `${address}:1` } }, peer: { fingerprint: 'ab'.repeat(32) } });
    const from = async (address: string) => (await api.join({ payload, context: context(address) } as never)).status;
    for (let count = 0; count < 50; count++) expect(await from('192.0.2.1')).toBe(201);
    expect(await from('192.0.2.1')).toBe(429);
    expect(await from('192.0.2.2')).toBe(201);
    await fixture.sim.run(1_000);
    for (let count = 0; count < 5; count++) expect(await from('192.0.2.1')).toBe(201);
    expect(await from('192.0.2.1')).toBe(429);
  });

  test('of the oldest address is forgotten when the table is full of failures, and the next address is served', {
    tags: ['slow'],
  }, async () => {
    const { environment } = device;
    const invitations = { ...station.store.invitations, find: async () => null };
    const store = { device: async () => null, invitations };
    const tally = new LogTally(environment.clock, environment.log);
    const api = new JoinApi({ environment, store, tally, health: { writeFailed: () => {} }, steps: { look: async () => {} } });
    const payload = encodeJoinRequest({ productId: 'pr-1', deviceId: null, token: new Uint8Array(16) });
    const from = async (number: number): Promise<number> => {
      const address = `10.${number >> 16}.${(number >> 8) & 255}.${number & 255}`;
      return (await api.join({ payload, context: { paths: { active: { address } } } } as never)).status;
    };
    for (let count = 0; count < 10; count++) expect(await from(0)).toBe(401);
    expect(await from(0)).toBe(429);
    for (let number = 1; number <= 20_000; number++) await from(number);
    expect(await from(30_000)).toBe(401);
    // The oldest begins again, which is no gain to an owner of that many addresses.
    expect(await from(0)).toBe(401);
    tally.flush();
  });
});
