/** Invitations as a command or a dashboard makes them. The test sets time and randomness. */
import { beforeEach, expect, test } from 'vitest';
import {
  type Administration,
  invitations,
  inviteDevice,
  type NewInvitationRequest,
  revokeInvitation,
  revokeInvitationsOf,
} from '../../../server/administration/index.ts';
import { hashToken } from '../../../server/storage/secrets.ts';
import { MemoryStore } from '../storage/memory-store.ts';

const DAY = 86_400_000;
const fingerprint = 'ab'.repeat(32);
let now: number;
let counter: number;
let store: MemoryStore;
let administration: Administration;

beforeEach(() => {
  now = Date.parse('2026-01-02T00:00:00.000Z');
  counter = 0;
  store = new MemoryStore();
  administration = {
    store,
    sealer: () => Promise.reject(new Error('nothing is sealed')),
    wallTime: () => now,
    randomBytes: (length) => {
      counter++;
      return Uint8Array.from({ length }, (_, index) => (counter >> (8 * (index & 1))) & 255);
    },
  };
});

const invite = (request: Partial<NewInvitationRequest> = {}) => inviteDevice(administration, { maker: 'ann', ...request });

test('the first invitation creates organization and product, and its token is not stored', async () => {
  const { invitation, token, productMade } = await invite();
  expect(productMade).toBe(true);
  expect(invitation).toEqual({
    invitationId: hashToken(token).slice(0, 12),
    productId: 'pr-home',
    deviceId: null,
    expires: '2026-01-03T00:00:00.000Z',
    maker: 'ann',
    created: '2026-01-02T00:00:00.000Z',
    revoked: false,
    use: null,
  });
  expect((await invite()).productMade).toBe(false);
  expect((await invite({ productId: 'pr-1', lifetime: 30 * DAY })).invitation).toMatchObject({
    productId: 'pr-1',
    expires: '2026-02-01T00:00:00.000Z',
  });
  expect(await store.products()).toHaveLength(2);
});

test.each<[string, Partial<NewInvitationRequest>]>([
  ['less than a minute', { lifetime: 59_999 }],
  ['more than 30 days', { lifetime: 30 * DAY + 1 }],
  ['no number', { lifetime: Number.NaN }],
  ['no product id', { productId: 'no id' }],
  ['no device id', { productId: 'pr-1', deviceId: 'no id' }],
  ['ids that are too long together', { productId: 'p'.repeat(59), deviceId: 'de-1' }],
  ['no room for a generated id', { productId: 'p'.repeat(52) }],
])('an invitation with %s is refused, and nothing is created', async (_, request) => {
  await expect(invite(request)).rejects.toMatchObject({ code: 'INVALID_ARGUMENT', refusal: { kind: 'invalid' } });
  expect([await store.products(), await store.invitations.all()]).toEqual([[], []]);
});

test('the refusal names some of many products', async () => {
  for (let number = 1; number <= 7; number++) await invite({ productId: `pr-${number}` });
  await expect(invite()).rejects.toMatchObject({
    refusal: { kind: 'several-products' },
    message: 'there are several products, pr-1, pr-2, pr-3, pr-4, pr-5 and 2 more',
  });
});

test('a product with the most open invitations refuses one more until one is revoked', { tags: ['slow'] }, async () => {
  for (let count = 0; count < 1_000; count++) await invite();
  await expect(invite()).rejects.toMatchObject({ refusal: { kind: 'too-many' }, message: 'product pr-home has 1000 open invitations' });
  await invite({ productId: 'pr-other' });
  const [first] = await invitations(administration);
  await revokeInvitation(administration, first!.invitationId);
  await invite({ productId: 'pr-home' });
  now += DAY;
  await invite({ productId: 'pr-home' });
  expect(await invitations(administration)).toHaveLength(1);
});

test('used invitations are listed for 30 days', async () => {
  const { token } = await invite();
  const use = { deviceId: 'de-1', fingerprint, address: '192.0.2.1', time: new Date(now).toISOString() };
  await store.invitations.redeem({ tokenHash: hashToken(token), ...use });
  now += 30 * DAY;
  expect(await invitations(administration)).toMatchObject([{ use }]);
  now += 1;
  expect(await invitations(administration)).toEqual([]);
});

test('an open invitation is revoked by digits that only it has', async () => {
  const { token, invitation } = await invite();
  const { invitationId } = invitation;
  await expect(revokeInvitation(administration, invitationId.slice(0, 5))).rejects.toMatchObject({ refusal: { kind: 'invalid' } });
  await expect(revokeInvitation(administration, '0'.repeat(64))).rejects.toMatchObject({
    refusal: { kind: 'not-found', record: 'invitation' },
  });
  expect(await revokeInvitation(administration, hashToken(token).toUpperCase())).toBe(invitationId);
  const { token: used, invitation: second } = await invite();
  await store.invitations.redeem({
    tokenHash: hashToken(used),
    deviceId: 'de-1',
    fingerprint,
    address: '192.0.2.1',
    time: new Date(now).toISOString(),
  });
  await expect(revokeInvitation(administration, second.invitationId)).rejects.toMatchObject({
    refusal: { kind: 'used', productId: 'pr-home', deviceId: 'de-1' },
  });
  const twin = { ...second, tokenHash: hashToken(used).slice(0, 8).padEnd(64, '0'), deviceId: null };
  await store.invitations.add(twin, 10);
  await expect(revokeInvitation(administration, second.invitationId.slice(0, 8))).rejects.toThrow(
    /2 invitations begin with .*: give more digits/,
  );
});

test('the invitations of one maker are revoked, and others stay', async () => {
  for (const maker of ['svc basestation', 'ann']) await invite({ maker });
  await revokeInvitationsOf(administration, 'svc basestation');
  expect((await invitations(administration)).map(({ maker, revoked }) => [maker, revoked])).toEqual([
    ['svc basestation', true],
    ['ann', false],
  ]);
});
