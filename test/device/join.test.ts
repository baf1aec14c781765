/** A device that joins a base station by a join string, in virtual time. */
import { beforeEach, describe, expect, test } from 'vitest';
import { Device, type JoinOptions, type JoinResult, joinBaseStation } from '../../device/index.ts';
import { encodeJoinString } from '../../protocol/records/index.ts';
import {
  type Administration,
  invitations,
  inviteDevice,
  type NewInvitationRequest,
  revokeInvitation,
} from '../../server/administration/index.ts';
import type { SimulatedHost } from '../../testing/index.ts';
import { STATION_PORT } from '../support/fixture/identifiers.ts';
import { ProductFixture } from '../support/fixture/products.ts';
import type { StationUnderTest } from '../support/fixture/station.ts';
import { publishDocument } from '../support/fixture/station-document.ts';

const DAY = 86_400_000;
const privateKey = new Device().createPrivateKey();
const otherKey = new Device().createPrivateKey();

let fixture: ProductFixture;
let station: StationUnderTest;
let board: SimulatedHost;
let administration: Administration;
beforeEach(async () => {
  fixture = new ProductFixture();
  station = await fixture.station();
  board = fixture.host('board', { machine: 'board' });
  administration = {
    store: station.store,
    sealer: () => Promise.reject(new Error('nothing is sealed')),
    wallTime: () => fixture.sim.wallTime,
    randomBytes: (length) => board.crypto.randomBytes(length),
  };
});

/** A join string of a fresh invitation. */
async function invited(request: Partial<NewInvitationRequest> = {}, server = `station:${STATION_PORT}`, pinned = true): Promise<string> {
  const { token } = await inviteDevice(administration, { productId: 'pr-1', maker: 'test', ...request });
  const { deviceId } = request;
  return encodeJoinString({
    server,
    productId: 'pr-1',
    token,
    ...(pinned && { serverFingerprint: station.fingerprint }),
    ...(typeof deviceId === 'string' && { deviceId }),
  });
}

const join = (joinString: string, options: Partial<JoinOptions> = {}): Promise<JoinResult> =>
  fixture.settle(joinBaseStation({ environment: board, joinString, privateKey, ...options }));
const refusal = (joining: Promise<JoinResult>): Promise<string> =>
  joining.then(
    ({ deviceId }) => deviceId,
    ({ code }: { code: string }) => code,
  );

/** Returns whether the device that it became attaches. */
async function attaches(joined: JoinResult, key = privateKey): Promise<boolean> {
  const under = await fixture.device({ environment: board, registered: false, privateKey: key, ...joined });
  await fixture.start(under);
  await fixture.sim.run(() => under.events.length > 0);
  return under.events[0] === 'ATTACHED';
}

describe('a join', () => {
  test('makes the key a device’s, which attaches with the result', { tags: ['slow'] }, async () => {
    const joined = await join(await invited());
    expect(joined).toEqual({
      productId: 'pr-1',
      deviceId: expect.stringMatching(/^de-/),
      serverUrl: `https://station:${STATION_PORT}`,
      serverFingerprint: station.fingerprint,
    });
    expect(await attaches(joined)).toBe(true);
  });

  test.each<[string, Partial<NewInvitationRequest>, Partial<JoinOptions>]>([
    ['of the join string', { deviceId: 'de-9' }, {}],
    ['that is given', {}, { deviceId: 'de-9' }],
    ['of both', { deviceId: 'de-9' }, { deviceId: 'de-9' }],
  ])('takes the device id %s', async (_whose, request, options) => {
    expect((await join(await invited(request), options)).deviceId).toBe('de-9');
  });

  test('uses a WebSocket where UDP is blocked', { tags: ['slow'] }, async () => {
    fixture.sim.block(board, 'udp');
    expect(await attaches(await join(await invited()))).toBe(true);
  });

  test('can be repeated by the same key, and by no other', { tags: ['slow'] }, async () => {
    const joinString = await invited();
    const joined = await join(joinString);
    expect(await join(joinString)).toEqual(joined);
    expect(await refusal(join(joinString, { privateKey: otherKey }))).toBe('TOKEN_REJECTED');
  });

  test('uses another address of the base station, if one is given', { tags: ['slow'] }, async () => {
    const joinString = await invited({}, 'nowhere.invalid:4433');
    expect(await refusal(join(joinString))).toBe('DNS');
    const joined = await join(joinString, { serverUrl: 'https://station' });
    expect(joined.serverUrl).toBe('https://station');
    expect(await attaches(joined)).toBe(true);
  });

  test('is authenticated by TLS where the join string has no fingerprint', { tags: ['slow'] }, async () => {
    publishDocument(fixture);
    const joined = await join(await invited({}, undefined, false));
    expect(joined).not.toHaveProperty('serverFingerprint');
    expect(await attaches(joined)).toBe(true);
  });

  test('does not depend on the time: a board whose clock is a year off joins', async () => {
    board.setWallTime(fixture.sim.wallTime - 365 * DAY);
    expect(await attaches(await join(await invited()))).toBe(true);
  });
});

describe('a join is refused', () => {
  test('when the invitation has expired', { tags: ['slow'] }, async () => {
    const joinString = await invited({ lifetime: 3_600_000 });
    await fixture.sim.run(2 * 3_600_000);
    expect(await refusal(join(joinString))).toBe('TOKEN_REJECTED');
  });

  test('when the device id is taken, or is not that of the invitation', async () => {
    await join(await invited({ deviceId: 'de-9' }));
    expect(await refusal(join(await invited(), { deviceId: 'de-9', privateKey: otherKey }))).toBe('DEVICE_ID_IN_USE');
    expect(await refusal(join(await invited({ deviceId: 'de-8' }), { deviceId: 'de-7' }))).toBe('INVALID_ARGUMENT');
    expect(await refusal(join(await invited(), { deviceId: 'a b' }))).toBe('INVALID_ARGUMENT');
  });

  test('at a base station other than that of the join string, which does not see the token', async () => {
    const other = encodeJoinString({
      server: `station:${STATION_PORT}`,
      serverFingerprint: 'ab'.repeat(32),
      productId: 'pr-1',
      token: new Uint8Array(16),
    });
    expect(await refusal(join(other))).toBe('FINGERPRINT_MISMATCH');
  });

  test('when the invitation was revoked', { tags: ['slow'] }, async () => {
    const joinString = await invited();
    const [invitation] = await invitations(administration);
    await revokeInvitation(administration, invitation?.invitationId ?? '');
    expect(await refusal(join(joinString))).toBe('TOKEN_REJECTED');
  });

  test('when no base station answers', async () => {
    fixture.host('quiet', { machine: 'quiet' });
    expect(await refusal(join(await invited({}, 'quiet:4433')))).toBe('CONNECTION_REFUSED');
  });

  test('when roots are given that have no effect', async () => {
    expect(await refusal(join(await invited(), { rootCerts: 'PEM' }))).toBe('INVALID_ARGUMENT');
  });
});

test('a stopped join ends at once, and leaves nothing open', async () => {
  fixture.host('quiet', { machine: 'quiet' });
  const joinString = await invited({}, 'quiet:4433');
  const stop = new AbortController();
  const before = fixture.sim.now;
  const joining = join(joinString, { signal: stop.signal });
  fixture.sim.at(fixture.sim.now + 500, 0, () => stop.abort());
  expect(await refusal(joining)).toBe('STOPPED');
  expect(fixture.sim.now - before).toBeLessThan(2_000);
});
