/** What `svc device` shows at a terminal, and the invitation that it makes there until it has a user. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Writable } from 'node:stream';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { registration } from '../../cli/device-app/announce.ts';
import { DeviceData } from '../../cli/device-app/data.ts';
import { withInvitation } from '../../cli/device-app/first-invitation.ts';
import { type OpenDevice, openDevice } from '../../cli/device-app/open.ts';
import { type Heard, listenFirst, type Services, showStartScreen } from '../../cli/device-app/start-screen.ts';
import { Output } from '../../cli/frame/output.ts';
import { Device, type DeviceEvent } from '../../device/index.ts';
import { nodeEnvironment } from '../../platform/node/index.ts';
import { RemoteError } from '../../protocol/errors/index.ts';
import { decodePairing } from '../../protocol/records/index.ts';
import { svcInProcess } from '../e2e/in-process.ts';

const KEY = 'ab'.repeat(32);
const STATION = { server: 'https://station.example:4433', serverFingerprint: 'cd'.repeat(32) };
const ATTACHED: Heard = { event: 'ATTACHED', reason: null };
const NONE: Services = { tcpTunnels: [], udpTunnels: [] };
const WEB = { id: 'web', type: 'http', host: '127.0.0.1', port: 8080 };

let folder: string;
let data: string;
let out: string;
let code: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'svc-screen-'));
  data = join(folder, "Ann's device");
  out = '';
  code = '';
});
afterEach(() => rm(folder, { recursive: true }));

function terminal(stdoutIsTTY = true): Output {
  const sink = (take: (text: string) => void, isTTY: boolean) => {
    const stream = new Writable({
      write(chunk, _encoding, done) {
        take(String(chunk));
        done();
      },
    });
    return Object.assign(stream, { isTTY });
  };
  const stdout = sink((text) => {
    out += text;
  }, stdoutIsTTY);
  const stderr = sink((text) => {
    code += text;
  }, true);
  return new Output(false, { stdout, stderr });
}

/** A start at a terminal, without a network. */
async function opened(options: Partial<Parameters<typeof openDevice>[2]> = {}, output = terminal()): Promise<OpenDevice> {
  const environment = nodeEnvironment();
  const given = { product: 'pr', deviceId: 'de', iam: 'production' as const, ...options };
  const made = await openDevice(new Device({ environment }), await DeviceData.open(data), given, environment);
  await made.audit.close();
  await made.data.update();
  return withInvitation(made, output);
}

async function shown(device: OpenDevice, services = NONE, heard: Heard | null = ATTACHED): Promise<string[]> {
  out = '';
  code = '';
  await showStartScreen(terminal(), device, services, heard);
  const lines = out.trimEnd().split('\n');
  expect(lines.length).toBeLessThanOrEqual(12);
  return lines;
}

/** Makes a user. */
async function withUser(device: OpenDevice, role: string): Promise<OpenDevice> {
  await device.access.iam.update((draft) => draft.createUser('ann', { role, fingerprints: [{ fingerprint: KEY }] }));
  return device;
}

describe('the first screen', () => {
  test('has everything in twelve lines, with the string for the first user, and its code', { tags: ['slow'] }, async () => {
    const lines = await shown(await opened(STATION), { tcpTunnels: [WEB], udpTunnels: [{ ...WEB, id: 'names', type: 'dns' }] });
    expect(lines.slice(0, 6)).toEqual([
      'device       pr.de',
      'state        attached to https://station.example:4433, pinned by its fingerprint',
      expect.stringMatching(/^fingerprint {2}[0-9a-f]{64}$/),
      expect.stringMatching(/^reached at {3}.*5592.* on the local network; UDP port 5593 towards the base station$/),
      'services     web (http), names (dns over UDP)',
      'users        none yet',
    ]);
    expect(lines[6]).toBe('next         svc pair -');
    expect(decodePairing(lines.at(-1) ?? '')).toMatchObject({
      productId: 'pr',
      deviceId: 'de',
      server: 'station.example:4433',
      serverFingerprint: STATION.serverFingerprint,
      username: 'admin',
      password: expect.stringMatching(/^\w{12}$/),
    });
    expect(code.split('\n').length).toBeGreaterThan(20);
    expect(code.split('\n').length).toBeLessThanOrEqual(32);
  });

  test('without a base station names the addresses of the device', { tags: ['slow'] }, async () => {
    const lines = await shown(await opened(), NONE, null);
    expect(lines[1]).toMatch(/^state {8}running without a base station/);
    expect(lines[4]).toMatch(/--tunnel web=http:127\.0\.0\.1:8080/);
    expect(decodePairing(lines.at(-1) ?? '')).not.toHaveProperty('server');
  });

  test.each<[string, Heard | null, RegExp]>([
    ['no answer yet', null, /^state {8}not attached yet: https:\/\/station\.example:4433 has not answered so far/],
    [
      'a reason',
      { event: 'CERTIFICATE_VALIDATION_FAILED', reason: new RemoteError('FINGERPRINT_MISMATCH', 'another key') },
      /^state {8}not attached to https:\/\/station\.example:4433: CERTIFICATE_VALIDATION_FAILED: another key/,
    ],
  ])('explains why it is not attached: %s', { tags: ['slow'] }, async (_why, heard, line) => {
    expect((await shown(await opened(STATION), NONE, heard))[1]).toMatch(line);
  });

  test('of a device that the base station does not know has the lines that register it', { tags: ['slow'] }, async () => {
    const unknown = { event: 'UNKNOWN_FINGERPRINT', reason: null } as const;
    const device = await opened(STATION);
    const lines = await shown(device, NONE, unknown);
    expect(lines).toEqual(expect.arrayContaining([...registration(device.state, device.device.deviceFingerprint)]));
  });

  test('of a device with a user shows no code and no secret, and the next steps', async () => {
    const lines = await shown(await withUser(await opened(STATION), 'Administrator'), { ...NONE, tcpTunnels: [WEB] });
    expect(lines.slice(5)).toEqual([
      'users        ann (Administrator)',
      'next         svc tunnel web -d pr.de, on a client that is paired',
    ]);
    expect([code, out.includes('pwd=')]).toEqual(['', false]);
  });

  test('of a device without an administrator has the command that mends it, which works', { tags: ['slow'] }, async () => {
    const [line = ''] = (await shown(await withUser(await opened(STATION), 'Guest'))).slice(-1);
    expect(line).toMatch(/^next {9}it has no administrator: stop it, and {2}svc device invite admin --data 'S*/);
    const words = ['device', 'invite', 'admin', '--data', data];
    expect(line.endsWith(`svc device invite admin --data '${data.replaceAll("'", "'\\''")}'`)).toBe(true);
    expect(await svcInProcess(words)).toMatchObject({ code: 0, stdout: expect.stringMatching(/^admin is invited as Administrator$/m) });
  });

  test('of a device without a pairing mode shows how to enable one', async () => {
    const device = await opened(STATION);
    await device.access.iam.update((draft) => draft.setFlag('passwordInvitePairing', false));
    expect((await shown(device)).at(-1)).toMatch(
      /^next {9}no way to pair is on: stop it, and {2}svc device --pairing PasswordInvite --data /,
    );
  });
});

describe('the invitation of the first administrator', () => {
  const passwordOf = ({ access }: OpenDevice) => access.adminPassword;
  const verifierOf = async ({ access }: OpenDevice) => (await access.iam.passwordOf('admin')) as { value: Uint8Array };

  test('is made again at each start at a terminal, which voids the last', { tags: ['slow'] }, async () => {
    const first = await opened();
    const second = await opened();
    expect(passwordOf(second)).toMatch(/^\w{12}$/);
    expect(passwordOf(second)).not.toBe(passwordOf(first));
    expect((await verifierOf(second)).value).not.toEqual((await verifierOf(first)).value);
    expect((await verifierOf(await opened({}, terminal(false)))).value).toEqual((await verifierOf(second)).value);
  });

  test.each(['Administrator', 'Guest'])('is not made once there is a user, a %s', async (role) => {
    await withUser(await opened(), role);
    expect(passwordOf(await opened())).toBeUndefined();
  });

  test.each<[string, { isScreen?: boolean; OwnerInvited?: boolean; invites?: boolean; open?: boolean }]>([
    ['without a terminal', { isScreen: false }],
    ['when the owner has just made one', { OwnerInvited: true }],
    ['where anyone becomes an administrator', { open: true }],
    ['where it would be refused', { invites: false }],
  ])('is not made %s', async (_where, { isScreen = true, OwnerInvited = false, invites = true, open = false }) => {
    const iam = { users: [], state: { passwordInvitePairing: invites, localOpenPairing: open }, administers: () => true };
    const device = { access: { iam }, secrets: {}, state: { OwnerInvited } } as unknown as OpenDevice;
    expect(await withInvitation(device, { isScreen })).toBe(device);
  });

  test('is not voided when the owner has just made one, and the screen shows which string counts', { tags: ['slow'] }, async () => {
    await opened();
    const { code: status } = await svcInProcess(['device', 'invite', 'admin', '--data', data]);
    expect(status).toBe(0);
    const device = await opened();
    expect(passwordOf(device)).toBeUndefined();
    expect((await shown(device)).at(-1)).toMatch(
      /^next {9}svc pair - {2}on a client, with the string that {2}svc device invite admin --data .* printed here$/,
    );
  });
});

describe('the first news of the base station', () => {
  const listened = () => {
    let tell = (_event: DeviceEvent): void => {};
    const device = {
      onDeviceEvent: (listener: (event: DeviceEvent, reason: null) => void) => {
        tell = (event) => listener(event, null);
        return () => {
          tell = () => {};
        };
      },
    };
    let expire = (): void => {};
    let cancelled = false;
    const schedule = (_delay: number, run: () => void) => {
      expire = run;
      return () => {
        cancelled = true;
      };
    };
    const first = listenFirst(device as unknown as Device);
    const environment = { clock: { schedule } } as unknown as Parameters<typeof first>[0];
    return {
      tell: (event: DeviceEvent) => tell(event),
      first: () => first(environment),
      expire: () => expire(),
      cancelled: () => cancelled,
    };
  };

  test('is the first event, even one before it is awaited', async () => {
    const { tell, first, cancelled } = listened();
    tell('ATTACHED');
    tell('DETACHED');
    expect(await first()).toEqual({ event: 'ATTACHED', reason: null });
    expect(cancelled()).toBe(true);
  });

  test('is null after a while', async () => {
    const { first, expire } = listened();
    const heard = first();
    expire();
    expect(await heard).toBeNull();
  });
});
