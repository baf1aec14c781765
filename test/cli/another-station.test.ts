/** Commands of a client that has known a base station by another key, or the device at another base station. */
import { Writable } from 'node:stream';
import { beforeEach, expect, test } from 'vitest';
import { Known, NO_STATION } from '../../cli/client/known.ts';
import { withConnection } from '../../cli/client/open.ts';
import type { TargetOptions } from '../../cli/client/target.ts';
import { Output } from '../../cli/frame/output.ts';
import { type PairCommandOptions, pair } from '../../cli/pair.ts';
import { SvcClient } from '../../client/node.ts';
import { iamOf, stateOf, user } from '../device/iam/model.ts';
import type { DeviceUnderTest } from '../support/fixture/devices-and-clients.ts';
import { DEVICE_PORT, ids, SCT, SERVER_URL } from '../support/fixture/identifiers.ts';
import { ProductFixture } from '../support/fixture/products.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';
import { filesDone } from './doctor-clinic.ts';

const OLD = 'ab'.repeat(32);
const OLD_URL = 'https://old:4433';
const USERS = 'token-of-ann';

let fixture: ProductFixture;
let under: DeviceUnderTest;
let known: Known;
/** What the command said to the person. */
let said: string;
/** Fingerprints. */
let station: string;
let device: string;

beforeEach(async () => {
  fixture = new ProductFixture({ hop: filesDone });
  said = '';
  known = await Known.open(temporaryDirectory());
  const client = SvcClient.create();
  const own = client.createConnection();
  own.updateOptions({ PrivateKey: await known.privateKey(client) });
  station = (await fixture.station()).fingerprint;
  under = await fixture.device();
  device = under.device.deviceFingerprint;
  const ann = user('ann', { role: 'Guest', sct: USERS, fingerprints: [{ fingerprint: own.getClientFingerprint() }] });
  under.device.setIam(iamOf({ state: stateOf([ann]) }));
  await fixture.start(under);
  await fixture.until(under, 'ATTACHED');
});

const remembered = { ProductId: ids.productId, DeviceId: ids.deviceId, Name: 'lamp' };

async function knows(url: string, fingerprint: string, tokens: Record<string, string>): Promise<void> {
  known.remember({ ...remembered, Fingerprint: device, ServerUrl: url, Tokens: tokens });
  known.rememberStation(url, { Fingerprint: fingerprint, Seen: true });
  await known.save();
}

function frame() {
  const write = (chunk: unknown, _encoding: unknown, done: () => void) => {
    said += chunk;
    done();
  };
  const output = new Output(false, { stdout: new Writable({ write }), stderr: new Writable({ write }) });
  return { environment: fixture.host('client'), output, signal: new AbortController().signal };
}

const common = () => ({ timeout: 20_000, local: false, relayOnly: true, state: known.directory });
const opened = (options: Partial<TargetOptions>) =>
  fixture.settle(withConnection({ ...common(), ...options }, async () => {}, { frame: frame() }));
const paired = (string: string, options: Partial<PairCommandOptions> = {}) =>
  fixture.settle(pair(string, { ...common(), ...options }, frame()));
const string = () => `p=${ids.productId},d=${ids.deviceId},fp=${device},s=station:4433,sf=${station},sct=${SCT}`;

async function stored() {
  const { devices, stations } = await Known.open(known.directory);
  return { url: devices[0]?.ServerUrl, tokens: devices[0]?.Tokens, stations };
}

test('a pairing string leads to another base station: the user’s token stays with its own, and one line says how to return', async () => {
  await knows(OLD_URL, OLD, { [OLD]: USERS });
  await paired(string());
  expect(said).toMatch(
    /^pr-1\.de-1: the base station https:\/\/station:4433 is used instead of https:\/\/old:4433; `svc pair lamp --server https:\/\/old:4433 --state \S+` returns/,
  );
  expect(said).toContain('you are ann');
  expect(await stored()).toMatchObject({ url: SERVER_URL, tokens: { [OLD]: USERS, [station]: SCT } });
});

test('the line about another base station precedes a connect that fails', async () => {
  await knows(OLD_URL, OLD, { [OLD]: USERS });
  await expect(paired(string().replace('s=station:', 's=silent:'))).rejects.toThrow(/^no way to the device; .*: silent has no address/);
  expect(said).toMatch(/^pr-1\.de-1: the base station https:\/\/silent:4433 is used instead of https:\/\/old:4433/);
  expect((await stored()).url).toBe(OLD_URL);
});

test('a user’s token belongs to the base station that it came through', async () => {
  await paired(string());
  expect((await stored()).tokens).toEqual({ [station]: USERS });
  expect(said).not.toContain('is used instead');
});

test('another fingerprint of a known base station is accepted from --server-fingerprint, with what it replaces', async () => {
  await knows(SERVER_URL, OLD, { [OLD]: SCT });
  await opened({ device: 'lamp', serverFingerprint: station });
  expect(said).toContain(`base station ${SERVER_URL}, known by its fingerprint ${OLD}: now by its fingerprint ${station}`);
  expect(await stored()).toEqual({
    url: SERVER_URL,
    tokens: { [station]: SCT },
    stations: { [SERVER_URL]: { Fingerprint: station, Seen: true } },
  });
});

test('… or from a pairing string with --replace, and from no other', async () => {
  await knows(SERVER_URL, OLD, { [OLD]: 'old' });
  await expect(paired(string())).rejects.toThrow(
    /`svc pair - --state \S+ --replace` .* `svc forget --station https:\/\/station:4433 --state \S+`/,
  );
  await paired(string(), { replace: true });
  expect(await stored()).toMatchObject({ tokens: { [station]: USERS }, stations: { [SERVER_URL]: { Fingerprint: station } } });
});

test('a wrong fingerprint that was stated replaces none that the base station has proved', async () => {
  await knows(SERVER_URL, station, { [station]: SCT });
  await expect(opened({ device: 'lamp', serverFingerprint: OLD })).rejects.toThrow(/remote FINGERPRINT_MISMATCH/);
  const address = { host: under.host, port: DEVICE_PORT };
  await opened({ device: 'lamp', server: SERVER_URL, serverFingerprint: OLD, address, relayOnly: false });
  expect(said).toContain(`known by its fingerprint ${station}: it was not reached, so this stays`);
  await opened({ device: 'lamp' });
  expect(await stored()).toMatchObject({ tokens: { [station]: SCT }, stations: { [SERVER_URL]: { Fingerprint: station } } });
});

test('a token whose base station was forgotten goes to the one that a person states', async () => {
  await knows(SERVER_URL, OLD, { [OLD]: SCT });
  known.forgetStation(SERVER_URL);
  await known.save();
  expect((await stored()).tokens).toEqual({ [NO_STATION]: SCT });
  await opened({ device: 'lamp', serverFingerprint: station });
  expect(await stored()).toMatchObject({ tokens: { [station]: SCT }, stations: { [SERVER_URL]: { Fingerprint: station } } });
});

test('a token whose base station is not known stays from that of a pairing string that was not reached', async () => {
  known.remember({ ...remembered, Fingerprint: device, Tokens: { [NO_STATION]: USERS } });
  await known.save();
  const address = { host: under.host, port: DEVICE_PORT };
  await paired(string().replace(`sf=${station},sct=${SCT}`, `sf=${OLD}`), { address, relayOnly: false });
  expect(said).toContain('you are ann');
  expect((await stored()).tokens).toEqual({ [NO_STATION]: USERS });
  await paired(string(), { server: SERVER_URL, replace: true });
  expect((await stored()).tokens).toMatchObject({ [station]: USERS });
});
