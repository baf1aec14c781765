/** The client's state directory, and how options, pairing string and state make a target. */
import { chmodSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { readdir, readFile, stat, writeFile } from 'node:fs/promises';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { beforeEach, describe, expect, test } from 'vitest';
import { Known, type KnownDevice, NO_STATION, stateDirectory } from '../../cli/client/known.ts';
import { lastUsed, noteUse } from '../../cli/client/last-used.ts';
import { isToBeRemembered, otherStation, resolveServer, tokenOfUser } from '../../cli/client/station.ts';
import { resolveTarget, type TargetOptions } from '../../cli/client/target.ts';
import { SvcClient } from '../../client/node.ts';
import { PEM_OF_ROOT } from '../support/fixture/station-document.ts';
import { TestProcess } from '../support/process.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';

const FP = 'ab'.repeat(32);
const OTHER = 'cd'.repeat(32);
const lamp: KnownDevice = {
  ProductId: 'pr',
  DeviceId: 'lamp',
  Fingerprint: FP,
  Name: 'desk',
  ServerUrl: 'https://station:4433',
  Tokens: { [OTHER]: 'tok' },
};
const options = (given: Partial<TargetOptions>): TargetOptions => ({ timeout: 1000, ...given });

let directory: string;
beforeEach(() => {
  directory = temporaryDirectory();
});

async function known(...devices: KnownDevice[]): Promise<Known> {
  const state = await Known.open(join(directory, 'state'));
  for (const device of devices) state.remember(device);
  state.rememberStation('https://station:4433', { Fingerprint: OTHER, Seen: true });
  await state.save();
  return state;
}

describe('state directory', () => {
  test('is that of --state, XDG_STATE_HOME or home, in this order', () => {
    expect(stateDirectory('/x', { XDG_STATE_HOME: '/y' })).toBe('/x');
    expect(stateDirectory(undefined, { XDG_STATE_HOME: '/y' })).toBe('/y/svc');
    expect(stateDirectory(undefined, { XDG_STATE_HOME: 'relative' })).toBe(join(homedir(), '.local/state/svc'));
    expect(stateDirectory(undefined, {})).toBe(join(homedir(), '.local/state/svc'));
  });

  test('keeps key and devices, for this user alone', async () => {
    const first = await known(lamp);
    const pem = await first.privateKey(SvcClient.create());
    const again = await Known.open(first.directory);
    expect(await again.privateKey(SvcClient.create())).toBe(pem);
    expect(again.devices).toEqual([lamp]);
    expect(again.station('https://station:4433')?.Fingerprint).toBe(OTHER);
    expect(again.station('toString')).toBeUndefined();
    for (const file of ['key.pem', 'known.json']) expect((await stat(join(first.directory, file))).mode & 0o077).toBe(0);
  });

  test('keeps what two processes save at the same time', async () => {
    await known(lamp);
    const [one, two] = await Promise.all([1, 2].map(() => Known.open(join(directory, 'state'))));
    one!.remember({ ...lamp, DeviceId: 'one' });
    one!.rememberStation('https://one:4433', { Fingerprint: FP, Seen: true });
    two!.remember({ ...lamp, DeviceId: 'two' });
    two!.forget(lamp);
    await Promise.all([one!.save(), two!.save()]);
    const now = await Known.open(join(directory, 'state'));
    expect(now.devices.map(({ DeviceId }) => DeviceId).sort()).toEqual(['one', 'two']);
    expect(now.station('https://one:4433')?.Fingerprint).toBe(FP);
    expect(await readdir(now.directory)).toEqual(['known.json']);
  });

  test('gives a name to the first of two processes that save it', async () => {
    await known();
    const [one, two] = await Promise.all([1, 2].map(() => Known.open(join(directory, 'state'))));
    one!.remember({ ...lamp, DeviceId: 'one', Name: 'desk' });
    two!.remember({ ...lamp, DeviceId: 'two', Name: 'desk' });
    await one!.save();
    await two!.save();
    const now = await Known.open(join(directory, 'state'));
    expect(now.devices.map(({ DeviceId, Name }) => [DeviceId, Name])).toEqual([
      ['one', 'desk'],
      ['two', undefined],
    ]);
  });

  test('replaces a fingerprint that the base station has not shown by another one, but not one that it has shown', async () => {
    const url = 'https://new:4433';
    const target = (state: Known, serverFingerprint: string) => resolveServer({ server: url, serverFingerprint }, {}, state);
    const state = await known();
    state.rememberStation(url, { Fingerprint: OTHER, Seen: false });
    await state.save();
    const again = await Known.open(state.directory);
    expect([again.station(url)?.Seen === true, again.station(url)?.Fingerprint, target(again, FP)?.fingerprint]).toEqual([
      false,
      OTHER,
      FP,
    ]);
    again.rememberStation(url, { Fingerprint: FP, Seen: true });
    // Given again without the base station: it stays as shown.
    again.rememberStation(url, { Fingerprint: FP, Seen: false });
    expect(again.station(url)?.Seen === true).toBe(true);
    expect(target(again, OTHER)).toEqual({ url, fingerprint: OTHER, roots: '', replaces: { Fingerprint: FP, Seen: true } });
    again.rememberStation(url, { Fingerprint: OTHER, Seen: false });
    expect([
      again.station(url)?.Seen === true,
      again.station('https://station:4433')?.Seen === true,
      again.station('https://none')?.Seen === true,
    ]).toEqual([false, true, false]);
  });

  test('replaces a fingerprint that the base station has not shown by roots that authenticate it', async () => {
    const url = 'https://new:4433';
    const state = await known();
    state.rememberStation(url, { Fingerprint: OTHER, Seen: false });
    expect(resolveServer({ server: url, rootCerts: 'PEM' }, {}, state)).toMatchObject({ url, fingerprint: null, roots: 'PEM' });
    state.rememberStation(url, { Roots: PEM_OF_ROOT });
    await state.save();
    const again = await Known.open(state.directory);
    expect(again.station(url)).toEqual({ Roots: PEM_OF_ROOT });
  });

  test('merges what is remembered again, and removes what is forgotten', async () => {
    const state = await known(lamp);
    state.remember({ ProductId: 'pr', DeviceId: 'lamp', Fingerprint: FP, Address: '127.0.0.1:1' });
    expect(state.devices).toEqual([{ ...lamp, Address: '127.0.0.1:1' }]);
    state.forget(state.devices[0] as KnownDevice);
    await state.save();
    expect((await Known.open(state.directory)).devices).toEqual([]);
  });

  test('forgets the WebSocket to a base station when another base station is remembered, or none is given to this one', async () => {
    const webSocket = { ServerWebSocketUrl: 'wss://proxy/svc/v1' };
    const state = await known({ ...lamp, ...webSocket });
    const device = { ProductId: 'pr', DeviceId: 'lamp', Fingerprint: FP };
    state.remember({ ...device, Address: '127.0.0.1:1' });
    expect(state.devices).toEqual([{ ...lamp, ...webSocket, Address: '127.0.0.1:1' }]);
    state.remember({ ...device, ServerUrl: 'https://other:4433' });
    expect(state.devices).toEqual([{ ...lamp, Address: '127.0.0.1:1', ServerUrl: 'https://other:4433' }]);
    expect(resolveTarget(options({ device: 'desk' }), state).webSocket).toBeUndefined();
  });

  test('keeps eight tokens of a device, each with its base station', async () => {
    const state = await known(lamp);
    for (let index = 1; index <= 8; index++) state.remember({ ...lamp, Tokens: { [`https://s${index}`]: `t${index}` } });
    expect(Object.keys(state.devices[0]!.Tokens!)).toEqual([1, 2, 3, 4, 5, 6, 7, 8].map((index) => `https://s${index}`));
    state.remember({ ...lamp, Tokens: { 'https://s3': 'new' } });
    expect(state.devices[0]!.Tokens).toMatchObject({ 'https://s3': 'new', 'https://s1': 't1' });
  });

  test('gives a token whose base station was not known to the first that it is remembered with', async () => {
    const state = await known({ ...lamp, Tokens: { [NO_STATION]: 'near', [OTHER]: 'tok' } });
    state.remember({ ...lamp, Tokens: { [FP]: 'near' } });
    expect(state.devices[0]!.Tokens).toEqual({ [OTHER]: 'tok', [FP]: 'near' });
  });

  test('moves the tokens of a base station whose key a person replaces or forgets, unless it has another address', async () => {
    const url = 'https://station:4433';
    const moved = async (change: (state: Known) => void) => {
      const state = await known(lamp);
      change(state);
      await state.save();
      const now = await Known.open(state.directory);
      return [now.station(url)?.Fingerprint, now.devices[0]!.Tokens];
    };
    expect(await moved((state) => state.rememberStation(url, { Fingerprint: FP, Seen: true }))).toEqual([FP, { [OTHER]: 'tok' }]);
    expect(await moved((state) => state.replaceStation(url, { Fingerprint: FP, Seen: true }))).toEqual([FP, { [FP]: 'tok' }]);
    const elsewhere = { Fingerprint: OTHER, Seen: true };
    expect(
      await moved((state) => {
        state.forget(state.devices[0]!);
        state.remember(lamp);
        state.rememberStation('https://elsewhere:4433', elsewhere);
        state.replaceStation(url, { Fingerprint: FP, Seen: true });
      }),
    ).toEqual([FP, { [OTHER]: 'tok' }]);
    expect(
      await moved((state) => {
        state.forget(state.devices[0]!);
        state.remember(lamp);
        state.forgetStation('https://elsewhere:4433');
        state.rememberStation(url, elsewhere);
        state.forgetStation(url);
      }),
    ).toEqual([undefined, { [NO_STATION]: 'tok' }]);
  });

  test('has the key of the first of two commands that make one at once', async () => {
    const state = await known();
    const first = SvcClient.create().createPrivateKey();
    const slower = {
      createPrivateKey: () => {
        writeFileSync(join(state.directory, 'key.pem'), first);
        return SvcClient.create().createPrivateKey();
      },
    } as SvcClient;
    expect(await state.privateKey(slower)).toBe(first);
  });

  test.each(['known.json', 'key.pem'])('is refused at once with a FIFO as %s', async (name) => {
    const state = await known();
    rmSync(join(state.directory, name), { force: true });
    await new TestProcess('mkfifo', [join(state.directory, name)]).succeeded();
    const problem = `cannot read ${join(state.directory, name)}: it is not a regular file: remove it`;
    const use = name === 'key.pem' ? state.privateKey(SvcClient.create()) : Known.open(state.directory);
    await expect(use).rejects.toThrow(problem);
  });

  test('is refused where every user could plant a pin', async () => {
    const state = await known();
    state.rememberStation('https://x:4433', { Fingerprint: FP, Seen: true });
    await state.save();
    chmodSync(state.directory, 0o777);
    await expect(Known.open(state.directory)).rejects.toThrow(/cannot use directory .*: every user may write to it: chmod o-w it/);
  });

  test('has no key where its file is a link', async () => {
    const state = await known();
    symlinkSync(join(state.directory, 'nothing'), join(state.directory, 'key.pem'));
    await expect(state.privateKey(SvcClient.create())).rejects.toThrow(/cannot read .*key\.pem: it is a link: put the file itself there/);
  });

  const withFingerprint = (fingerprint: string) =>
    `{"Version":1,"Devices":[{"ProductId":"pr","DeviceId":"de","Fingerprint":"${fingerprint}"}],"Stations":{}}`;
  test.each([
    '{',
    '[]',
    '{"Version":2}',
    '{"Version":1,"Devices":[{}],"Stations":{}}',
    '{"Version":1,"Devices":[],"Stations":{"a":1}}',
    '{"Version":1,"Devices":[],"Stations":{"a":null}}',
    '{"Version":1,"Devices":[],"Stations":{"a":{}}}',
    '{"Version":1,"Devices":[],"Stations":{"a":{"Fingerprint":"1","Seen":true}}}',
    `{"Version":1,"Devices":[],"Stations":{"a":{"Fingerprint":"${FP}"}}}`,
    `{"Version":1,"Devices":[],"Stations":{"a":{"Fingerprint":"${FP}","Seen":true,"Roots":""}}}`,
    '{"Version":1,"Devices":[],"Stations":{"a":{"Roots":1}}}',
    '{"Version":1,"Devices":[],"Stations":{"a":{"Roots":"","Seen":true}}}',
    '{"Version":1,"Devices":[],"Stations":{"a":{"Roots":"","Else":1}}}',
    '{"Version":1,"Devices":[],"Stations":{},"TlsStations":{}}',
    withFingerprint('ab'),
  ])('with a damaged known.json is refused with its path: %s', async (content) => {
    const state = await known();
    await writeFile(join(state.directory, 'known.json'), content);
    await expect(Known.open(state.directory)).rejects.toThrow(/known\.json/);
    expect(await readFile(join(state.directory, 'known.json'), 'utf8')).toBe(content);
  });
});

test('the day of the latest connection to each known device is kept', async () => {
  const days = [0, 1, 2].map((day) => day * 86_400_000);
  await noteUse(directory, 'pr.lamp', ['pr.lamp', 'pr.door'], days[0]!);
  await noteUse(directory, 'pr.door', ['pr.lamp', 'pr.door'], days[1]!);
  expect(await lastUsed(directory)).toEqual({ 'pr.lamp': '1970-01-01', 'pr.door': '1970-01-02' });
  await noteUse(directory, 'pr.door', ['pr.door'], days[2]!);
  expect(await lastUsed(directory)).toEqual({ 'pr.door': '1970-01-03' });
});

describe('target', () => {
  test('is found by name, by product.device, by ids, by pairing string, or as the only one', async () => {
    const state = await known(lamp);
    const expected = {
      productId: 'pr',
      deviceId: 'lamp',
      pin: FP,
      sct: 'tok',
      server: { url: 'https://station:4433', fingerprint: OTHER },
    };
    for (const given of [{ device: 'desk' }, { device: 'pr.lamp' }, { product: 'pr', deviceId: 'lamp' }, { device: 'p=pr,d=lamp' }, {}]) {
      expect(resolveTarget(options(given), state)).toMatchObject(expected);
    }
  });

  test('prefers options to the pairing string, and the string to the state', async () => {
    const state = await known(lamp);
    expect(resolveTarget(options({ device: 'p=pr,d=lamp,sct=new' }), state).sct).toBe('new');
    expect(resolveTarget(options({ device: 'p=pr,d=lamp,sct=new', sct: 'newest' }), state).sct).toBe('newest');
  });

  const FROM_STRING = `p=pr,d=new,s=string.example:4433,sf=${FP},sct=tok,fp=${FP}`;

  test('has base station and fingerprint of a pairing string, unless options or roots are given', async () => {
    const state = await known(lamp);
    const station = (given: Partial<TargetOptions>) => {
      const { server, serverFrom } = resolveTarget(options({ device: FROM_STRING, ...given }), state);
      return [server?.url, server?.fingerprint, server?.roots, serverFrom];
    };
    expect(station({})).toEqual(['https://string.example:4433', FP, '', 'pairing string']);
    // Another address of the same base station.
    expect(station({ server: 'https://192.0.2.7:4433' })).toEqual(['https://192.0.2.7:4433', FP, '', 'option']);
    expect(station({ server: 'https://192.0.2.7:4433', serverFingerprint: OTHER })).toEqual([
      'https://192.0.2.7:4433',
      OTHER,
      '',
      'option',
    ]);
    expect(station({ serverFingerprint: OTHER })).toEqual(['https://string.example:4433', OTHER, '', 'pairing string']);
    expect(station({ rootCerts: 'PEM' })).toEqual(['https://string.example:4433', null, 'PEM', 'pairing string']);
    expect(station({ device: 'desk' })).toEqual(['https://station:4433', OTHER, '', 'state']);
    // A string without a base station leaves the remembered one.
    expect(station({ device: 'p=pr,d=lamp' })).toEqual(['https://station:4433', OTHER, '', 'state']);
  });

  test('refuses a pairing string with another fingerprint than the base station has shown', async () => {
    const state = await known(lamp);
    const string = `p=pr,d=lamp,s=station:4433,sf=${FP}`;
    const refusal = `https://station:4433 is known with another fingerprint (${OTHER}) than the pairing string has (${FP})`;
    expect(() => resolveTarget(options({ device: string }), state)).toThrow(refusal);
    expect(() => resolveTarget(options({ device: string, server: 'https://station:4433' }), state)).toThrow(refusal);
    expect(resolveTarget(options({ device: string.replace(FP, OTHER) }), state).server?.fingerprint).toBe(OTHER);
    expect(() => resolveTarget(options({ device: string }), state)).toThrow(
      '`svc pair - --replace` accepts that of the string, or `svc forget --station https://station:4433`',
    );
    const replaces = { Fingerprint: OTHER, Seen: true };
    expect(resolveTarget(options({ device: string }), state, { replace: true }).server).toMatchObject({ fingerprint: FP, replaces });
    state.forgetStation('https://station:4433');
    expect(resolveTarget(options({ device: string }), state).server).toEqual({ url: 'https://station:4433', fingerprint: FP, roots: '' });
  });

  test('keeps authentication by TLS despite a pairing string', async () => {
    const state = await known(lamp);
    const url = 'https://tls.example:4433';
    state.rememberStation(url, { Roots: '' });
    const device = `p=pr,d=lamp,s=tls.example:4433,sf=${FP}`;
    expect(resolveTarget(options({ device }), state).server).toEqual({ url, fingerprint: null, roots: '' });
    expect(resolveTarget(options({ device, serverFingerprint: FP }), state).server).toMatchObject({ fingerprint: FP });
  });

  test('has the token of its base station, and none of another one', async () => {
    const state = await known(lamp, {
      ...lamp,
      Name: 'near',
      DeviceId: 'near',
      ServerUrl: undefined as never,
      Tokens: { [NO_STATION]: 'tok' },
    });
    const token = (given: Partial<TargetOptions>) => resolveTarget(options(given), state).sct;
    expect(token({ device: `p=pr,d=lamp,s=other.example:4433,sf=${FP}` })).toBeUndefined();
    expect(token({ device: 'p=pr,d=lamp,s=other.example:4433' })).toBeUndefined();
    expect(token({ device: `p=pr,d=lamp,s=other.example:4433,sf=${FP},sct=new` })).toBe('new');
    expect(token({ device: 'desk', server: 'https://other.example:4433', serverFingerprint: FP })).toBeUndefined();
    // The same base station, at the same address or by its key.
    expect(token({ device: 'p=pr,d=lamp,s=station:4433' })).toBe('tok');
    expect(token({ device: `p=pr,d=lamp,s=other.example:4433,sf=${OTHER}` })).toBe('tok');
    expect(token({ device: 'desk', server: 'https://other.example:4433' })).toBe('tok');
    // One whose base station is not known is for the one that a person states.
    expect(token({ device: `p=pr,d=near,s=other.example:4433,sf=${FP}` })).toBeUndefined();
    expect(token({ device: 'near', server: 'https://other.example:4433', serverFingerprint: FP })).toBe('tok');
  });

  test('has the token after a person has stated the new key of the base station, and not by a pairing string', async () => {
    const state = await known(lamp);
    const token = (given: Partial<TargetOptions>, replace = false) => resolveTarget(options(given), state, { replace }).sct;
    expect(token({ device: 'desk', serverFingerprint: FP })).toBe('tok');
    expect(token({ device: 'desk', serverFingerprint: 'none' })).toBe('tok');
    expect(token({ device: `p=pr,d=lamp,s=station:4433,sf=${FP}` }, true)).toBeUndefined();
  });

  test('keeps a token that the device names for the base station that it is known of', () => {
    const [through, other] = [FP, OTHER].map((station) => ({ station, reached: true }));
    expect(tokenOfUser('tok', through!, lamp)).toEqual({});
    expect(tokenOfUser('tok', other!, lamp)).toEqual({ Tokens: { [OTHER]: 'tok' } });
    expect(tokenOfUser('new', through!, lamp)).toEqual({ Tokens: { [FP]: 'new' } });
    const near = { ...lamp, Tokens: { [NO_STATION]: 'near' } };
    expect(tokenOfUser('near', through!, near)).toEqual({ Tokens: { [FP]: 'near' } });
    expect(tokenOfUser('near', { station: FP, reached: false }, near)).toEqual({});
  });

  test('says which base station is used instead of the remembered one, and how to return', async () => {
    const state = await known(lamp);
    const said = (given: Partial<TargetOptions>) => otherStation(lamp, resolveTarget(options(given), state).server, state, '/x y');
    expect(said({ device: `p=pr,d=lamp,s=other.example:4433,sf=${FP}` })).toBe(
      "pr.lamp: the base station https://other.example:4433 is used instead of https://station:4433; `svc pair desk --server https://station:4433 --state '/x y'` returns to that one",
    );
    expect(said({ device: 'desk', server: 'https://other.example:4433', serverFingerprint: FP })).toMatch(/^pr\.lamp: /);
    // The same by its key, or by its address.
    expect(said({ device: 'desk', server: 'https://other.example:4433' })).toBeUndefined();
    expect(said({ device: 'desk' })).toBeUndefined();
  });

  test('has all addresses of a pairing string, without the remembered base station', async () => {
    const state = await known(lamp);
    const string = 'p=pr,d=lamp,a=192.168.1.7:5592;[fe80::7]:5592';
    const places = [
      { host: '192.168.1.7', port: 5592 },
      { host: 'fe80::7', port: 5592 },
    ];
    expect(resolveTarget(options({ device: string }), state)).toMatchObject({ addresses: places, server: undefined, local: true });
    const address = { host: '::1', port: 1 };
    expect(resolveTarget(options({ device: string, address }), state)).toMatchObject({ addresses: [address], local: false });
    const server = 'https://station:4433';
    expect(resolveTarget(options({ device: string, server }), state)).toMatchObject({ addresses: [], server: { url: server } });
  });

  test('refuses a mistyped link as no name, and does not repeat it', async () => {
    const state = await known(lamp);
    for (const device of ['svc:/pair#~AQIDBA', 'svc://pair#~AQIDBA', `${'x'.repeat(65)}`]) {
      expect(() => resolveTarget(options({ device }), state)).toThrow(/^(?!.*(AQIDBA|xxx)).*cut or mistyped/);
    }
  });

  test('has neither ids nor base station by an address alone', async () => {
    const state = await known(lamp);
    expect(resolveTarget(options({ address: { host: '::1', port: 1 }, fingerprint: OTHER }), state)).toMatchObject({
      productId: undefined,
      server: undefined,
      pin: OTHER,
    });
  });

  test('finds a device that was reached directly before by its address', async () => {
    const { ServerUrl: _, ...direct } = lamp;
    const state = await known({ ...direct, Address: '[::1]:5592' });
    expect(resolveTarget(options({ address: { host: '::1', port: 5592 } }), state)).toMatchObject({ productId: 'pr', pin: FP });
    expect(resolveTarget(options({}), state)).toMatchObject({ addresses: [{ host: '::1', port: 5592 }], server: undefined });
  });

  test('is sought on the local network, unless its address is given or that is switched off', async () => {
    const { ServerUrl: _, ...direct } = lamp;
    const state = await known({ ...direct, Address: '[::1]:5592' });
    const local = (given: Partial<TargetOptions>) => resolveTarget(options(given), state).local;
    expect(resolveTarget(options({ device: 'p=pr,d=other' }), state)).toMatchObject({ local: true, server: undefined, addresses: [] });
    expect([local({}), local({ server: 'https://station:4433' }), local({ local: true })]).toEqual([true, true, true]);
    expect([local({ local: false }), local({ address: { host: '::1', port: 5592 } })]).toEqual([false, false]);
  });

  test('leaves out the local network and direct paths with --relay-only; --no-hard-nat is independent', async () => {
    const state = await known(lamp);
    const paths = (given: Partial<TargetOptions>) => {
      const { local, relayOnly, hardNat } = resolveTarget(options({ device: 'desk', ...given }), state);
      return { local, relayOnly, hardNat };
    };
    expect(paths({})).toEqual({ local: true, relayOnly: false, hardNat: true });
    expect(paths({ relayOnly: true, hardNat: false })).toEqual({ local: false, relayOnly: true, hardNat: false });
  });

  test('refuses a changed fingerprint, unless it is replaced on purpose', async () => {
    const state = await known(lamp);
    for (const given of [{ fingerprint: OTHER, device: 'desk' }, { device: `p=pr,d=lamp,fp=${OTHER}` }]) {
      expect(() => resolveTarget(options(given), state)).toThrow(/known with another fingerprint.*--replace/);
      expect(resolveTarget(options(given), state, { replace: true }).pin).toBe(OTHER);
    }
    // A link with a password has no fingerprint: the password proves the device that was set up again.
    expect(resolveTarget(options({ device: 'p=pr,d=lamp,pwd=secret' }), state, { replace: true }).pin).toBeUndefined();
    expect(resolveTarget(options({ device: 'desk', serverFingerprint: FP }), state).server?.fingerprint).toBe(FP);
  });

  test.each<[string, Partial<TargetOptions>, RegExp]>([
    ['an unknown name', { device: 'moon' }, /no device "moon"/],
    ['half of the ids', { product: 'pr' }, /belong together/],
    ['a fingerprint of no base station', { product: 'a', deviceId: 'b', serverFingerprint: FP }, /--server-fingerprint needs --server/],
    ['roots of no base station', { product: 'a', deviceId: 'b', rootCerts: 'PEM' }, /--root-certs needs --server/],
    ['a WebSocket to no base station', { product: 'a', deviceId: 'b', serverWebsocket: 'wss://x/' }, /--server-websocket needs --server/],
    ['roots beside a fingerprint', { device: 'desk', serverFingerprint: OTHER, rootCerts: 'PEM' }, /no effect with --server-fingerprint/],
    [
      'roots of a base station that is pinned',
      { device: 'desk', rootCerts: 'PEM' },
      /pinned by its fingerprint.*`svc forget --station https:\/\/station:4433` first$/,
    ],
    ['no way to the device', { product: 'a', deviceId: 'b', local: false }, /--server.*--address.*--no-local/],
    ['a broken pairing string', { device: 'p=pr' }, /pairing string/],
  ])('is refused: %s', async (_, given, message) => {
    const state = await known(lamp);
    expect(() => resolveTarget(options(given), state)).toThrow(message);
  });

  test('needs TLS for a base station without a fingerprint, with the given roots', async () => {
    const state = await known(lamp);
    const url = 'https://other:4433';
    const server = (given: Partial<TargetOptions> = {}) => resolveTarget(options({ device: 'desk', server: url, ...given }), state).server;
    expect(server({ serverFingerprint: 'none' })).toEqual({ url, fingerprint: null, roots: '' });
    expect(server({ serverFingerprint: 'none', rootCerts: 'PEM' })).toEqual({ url, fingerprint: null, roots: 'PEM' });
    state.rememberStation(url, { Roots: PEM_OF_ROOT });
    expect(server()).toEqual({ url, fingerprint: null, roots: PEM_OF_ROOT });
    expect(server({ rootCerts: 'NEW' })).toEqual({ url, fingerprint: null, roots: 'NEW' });
    await state.save();
    expect((await Known.open(state.directory)).stations).toEqual({
      'https://station:4433': { Fingerprint: OTHER, Seen: true },
      [url]: { Roots: PEM_OF_ROOT },
    });
  });

  test('knows a base station at a new address by its fingerprint, unless a pairing string has another authentication', async () => {
    const state = await known(lamp);
    const url = 'https://moved:4433';
    const server = (given: Partial<TargetOptions>) => resolveTarget(options({ server: url, ...given }), state).server;
    expect(server({ device: 'desk' })).toEqual({ url, fingerprint: OTHER, roots: '' });
    expect(server({ device: `p=pr,d=lamp,s=station:4433,fp=${FP}` })).toMatchObject({ fingerprint: null });
    expect(server({ device: 'desk', serverFingerprint: FP })).toMatchObject({ fingerprint: FP });
  });

  test('does not replace a base station that was reached by one of a pairing string that was not', async () => {
    const state = await known(lamp);
    const url = 'https://mistyped:4433';
    const news = (from: 'option' | 'pairing string', reached: boolean, device: KnownDevice | undefined = lamp) =>
      isToBeRemembered({ url, from, reached }, device, state);
    expect([news('pairing string', false), news('pairing string', true), news('option', false)]).toEqual([false, true, true]);
    expect(news('pairing string', false, { ...lamp, ServerUrl: 'https://never-seen:4433' })).toBe(true);
    expect(news('pairing string', false, { ...lamp, ServerUrl: url })).toBe(true);
  });

  test('has a name that belongs to one device', async () => {
    const state = await known(lamp);
    expect(() => state.checkName('desk', 'pr.other')).toThrow(/--name desk: pr\.lamp has this name/);
    state.checkName('desk', 'pr.lamp');
    state.checkName('shelf', 'pr.other');
    expect(state.byName('desk')?.DeviceId).toBe('lamp');
    expect(state.byName('pr.lamp')?.DeviceId).toBe('lamp');
  });

  test('replaces TLS by a fingerprint, which stays', async () => {
    const state = await known(lamp);
    state.rememberStation('https://other:4433', { Roots: '' });
    state.rememberStation('https://other:4433', { Fingerprint: FP, Seen: true });
    expect(state.station('https://other:4433')?.Roots).toBeUndefined();
    expect(resolveTarget(options({ device: 'desk', server: 'https://other:4433' }), state).server).toMatchObject({ fingerprint: FP });
  });

  test('must be chosen among several devices, and paired if there is none', async () => {
    const state = await known(lamp, { ...lamp, DeviceId: 'lamp2', Name: 'floor' });
    expect(() => resolveTarget(options({}), state)).toThrow(/--device: desk, floor/);
    const empty = await Known.open(join(directory, 'empty'));
    expect(() => resolveTarget(options({}), empty)).toThrow(/`svc pair -` reads a pairing string/);
  });
});
