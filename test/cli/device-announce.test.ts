/** Output of `svc device --init` and `svc device invite`: every command runs as it is printed. */
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Writable } from 'node:stream';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { follow } from '../../cli/device-app/announce.ts';
import { Output } from '../../cli/frame/output.ts';
import type { Device, DeviceEvent, Iam } from '../../device/index.ts';
import { ownAddresses } from '../../platform/node/index.ts';
import { RemoteError } from '../../protocol/errors/index.ts';
import { decodePairing, type PairingString } from '../../protocol/records/index.ts';
import { svcInProcess } from '../e2e/in-process.ts';

const KEY = 'ab'.repeat(32);
const STATION = ['--server', 'https://127.0.0.1:9', '--server-fingerprint', 'cd'.repeat(32)];

let folder: string;
let data: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'svc-announce-'));
  data = join(folder, "Ann's device");
});
afterEach(() => rm(folder, { recursive: true }));

const init = (...more: string[]) => svcInProcess(['device', '--data', data, '--product', 'pr', '--device-id', 'de', '--init', ...more]);

/** The printed commands, split into shell words; none of them contains a redirection or a placeholder. */
function commands(printed: string): string[][] {
  return [...printed.matchAll(/\bsvc \w+ .*$/gm)].map(([line]) => {
    expect(line.replace(/'[^']*'|\\'/g, '')).not.toMatch(/[<>()]/);
    const words = line.match(/(?:'[^']*'|\\'|[^\s'])+/g) ?? [];
    return words.slice(1).map((word) => word.replace(/'([^']*)'|\\(')/g, (_, quoted, escaped) => quoted ?? escaped));
  });
}

/** Inputs for the pairing commands; a command that asks for one has it on the line below. */
function pairings(printed: string): { pairing: PairingString; options: string[] }[] {
  const reach = commands(printed).filter(([name]) => name === 'connect' || name === 'pair');
  const below = [...printed.matchAll(/^p=\S+$/gm)].map(([line]) => line);
  return reach.map(([, string = '', ...options]) => ({ pairing: decodePairing(string === '-' ? (below.shift() ?? '') : string), options }));
}

test('an option of svc device without meaning for a subcommand is refused', { tags: ['slow'] }, async () => {
  await init();
  const below = (...words: string[]) => svcInProcess(['device', ...words, '--data', data]);
  for (const [words, option] of [
    [['invite', 'bob', '--tunnel', 'a=b:c:1'], '--tunnel'],
    [['explain', '--action', 'Thermostat:Get', '--iam', 'demo'], '--iam'],
    [['audit', 'show', '--server', 'x'], '--server'],
  ] as const) {
    const { code, stderr } = await below(...words);
    expect([code, stderr]).toEqual([2, expect.stringContaining(`${option} has no effect on svc device ${words[0]}`)]);
  }
});

test('--iam is reported to count at the first start', { tags: ['slow'] }, async () => {
  expect((await init('--iam', 'demo')).stderr).not.toMatch(/--iam/);
  expect((await init('--iam', 'demo')).stderr).toMatch(/--iam has effect only at the first start: this device keeps its users/);
});

const NOTE = /this device has no administrator yet/;

test.each(['pr', '-pr'])('the printed lines register product and device: product %s', async (product) => {
  const { stdout } = await init(...STATION, '--product', product);
  const register = commands(stdout).filter(([name]) => name === 'admin');
  expect(register.map(([, record, add]) => `${record} ${add}`)).toEqual(['product add', 'device add']);
  for (const words of register) {
    expect(await svcInProcess([...words.slice(0, 3), '--data', join(folder, 'station'), ...words.slice(3)])).toMatchObject({ code: 0 });
  }
});

test('a device that joined its base station is registered there: no line registers it', async () => {
  expect((await init(...STATION)).stdout).toMatch(/^register it with/m);
  const file = join(data, 'state.json');
  await writeFile(file, JSON.stringify({ ...JSON.parse(await readFile(file, 'utf8')), Joined: true }));
  const { code, stdout } = await init();
  expect([code, stdout]).toEqual([0, expect.not.stringMatching(/register it with|svc admin/)]);
});

test('a device without a base station is reached at its addresses, and registered nowhere', { tags: ['slow'] }, async () => {
  const { stdout } = await init();
  expect(stdout).not.toMatch(/svc admin|--server/);
  expect(pairings(stdout).length).toBeGreaterThan(1);
  const addresses = ownAddresses()
    .slice(0, 3)
    .map((host) => expect.stringMatching(`${host}\\]?:5592$`));
  for (const { pairing, options } of pairings(stdout)) {
    expect(pairing.addresses ?? []).toEqual(addresses);
    expect([pairing.server, options]).toEqual([undefined, []]);
  }
});

test('no command has a password among its arguments', async () => {
  const { stdout } = await init('--iam', 'demo');
  expect(stdout).toMatch(/pwd=/);
  for (const words of commands(stdout)) expect(words.join(' ')).not.toMatch(/pwd=/);
});

test('a device with a base station is reached there, without an option', async () => {
  const { stdout } = await init(...STATION);
  expect(pairings(stdout).length).toBeGreaterThan(1);
  for (const { pairing, options } of pairings(stdout)) {
    expect(pairing).toMatchObject({ server: '127.0.0.1:9', serverFingerprint: 'cd'.repeat(32) });
    expect([pairing.addresses, options]).toEqual([undefined, []]);
  }
});

test('the pairing string of a base station that TLS authenticates has no fingerprint', { tags: ['slow'] }, async () => {
  const { stdout } = await init('--server', 'https://station.example:4433');
  for (const { pairing } of pairings(stdout))
    expect([pairing.server, pairing.serverFingerprint]).toEqual(['station.example:4433', undefined]);
});

test('a device whose base station has its WebSocket elsewhere is reached there, too', async () => {
  const webSocket = 'wss://proxy.example/(a)';
  const { stdout } = await init(...STATION, '--server-websocket', webSocket);
  expect(pairings(stdout).length).toBeGreaterThan(1);
  for (const { options } of pairings(stdout)) expect(options).toEqual(['--server-websocket', webSocket]);
});

test('a device without an administrator shows how to invite one, and that works', { tags: ['slow'] }, async () => {
  expect((await init()).stderr).not.toMatch(NOTE);
  const { stderr } = await init();
  expect(stderr).toMatch(NOTE);
  const [words = []] = commands(stderr);
  const invited = await svcInProcess(words);
  expect(invited).toMatchObject({
    code: 0,
    stdout: expect.stringMatching(/^admin is invited as Administrator\npair with {2}svc pair -\n.*\np=pr,/),
  });
  expect(commands(invited.stdout)).toHaveLength(1);
});

test.each([
  ['--allow', KEY],
  ['--iam', 'demo'],
])('with %s %s the device has an administrator', { tags: ['slow'] }, async (...option) => {
  await init(...option);
  const { code, stderr } = await init();
  expect([code, stderr]).toEqual([0, expect.not.stringMatching(NOTE)]);
});

test('a user invited without a role is denied everything, and the roles are listed', { tags: ['slow'] }, async () => {
  await init();
  expect((await svcInProcess(['device', 'invite', 'carol', '--data', data])).stderr).toMatch(/--role, of .*Guest, Standard, Administrator/);
  expect((await svcInProcess(['device', 'invite', 'dave', '--role', 'Guest', '--data', data])).stderr).toBe('');
});

/** Where a device writes that its base station does not know it. */
function followed(json: boolean): { stdout: string; stderr: string } {
  const written = { stdout: '', stderr: '' };
  const sink = (name: 'stdout' | 'stderr') =>
    new Writable({
      write(chunk, _encoding, done) {
        written[name] += chunk;
        done();
      },
    });
  let tell = (_event: DeviceEvent, _reason: RemoteError | null): void => {};
  const device = {
    onDeviceEvent: (listener: typeof tell) => {
      tell = listener;
    },
    onConnectionEvent: () => {},
    onDatagramLoss: () => {},
  };
  follow(
    device as unknown as Device,
    { onChange: () => {} } as unknown as Iam,
    new Output(json, { stdout: sink('stdout'), stderr: sink('stderr') }),
  );
  tell('ATTACHED', null);
  tell('UNKNOWN_FINGERPRINT', new RemoteError('UNKNOWN_FINGERPRINT', 'not registered'));
  return written;
}

test('an error goes to standard error, and stays an event of --json', () => {
  expect(followed(false)).toEqual({
    stdout: 'attached to the base station\n',
    stderr: expect.stringMatching(/^warning: UNKNOWN_FINGERPRINT: not registered: register the device/),
  });
  const { stdout, stderr } = followed(true);
  expect(
    stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line).event),
  ).toEqual(['attached', 'unknown-fingerprint']);
  expect(stderr).toBe('');
});
