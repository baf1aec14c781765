/** What `svc device` keeps of its base station from one start to the next, and what the options replace. */
import { readdir, writeFile } from 'node:fs/promises';
import { beforeEach, describe, expect, test, vi } from 'vitest';
import { DeviceData, type DeviceState } from '../../cli/device-app/data.ts';
import { type IdentityOptions, identify } from '../../cli/device-app/identity.ts';
import { forgetOnceAttached } from '../../cli/device-app/join.ts';
import { NO_FINGERPRINT } from '../../cli/frame/arguments.ts';
import { describe as described } from '../../cli/frame/errors.ts';
import { Output } from '../../cli/frame/output.ts';
import { Device, type DeviceEvent } from '../../device/index.ts';
import { eventually } from '../support/eventually.ts';
import { PEM_OF_ROOT } from '../support/fixture/station-document.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';

const [OLD, NEW] = ['https://old:4433', 'https://new:4433'];
const [KEY, OTHER_KEY] = ['ab'.repeat(32), 'cd'.repeat(32)];
const WEB_SOCKET = 'wss://old/svc';

let directory: string;
beforeEach(() => {
  directory = temporaryDirectory();
});

/** A start with these options, after one that left this behind. */
async function start(kept: Partial<DeviceState>, options: IdentityOptions): Promise<DeviceState> {
  const data = await DeviceData.open(directory);
  data.adopt({ ProductId: 'pr', DeviceId: 'de', ...kept });
  return (await identify(new Device(), data, options)).state;
}
const refusal = (kept: Partial<DeviceState>, options: IdentityOptions): Promise<string> =>
  start(kept, options).then(() => 'taken', described);

describe('a pinned base station', () => {
  const kept: Partial<DeviceState> = { ServerUrl: OLD, ServerFingerprint: KEY, ServerWebSocketUrl: WEB_SOCKET, Joined: true };

  test('stays pinned at another address, and what belongs to the old address is dropped', async () => {
    expect(await start(kept, { server: NEW })).toMatchObject({
      ServerUrl: NEW,
      ServerFingerprint: KEY,
      ServerWebSocketUrl: undefined,
      Joined: true,
    });
  });

  test('is another one when another fingerprint is given: the device did not join that one', async () => {
    expect(await start(kept, { server: NEW, serverFingerprint: OTHER_KEY })).toMatchObject({
      ServerUrl: NEW,
      ServerFingerprint: OTHER_KEY,
      Joined: undefined,
    });
  });

  test.each([
    ['at its address', {}, { ServerUrl: OLD, Joined: true }],
    ['at another address', { server: NEW }, { ServerUrl: NEW, Joined: undefined }],
  ])('is authenticated by TLS %s only when that is requested', async (_, options, state) => {
    const rootCerts = PEM_OF_ROOT;
    expect(await start(kept, { ...options, serverFingerprint: NO_FINGERPRINT })).toMatchObject({ ...state, ServerFingerprint: undefined });
    expect(await start(kept, { ...options, serverFingerprint: NO_FINGERPRINT, rootCerts })).toMatchObject({ ServerRootCerts: rootCerts });
    expect(await refusal(kept, { ...options, rootCerts })).toMatch(/pinned by its fingerprint.+--server-fingerprint none/);
  });
});

test('a device keeps its identity', async () => {
  const kept = { ServerUrl: OLD, ServerFingerprint: KEY, Joined: true };
  for (const other of [{ deviceId: 'other' }, { product: 'other' }])
    expect(await refusal(kept, other)).toMatch(/is already the device pr\.de: give a new directory/);
  expect(await start(kept, { product: 'pr', deviceId: 'de' })).toMatchObject({ ProductId: 'pr', Joined: true });
});

test('roots belong to an address', async () => {
  const kept = { ServerUrl: OLD, ServerRootCerts: PEM_OF_ROOT };
  expect(await start(kept, {})).toMatchObject({ ServerUrl: OLD, ServerRootCerts: PEM_OF_ROOT });
  expect(await start(kept, { server: NEW })).toMatchObject({ ServerUrl: NEW, ServerRootCerts: undefined, ServerFingerprint: undefined });
});

test('without a base station, options about one are refused', async () => {
  expect(await refusal({}, { serverFingerprint: KEY })).toMatch(/--server-fingerprint needs --server/);
  expect(await refusal({}, { serverWebsocket: WEB_SOCKET })).toMatch(/--server-websocket needs --server/);
});

test('the join string is kept until the device is attached', async () => {
  const data = await DeviceData.open(directory);
  await writeFile(data.joinFile, '');
  const stop = vi.fn();
  const onDeviceEvent = vi.fn((_listener: (event: DeviceEvent) => void) => stop);
  forgetOnceAttached({ onDeviceEvent } as unknown as Device, data, new Output(false));
  const tell = onDeviceEvent.mock.lastCall![0];
  tell('DETACHED');
  expect([stop.mock.calls, await readdir(directory)]).toEqual([[], expect.arrayContaining(['join.json'])]);
  tell('ATTACHED');
  expect(stop).toHaveBeenCalledOnce();
  await eventually(async () => expect(await readdir(directory)).not.toContain('join.json'));
});
