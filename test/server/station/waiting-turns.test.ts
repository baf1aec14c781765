/** More clients wait for a device than may connect at once. Individual timers would all trigger one another. */
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { nodeEnvironment } from '../../../platform/node/index.ts';
import { Status } from '../../../protocol/coap/index.ts';
import { CONTENT_FORMAT_CBOR, encodeConnectRequest, encodeP2pConnectAnswer } from '../../../protocol/control/index.ts';
import { LogTally } from '../../../runtime/log-tally.ts';
import type { Session } from '../../../runtime/session/index.ts';
import { ClientApi } from '../../../server/station/client-api.ts';
import { Presence } from '../../../server/station/presence.ts';
import { defaultSettings } from '../../../server/station/settings.ts';
import { hashSecret } from '../../../server/storage/secrets.ts';
import { openSqliteStore } from '../../../server/storage/sqlite.ts';
import type { Store } from '../../../server/storage/store.ts';
import { ids } from '../../support/fixture/identifiers.ts';

const RATE = defaultSettings.connectsPerDevice;
const created = '2026-01-01T00:00:00.000Z';

let store: Store;
/** Statuses of the notifications to the clients. */
let statuses: number[];
let lookups: number;
let api: ClientApi;
let presence: Presence;

beforeEach(async () => {
  // Not the simulator: Node runs promise callbacks between two timers of the same instant.
  vi.useFakeTimers();
  [statuses, lookups] = [[], 0];
  store = await openSqliteStore(':memory:');
  await store.addOrganization({ organizationId: 'or-a', name: null, created });
  await store.addProduct({ productId: ids.productId, organizationId: 'or-a', name: null, created });
  await store.addDevice({ ...ids, name: null, fingerprint: null, created });
  const app = { appId: 'ap-a', organizationId: 'or-a', name: null, authType: 'NONE', jwt: null, productIds: null, created } as const;
  await store.addApp({ ...app, keyHash: hashSecret('sk-a') });
  const end = { id: new Uint8Array(8), resetToken: new Uint8Array(16) };
  const relay = { open: () => ({ ...end, other: end }), close: () => {} };
  const environment = nodeEnvironment();
  presence = new Presence();
  api = new ClientApi({
    environment,
    store,
    settings: { ...defaultSettings, connectsPerAddress: 1_000 },
    directory: {
      locate: (device) => {
        lookups++;
        return presence.locate(device);
      },
    },
    relay: relay as never,
    stun: [],
    tally: new LogTally(environment.clock, environment.log),
    tokens: null as never,
    onAdmitted: () => true,
  });
});

afterEach(async () => {
  vi.useRealTimers();
  await store.close();
});

function request(session: Session, exchange: number) {
  const payload = encodeConnectRequest({ ...ids, serverKey: 'sk-a', wait: true });
  return api.connect({ context: session, exchange, observe: true, contentFormat: CONTENT_FORMAT_CBOR, payload } as never);
}

function client(address: string): Session {
  const notify = (_: number, { status }: { status: number }) => statuses.push(status) > 0;
  return { isOpen: true, paths: { active: { address, port: 1, key: address } }, notify } as never;
}

/** Attaches a device with this answer to each `/p2p/connect`. */
function attach(answer: object): void {
  const session = { isOpen: true, request: () => Promise.resolve(answer) } as never;
  presence.add({ ...ids, session, since: 0 });
  api.attached(ids);
}

const CONNECTED = { status: Status.CREATED, payload: encodeP2pConnectAnswer({ respond: new Uint8Array(8) }) };

test('forty waiting clients get their turns, a few a second, and each is checked once', async () => {
  for (let i = 0; i < 40; i++) await request(client(`10.0.${i}.1`), 1);
  expect(api.stats().waiting).toBe(40);
  lookups = 0;
  attach(CONNECTED);
  await vi.advanceTimersByTimeAsync(0);
  // They share one timer.
  expect(vi.getTimerCount()).toBe(1);
  await vi.advanceTimersByTimeAsync(3_000);
  expect(statuses.length).toBeGreaterThanOrEqual(3 * RATE);
  expect(lookups).toBe(statuses.length);
  await vi.advanceTimersByTimeAsync(20_000);
  expect(statuses).toEqual(Array(40).fill(Status.CREATED));
  expect(lookups).toBe(40);
  expect([api.stats().waiting, api.connects.ofDevice(ids)]).toEqual([0, undefined]);
});

test('clients that waited for a device that is busy are notified, each once', async () => {
  const session = client('10.0.0.1');
  for (let exchange = 0; exchange < 16; exchange++) await request(session, exchange);
  lookups = 0;
  attach({ status: Status.TOO_MANY_REQUESTS, payload: new Uint8Array(0), maxAge: 0 });
  await vi.advanceTimersByTimeAsync(10_000);
  expect(statuses).toEqual(Array(16).fill(Status.TOO_MANY_REQUESTS));
  expect(lookups).toBe(16);
  expect(vi.getTimerCount()).toBe(0);
});

test('a client that cancels its request while it is checked no longer waits, and gets no answer', async () => {
  const session = client('10.0.0.1');
  const answered = request(session, 7);
  api.connects.cancelled(session, 7);
  await answered;
  expect([lookups, api.stats().waiting]).toEqual([0, 0]);
});

test.each([
  ['checked', () => vi.spyOn(store, 'product')],
  ['located', () => vi.spyOn(presence, 'locate')],
] as const)('a client that has waited, and cancels while it is %s, gets no answer', async (_, spy) => {
  const session = client('10.0.0.1');
  await request(session, 8);
  const step = spy().mockImplementationOnce(async () => {
    api.connects.cancelled(session, 8);
    return null;
  });
  attach(CONNECTED);
  await vi.advanceTimersByTimeAsync(1_000);
  expect(step).toHaveBeenCalledOnce();
  expect([statuses, api.stats().waiting]).toEqual([[], 0]);
});

test('a client that cannot be served after waiting learns that, and the next one is served', async () => {
  await request(client('10.0.0.1'), 1);
  const failing = vi.spyOn(store, 'product').mockRejectedValueOnce(new Error('disk I/O error'));
  attach(CONNECTED);
  await vi.advanceTimersByTimeAsync(1_000);
  expect(failing).toHaveBeenCalledOnce();
  expect([statuses, api.connects.ofDevice(ids)]).toEqual([[Status.INTERNAL_SERVER_ERROR], undefined]);
  expect(await request(client('10.0.0.2'), 1)).toMatchObject({ status: Status.CREATED });
});
