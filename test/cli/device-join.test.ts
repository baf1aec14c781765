/** `svc device --join`: the disk at each moment, what a start finds there, and the message when the join fails. */
import { mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Writable } from 'node:stream';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { DeviceData } from '../../cli/device-app/data.ts';
import { type IdentityOptions, identify } from '../../cli/device-app/identity.ts';
import { forgetOnceAttached, joinFirst } from '../../cli/device-app/join.ts';
import { givenJoin, parseJoin } from '../../cli/device-app/join-string.ts';
import { savePendingJoin } from '../../cli/device-app/pending-join.ts';
import { describe as described } from '../../cli/frame/errors.ts';
import { Output } from '../../cli/frame/output.ts';
import { Device, joinBaseStation } from '../../device/index.ts';
import { RemoteError } from '../../protocol/errors/index.ts';
import { encodeJoinString, encodePairingLink, encodePairingString, type JoinString } from '../../protocol/records/index.ts';
import { inviteDevice, type NewInvitationRequest } from '../../server/administration/index.ts';
import type { SimulatedHost } from '../../testing/index.ts';
import { eventually } from '../support/eventually.ts';
import { ProductFixture } from '../support/fixture/products.ts';
import type { StationUnderTest } from '../support/fixture/station.ts';
import { publishDocument } from '../support/fixture/station-document.ts';

let fixture: ProductFixture;
let station: StationUnderTest;
let board: SimulatedHost;
let directory: string;
let printed: string;
beforeEach(async () => {
  fixture = new ProductFixture();
  station = await fixture.station();
  board = fixture.host('board', { machine: 'board' });
  directory = await mkdtemp(join(tmpdir(), 'svc-join-'));
  printed = '';
});
afterEach(() => rm(directory, { recursive: true }));

const sink = () =>
  new Writable({
    write(chunk, _encoding, done) {
      printed += chunk;
      done();
    },
  });
const output = () => new Output(false, { stdout: sink(), stderr: sink() });

async function invited(more: Partial<JoinString> = {}, request: Partial<NewInvitationRequest> = {}): Promise<string> {
  const { store } = station;
  const { token } = await inviteDevice(
    {
      store,
      sealer: () => Promise.reject(new Error('nothing is sealed')),
      wallTime: () => fixture.sim.wallTime,
      randomBytes: (length) => board.crypto.randomBytes(length),
    },
    { productId: 'pr-1', maker: 'test', ...request },
  );
  return encodeJoinString({ server: 'station:4433', serverFingerprint: station.fingerprint, productId: 'pr-1', token, ...more });
}

/** A start of the command, up to where the device would start. */
async function start(text?: string, options: IdentityOptions = {}): Promise<{ data: DeviceData; device: Device }> {
  const data = await DeviceData.open(directory);
  const device = new Device({ environment: board });
  const { signal } = new AbortController();
  const given = text === undefined ? undefined : parseJoin(text);
  // Time advances only while the network is awaited, never while the disk is.
  const joinStation: typeof joinBaseStation = (joining) => fixture.settle(joinBaseStation(joining));
  await joinFirst({ device, data, environment: board, output: output(), signal, joinStation }, given, options);
  return { data, device };
}
const refusal = (text?: string, options?: IdentityOptions): Promise<string> => start(text, options).then(() => 'joined', described);

/** Continues where `start` ended, until the device is attached. @returns its fingerprint */
async function attach({ data, device }: { data: DeviceData; device: Device }): Promise<string> {
  await identify(device, data, {});
  const events: string[] = [];
  device.onDeviceEvent((event) => events.push(event));
  forgetOnceAttached(device, data, output());
  await fixture.settle(device.start());
  fixture.ends(() => device.close());
  await fixture.sim.run(() => events.length > 0);
  expect(events).toEqual(['ATTACHED']);
  await eventually(async () => expect(await files()).not.toContain('join.json'));
  return device.deviceFingerprint;
}
const files = async (): Promise<string[]> => (await readdir(directory)).sort();

test('a board joins, attaches, and forgets the join string', { tags: ['slow'] }, async () => {
  const joined = await start(await invited());
  expect(printed).toMatch(/^joined https:\/\/station:4433 as pr-1\.de-/);
  expect(await files()).toEqual(['files', 'join.json', 'key.pem', 'state.json']);
  for (const name of ['join.json', 'key.pem', 'state.json'])
    expect([name, (await stat(join(directory, name))).mode & 0o777]).toEqual([name, 0o600]);
  await attach(joined);
  expect(await files()).toEqual(['files', 'key.pem', 'state.json']);
  expect(await readFile(join(directory, 'state.json'), 'utf8')).not.toContain('svc://');
});

test('each choice is passed on to the base station, and kept for later starts', async () => {
  const data = await DeviceData.open(directory);
  const options = { deviceId: 'de-9', server: 'https://other:4433', rootCerts: 'PEM', serverWebsocket: 'wss://other/ws' };
  const { serverFingerprint: _, ...unpinned } = parseJoin(await invited({ server: 'other:4433' })).join;
  const given = parseJoin(encodeJoinString(unpinned));
  const asked: unknown[] = [];
  const joinStation: typeof joinBaseStation = async ({ deviceId, serverUrl, rootCerts, serverWebSocketUrl }) => {
    asked.push({ deviceId, serverUrl, rootCerts, serverWebSocketUrl });
    return { productId: 'pr-1', deviceId: 'de-9', serverUrl: 'https://other:4433', serverFingerprint: 'ab'.repeat(32) };
  };
  const signal = new AbortController().signal;
  await joinFirst({ device: new Device(), data, environment: board, output: output(), signal, joinStation }, given, options);
  expect(asked).toEqual([{ deviceId: 'de-9', serverUrl: 'https://other:4433', rootCerts: 'PEM', serverWebSocketUrl: 'wss://other/ws' }]);
  expect(data.state).toMatchObject({ ServerRootCerts: 'PEM', ServerWebSocketUrl: 'wss://other/ws' });
});

describe('killed', () => {
  type Step = 'key' | 'string' | 'answer' | 'state';
  /** Leaves behind what a process that is killed after a step leaves. */
  async function killedAfter(last: Step, text: string): Promise<void> {
    const data = await DeviceData.open(directory);
    const privateKey = await data.privateKey(() => new Device().createPrivateKey());
    if (last === 'key') return;
    await savePendingJoin(data.joinFile, { text, choices: { deviceId: 'de-7' } });
    if (last === 'string') return;
    const joined = await fixture.settle(joinBaseStation({ environment: board, joinString: text, privateKey, deviceId: 'de-7' }));
    if (last === 'answer') return;
    const { productId: ProductId, deviceId: DeviceId, serverUrl: ServerUrl, serverFingerprint: ServerFingerprint } = joined;
    await data.update({ ProductId, DeviceId, ServerUrl, ServerFingerprint });
  }
  const keyOf = () => readFile(join(directory, 'key.pem'), 'utf8');

  test.each<[Step, boolean]>([
    ['key', true],
    ['string', true],
    ['string', false],
    ['answer', true],
    ['answer', false],
    ['state', true],
    ['state', false],
  ])('after the %s: a start finishes it, given the join string again: %s', async (step, again) => {
    const text = await invited();
    await killedAfter(step, text);
    const key = await keyOf();
    const fingerprint = await attach(await start(again ? text : undefined));
    expect(await keyOf()).toBe(key);
    const deviceId = JSON.parse(await readFile(join(directory, 'state.json'), 'utf8')).DeviceId;
    if (step !== 'key') expect(deviceId).toBe('de-7');
    expect((await station.store.device('pr-1', deviceId))?.fingerprint).toBe(fingerprint);
  });
});

describe('a board that is already a device', () => {
  test('keeps its identity when it is given the same join string', { tags: ['slow'] }, async () => {
    const text = await invited();
    await start(text);
    const before = await readFile(join(directory, 'state.json'), 'utf8');
    await start(text);
    expect(await readFile(join(directory, 'state.json'), 'utf8')).toBe(before);
  });

  test.each<[string, Partial<JoinString>]>([
    ['product', { productId: 'pr-2' }],
    ['device id', { deviceId: 'de-other' }],
    ['base station', { serverFingerprint: 'ab'.repeat(32) }],
  ])('does not become a device of another %s', async (_what, other) => {
    await start(await invited());
    const before = await readFile(join(directory, 'state.json'), 'utf8');
    expect(await refusal(await invited(other))).toMatch(/is already the device pr-1\.de-\S+ of https:\/\/station:4433: .* --data/);
    expect(await readFile(join(directory, 'state.json'), 'utf8')).toBe(before);
  });
});

describe('a failed join gives a remedy, and a second try works:', () => {
  test('a join string that was used, revoked or has expired is not tried again', async () => {
    const text = await invited();
    const privateKey = new Device().createPrivateKey();
    await fixture.settle(joinBaseStation({ environment: board, joinString: text, privateKey }));
    expect(await refusal(text)).toMatch(
      /expired, was revoked or was used by another device\. Ask for a new one: svc admin device invite pr-1$/,
    );
    expect(await files()).toEqual(['files', 'key.pem']);
    await attach(await start(await invited()));
  });

  test('a base station that does not answer at the address of the join string', { tags: ['slow'] }, async () => {
    fixture.host('quiet', { machine: 'quiet' });
    const text = await invited({ server: 'quiet:4433' });
    expect(await refusal(text)).toMatch(/https:\/\/quiet:4433 was tried\. .* another address with --server \(the join string is kept/);
    const joined = await start(undefined, { server: 'https://station:4433' });
    expect(joined.data.state).toMatchObject({ ServerUrl: 'https://station:4433' });
    await attach(joined);
  });

  test('another base station at that address', { tags: ['slow'] }, async () => {
    const text = await invited({ serverFingerprint: 'ab'.repeat(32) });
    expect(await refusal(text)).toMatch(/^another base station answers at https:\/\/station:4433: .* svc admin device invite pr-1$/);
    await attach(await start(await invited()));
  });

  test('a clock that makes a certificate invalid', async () => {
    const fault = new RemoteError('CERTIFICATE_VALIDATION_FAILED', "the certificate is not yet valid, or this host's clock is wrong");
    publishDocument(fixture, fault, { fingerprint: station.fingerprint });
    const { serverFingerprint: _, ...unpinned } = parseJoin(await invited()).join;
    const text = encodeJoinString(unpinned);
    expect(await refusal(text)).toMatch(/clock is wrong: set this machine's clock, or .* --root-certs FILE/);
    await attach(await start());
  });

  test('a device id that another device has', { tags: ['slow'] }, async () => {
    await start(await invited(), { deviceId: 'de-7' });
    directory = await mkdtemp(join(tmpdir(), 'svc-join-'));
    expect(await refusal(await invited(), { deviceId: 'de-7' })).toMatch(/^the device id de-7 is taken: give another one with --device-id/);
    await attach(await start(undefined, { deviceId: 'de-8' }));
  });

  test('an option that contradicts the join string', async () => {
    const text = await invited({ deviceId: 'de-1' });
    expect(await refusal(text, { product: 'pr-2' })).toMatch(/^--product pr-2: the join string says pr-1/);
    expect(await refusal(text, { deviceId: 'de-2' })).toMatch(/^--device-id de-2: the join string says de-1/);
    expect(await refusal(text, { serverFingerprint: 'cd'.repeat(32) })).toMatch(/^--server-fingerprint/);
    expect(await refusal(text, { rootCerts: 'PEM' })).toMatch(/^--root-certs has no effect/);
    expect(await files()).toEqual(['files']);
  });

  test('a file that is damaged', async () => {
    await writeFile(join(directory, 'join.json'), '{"Version":1,"JoinString":"svc://join#~AAAA"}');
    expect(await refusal()).toMatch(/join\.json is damaged: remove it, and give the join string again with --join$/);
  });

  test('a key that cannot be saved', async () => {
    await mkdir(join(directory, 'key.pem'));
    expect(await refusal(await invited())).toMatch(/key\.pem/);
    expect(await files()).not.toContain('join.json');
  });
});

describe('a join string', () => {
  const join_: JoinString = {
    server: 'station:4433',
    serverFingerprint: 'ab'.repeat(32),
    productId: 'pr',
    token: new Uint8Array(16).fill(7),
  };
  const text = encodeJoinString(join_);
  const pairing = { productId: 'pr', deviceId: 'de', password: 'secret-word' };
  const refused = (given: string) =>
    Promise.resolve()
      .then(() => parseJoin(given))
      .then(() => 'taken', described);

  test('is read from a file, with a terminal’s line ends', async () => {
    const file = join(directory, 'string');
    await writeFile(file, `${text.slice(0, 80)}\r\n${text.slice(80)}\n`);
    expect((await givenJoin(file, output())).join).toEqual(join_);
    expect(printed).toBe('');
  });

  test('as an argument causes a warning, which does not repeat it', async () => {
    expect((await givenJoin(text, output())).text).toBe(text);
    expect(printed).toMatch(/^warning: the join string was in the arguments, .* --join -/);
    expect(printed).not.toContain(text.slice(20, 40));
  });

  test.each<[string, string, RegExp]>([
    ['nothing', ' \n', /^no join string was given: svc admin device invite/],
    ['cut', text.slice(0, -7), /cut or mistyped/],
    ['mistyped', text.replace(/.$/, (last) => (last === 'A' ? 'B' : 'A')), /cut or mistyped/],
    ['of a newer form', `svc://join#~${newer()}`, /newer version than this svc knows; update svc/],
    ['a pairing string', encodePairingString(pairing), /^that is a pairing string, for clients \(svc pair -\)/],
    ['a pairing link', encodePairingLink(pairing), /^that is a pairing string/],
    ['something else', 'https://example.com', /does not begin with svc:\/\/join#~/],
  ])('that is %s is refused', async (_what, given, message) => {
    const said = await refused(given);
    expect(said).toMatch(message);
    expect(said).not.toContain(pairing.password);
    expect(said).not.toContain(text.slice(20, 40));
  });

  test('that is a pairing string in the place of a file is reported, too', async () => {
    expect(await givenJoin(encodePairingString(pairing), output()).then(() => '', described)).toMatch(/^that is a pairing string/);
  });
});

/** Version 2 with a right checksum, base64url. */
function newer(): string {
  const bytes = [2];
  let crc = 0xffff ^ (2 << 8);
  for (let bit = 0; bit < 8; bit++) crc = crc & 0x8000 ? ((crc << 1) ^ 0x1021) & 0xffff : crc << 1;
  return Buffer.from([...bytes, crc >> 8, crc & 0xff]).toString('base64url');
}
