/** The parts of `svc device` that need no network: allow lists, state, the thermostat's room, the file protocol. */
import { readdir, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeEach, describe, expect, test } from 'vitest';
import { readAllowed } from '../../cli/device-app/allow.ts';
import { DeviceData } from '../../cli/device-app/data.ts';
import { Thermostat, type ThermostatState } from '../../cli/device-app/thermostat.ts';
import { encodeLine, FileReader, isFileName, readRequest } from '../../cli/files/protocol.ts';
import { LocalError } from '../../protocol/errors/index.ts';
import { encodePrivateKey } from '../../protocol/identity/index.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';

const FP = 'ab'.repeat(32);

let directory: string;
beforeEach(() => {
  directory = temporaryDirectory();
});

describe('--allow', () => {
  test('accepts fingerprints, and files of them', async () => {
    const file = join(directory, 'clients');
    await writeFile(file, `# mine\n\n${FP.toUpperCase()}  # phone\n`);
    expect(await readAllowed([])).toEqual(new Set());
    expect(await readAllowed([FP.toUpperCase()])).toEqual(new Set([FP]));
    expect(await readAllowed([file, 'cd'.repeat(32)])).toEqual(new Set([FP, 'cd'.repeat(32)]));
  });

  test('refuses anything else, with the line', async () => {
    const file = join(directory, 'clients');
    await writeFile(file, `${FP}\nnonsense\n`);
    await expect(readAllowed([file])).rejects.toThrow(/line 2/);
    for (const value of ['nonsense', 'any']) await expect(readAllowed([value])).rejects.toThrow(`--allow ${value}`);
    await expect(readAllowed([directory])).rejects.toThrow(/--allow/);
  });
});

describe("a device's directory", () => {
  const state = { ProductId: 'pr', DeviceId: 'de' };

  test('keeps key and state over restarts, for this user alone', async () => {
    const path = join(directory, 'data');
    const [pem, other] = [1, 2].map((byte) => encodePrivateKey(new Uint8Array(32).fill(byte))) as [string, string];
    const first = await DeviceData.open(path);
    expect(first.state).toBeNull();
    expect(await first.privateKey(() => pem)).toBe(pem);
    await Promise.all([first.update(state), first.update({ ServerUrl: 'https://a:1' }), first.update({ ServerUrl: 'https://b:1' })]);
    const second = await DeviceData.open(path);
    expect(second.state).toEqual({ Version: 1, ...state, ServerUrl: 'https://b:1' });
    expect(await second.privateKey(() => other)).toBe(pem);
    for (const file of ['key.pem', 'state.json', '']) expect((await stat(join(path, file))).mode & 0o077).toBe(0);
  });

  test.each([['notes.txt'], ['audit', 'device.ts'], ['basestation.sqlite']])(
    'of another program is refused and left unchanged: %s',
    async (...names) => {
      for (const name of names) await writeFile(join(directory, name), '');
      await expect(DeviceData.open(directory)).rejects.toThrow(
        `${directory} is not empty and holds no data of a device: choose an empty or a new directory`,
      );
      expect((await readdir(directory)).sort()).toEqual([...names].sort());
    },
  );

  test.each([
    ['.gitkeep', 'lost+found'],
    ['key.pem', 'notes.txt'],
    ['device.json', 'notes.txt'],
    ['device.lock.0123456789ab', 'notes.txt'],
    ['iam-state.json', 'notes.txt'],
    ['audit'],
  ])('with %s is used', async (...names) => {
    for (const name of names) await writeFile(join(directory, name), '');
    expect((await DeviceData.open(directory)).state).toBeNull();
    // Left by a failed start.
    for (const name of names) await rm(join(directory, name));
    expect(await readdir(directory)).toEqual(['files']);
    expect((await DeviceData.open(directory)).state).toBeNull();
  });

  test('writes adopted values to the disk with the next update', async () => {
    const first = await DeviceData.open(directory);
    await first.update(state);
    expect(first.adopt({ ProductId: 'other' })).toMatchObject({ ...state, ProductId: 'other' });
    expect((await DeviceData.open(directory)).state).toMatchObject(state);
    await first.update();
    expect((await DeviceData.open(directory)).state).toMatchObject({ ...state, ProductId: 'other' });
  });

  test('does not change when a write fails, nor with the next write', async () => {
    const data = await DeviceData.open(directory);
    await data.update(state);
    const loop: Record<string, unknown> = {};
    loop.self = loop;
    await expect(data.update({ Thermostat: loop as never })).rejects.toThrow(/circular/);
    await data.update({ AlarmTold: true });
    expect(data.state).toEqual({ Version: 1, ...state, AlarmTold: true });
    expect((await DeviceData.open(directory)).state).toEqual({ Version: 1, ...state, AlarmTold: true });
  });

  const whole = (more: object): string => JSON.stringify({ Version: 1, ...state, ...more });
  test.each([
    '{',
    '[]',
    '{"Version":1}',
    '{"Version":1,"ProductId":"","DeviceId":"d"}',
    whole({ ServerUrl: 5 }),
    whole({ ServerRootCerts: 'PEM' }),
    whole({ AlarmTold: 'yes' }),
    whole({ Thermostat: null }),
    whole({ Thermostat: { Target: '20', Mode: 'heat', Temperature: 20, Time: 0, BoostUntil: 0 } }),
    whole({ Thermostat: { Target: 20, Mode: 'cool', Temperature: 20, Time: 0, BoostUntil: 0 } }),
  ])('with a damaged state.json is refused with its path: %s', async (content) => {
    await writeFile(join(directory, 'state.json'), content);
    await expect(DeviceData.open(directory)).rejects.toThrow(/state\.json/);
  });
});

describe('thermostat', () => {
  const start: ThermostatState = { Target: 20, Mode: 'heat', Temperature: 10, Time: 0, BoostUntil: 0 };
  const at = (state: Partial<ThermostatState>, now: number) =>
    new Thermostat({ state: { ...start, ...state }, save: async () => {}, now: () => now }).snapshot();

  test('warms or cools the room toward its target, or toward outside when off', () => {
    expect(at({}, 0).temperature).toBe(10);
    expect(at({}, 20 * 60_000).temperature).toBeCloseTo(20 - 10 / Math.E, 1);
    expect(at({}, 1e9).temperature).toBe(20);
    expect(at({ Mode: 'off', Temperature: 20 }, 1e9).temperature).toBe(12);
  });

  test('heats faster in a boost, and then follows the target again', () => {
    const BoostUntil = 10 * 60_000;
    expect(at({ BoostUntil }, 10 * 60_000).temperature).toBeGreaterThan(at({}, 10 * 60_000).temperature + 3);
    expect(at({ BoostUntil }, 9.5 * 60_000).boostMinutes).toBe(1);
    expect(at({ BoostUntil }, 1e9)).toMatchObject({ temperature: 20, boostMinutes: 0 });
  });
});

describe('file protocol', () => {
  const source = (...pieces: (string | Uint8Array)[]) => {
    const queue = pieces.map((piece) => (typeof piece === 'string' ? new TextEncoder().encode(piece) : piece));
    return {
      read: async () => {
        const next = queue.shift();
        if (next === undefined) throw new LocalError('END_OF_FILE', 'end');
        return next;
      },
    };
  };
  const collect = async (reader: FileReader, size: number) => {
    let text = '';
    for await (const piece of reader.bytes(size)) text += new TextDecoder().decode(piece);
    return text;
  };

  test('has lines and counted bytes, however they are cut', async () => {
    const whole = '{"size":5}\nhello{"sha256":"x"}\n';
    for (let cut = 1; cut < whole.length; cut++) {
      const reader = new FileReader(source(whole.slice(0, cut), whole.slice(cut)));
      expect(await reader.readLine()).toEqual({ size: 5 });
      expect(await collect(reader, 5)).toBe('hello');
      expect(await reader.readLine()).toEqual({ sha256: 'x' });
    }
  });

  test.each([
    ['no JSON', 'hello\n', 'the line is not JSON'],
    ['no object', '[1]\n', 'the line is not a JSON object'],
    ['no UTF-8', Uint8Array.of(0xff, 0x0a), 'the line is not JSON'],
    ['too long', `"${'x'.repeat(2000)}"\n`, 'the line is too long'],
    ['cut short', '{"op":', 'the peer stopped in the middle'],
  ])('refuses a line that is %s', async (_, line, message) => {
    await expect(new FileReader(source(line)).readLine()).rejects.toThrow(message);
  });

  test('accepts a line of 1,024 bytes, and not one of 1,025', async () => {
    const line = (length: number) => `${'{"size":5}'.padEnd(length)}\n`;
    expect(await new FileReader(source(line(1024))).readLine()).toEqual({ size: 5 });
    await expect(new FileReader(source(line(1025))).readLine()).rejects.toThrow(/too long/);
  });

  test('detects content that is cut short', async () => {
    await expect(collect(new FileReader(source('abc')), 5)).rejects.toThrow(/stopped in the middle/);
  });

  test.each(['a', 'a.txt', '_x-1.tar.gz', 'A'.repeat(128)])('accepts %s as a file name', (name) => {
    expect(isFileName(name)).toBe(true);
    expect(readRequest({ op: 'get', name })).toEqual({ op: 'get', name, offset: 0 });
  });

  test.each(['', '.', '..', '.hidden', '../x', 'a/b', 'a\\b', 'a b', 'é', 'A'.repeat(129), 'a\n'])('refuses %j as a file name', (name) => {
    expect(isFileName(name)).toBe(false);
    expect(() => readRequest({ op: 'get', name })).toThrow(/^a file name has 1 to 128 letters/);
  });

  test.each([
    {},
    { op: 'rm', name: 'a' },
    { op: 'send', name: 'a', size: -1 },
    { op: 'send', name: 'a', size: 1.5 },
    { op: 'send', name: 'a', replace: 'yes' },
    { op: 'get', name: 'a', offset: 5 },
    { op: 'get', name: 'a', offset: -1, sha256: 'ab'.repeat(32) },
    { op: 'get', name: 'a', offset: 5, sha256: 'AB'.repeat(32) },
    { op: 'get', name: 'a', offset: 5, sha256: 'ab'.repeat(31) },
  ])('refuses %j as a request', (line) => {
    expect(() => readRequest(line)).toThrow(expect.objectContaining({ code: 'INVALID' }));
  });

  test('writes a line as it is read', async () => {
    const request = { op: 'send', name: 'a', size: 3, replace: true };
    expect(readRequest(await new FileReader(source(encodeLine(request))).readLine())).toEqual(request);
  });
});
