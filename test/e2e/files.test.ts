/**
 * `svc stream` with a device whose disk or stream halts: Ctrl-C at that point, and then the same command again.
 *
 * @module-tag slow
 */
import { randomBytes } from 'node:crypto';
import { mkdir, mkdtemp, readdir, readFile, rm, stat, watch, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { installFiles } from '../../cli/device-app/files.ts';
import { CHUNK } from '../../cli/files/protocol.ts';
import type { Device, DeviceStream } from '../../device/index.ts';
import { nodeEnvironment } from '../../platform/node/index.ts';
import { LoopbackFixture } from '../support/fixture/loopback.ts';
import { MAIN } from '../support/fixture/processes.ts';
import { TestProcess } from '../support/process.ts';
import { svcProcess } from './commands.ts';
import { svcInProcess } from './in-process.ts';

const MIB = 1 << 20;
const content = randomBytes(4 * MIB);

let folder: string;
let directory: string;
/** The device, for commands. */
let at: string[];
/** Awaited when the device has written or sent a mebibyte. */
let halt: () => Promise<void>;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'svc-stream-'));
  directory = join(folder, 'device');
  await mkdir(directory);
  await writeFile(join(folder, 'source'), content);
  halt = async () => {};
  const fixture = new LoopbackFixture();
  const under = fixture.device();
  under.device.onAuthorizationRequest(() => true);
  await installFiles(halting(under.device), directory, { clock: nodeEnvironment().clock, free: roomy() });
  await fixture.start(under);
  const { localPort, deviceFingerprint } = under.device;
  at = ['--address', `127.0.0.1:${localPort}`, '--fingerprint', deviceFingerprint, '--state', join(folder, 'state')];
});
afterEach(() => rm(folder, { recursive: true }));

/**
 * Free space: enough; queried before the transfer, at its first piece, and whenever another piece would pass a
 * mebibyte.
 */
function roomy(): () => Promise<number> {
  let asked = 0;
  return async () => {
    if (++asked === 3) await halt();
    return 2 ** 40;
  };
}

/** The device, whose file service halts when it has sent a mebibyte. */
function halting(device: Device): Device {
  const accepting = (incoming: DeviceStream): DeviceStream => ({
    port: incoming.port,
    connection: incoming.connection,
    refuse: (code) => incoming.refuse(code),
    accept: () => {
      const stream = incoming.accept();
      const write = stream.write.bind(stream);
      let sent = 0;
      stream.write = async (data) => {
        const { length } = data as Uint8Array;
        if (sent < MIB && sent + length >= MIB) await halt();
        sent += length;
        return write(data);
      };
      return stream;
    },
  });
  return new Proxy(device, {
    get: (target, name) => {
      if (name === 'addStreamListener')
        return (port: number, handler: (stream: DeviceStream) => Promise<void>) =>
          target.addStreamListener(port, (incoming) => handler(accepting(incoming)));
      const value: unknown = Reflect.get(target, name, target);
      return typeof value === 'function' ? value.bind(target) : value;
    },
  });
}

const stream = (...args: string[]): ReturnType<typeof svcInProcess> => svcInProcess(['stream', ...args, ...at]);
const startStream = (...args: string[]): TestProcess => new TestProcess(process.execPath, [MAIN, 'stream', ...args, ...at]);

/** Resolves when a file of the folder is not empty. */
async function filled(path: string): Promise<void> {
  const stop = new AbortController();
  const changes = watch(folder, { signal: stop.signal });
  const here = async (): Promise<boolean> => (await stat(path).catch(() => null))?.size !== undefined && (await stat(path)).size > 0;
  if (!(await here())) for await (const _ of changes) if (await here()) break;
  stop.abort();
}

test('Ctrl-C while a file is sent: one line, and the same command resumes', async () => {
  let sending: TestProcess | undefined;
  halt = async () => void (await sending?.end('SIGINT'));
  sending = startStream('send', join(folder, 'source'), 'file');
  const { code, stdout, stderr } = await sending.ended;
  expect([code, stdout]).toEqual([130, '']);
  expect(stderr).toMatch(
    /^svc: interrupted: \d\.\d of 4\.0 MiB were sent; the device keeps its part for 24 hours, and the same command resumes\n$/,
  );
  halt = async () => {};
  const { stdout: result } = await stream('send', join(folder, 'source'), 'file', '--json');
  expect(JSON.parse(result)).toMatchObject({ bytes: content.length });
  expect(JSON.parse(result).resumedFrom).toBeGreaterThan(MIB - CHUNK);
  expect((await readFile(join(directory, 'file'))).equals(content)).toBe(true);
  expect(await readdir(directory)).toEqual(['file']);
});

test('Ctrl-C while a file is received: one line, a part beside its place, and the same command resumes', async () => {
  await writeFile(join(directory, 'file'), content);
  const target = join(folder, 'copy');
  let receiving: TestProcess | undefined;
  halt = async () => {
    await filled(`${target}.svc.part`);
    await receiving?.end('SIGINT');
  };
  receiving = startStream('receive', 'file', target);
  const { code, stdout, stderr } = await receiving.ended;
  expect([code, stdout]).toEqual([130, '']);
  expect(stderr).toMatch(/^svc: interrupted: \d\.\d of 4\.0 MiB are in .*copy\.svc\.part; the same command resumes\n$/);
  expect((await readdir(folder)).filter((name) => name.startsWith('copy'))).toEqual(['copy.svc.part']);
  const { size: left } = await stat(`${target}.svc.part`);
  halt = async () => {};
  expect(JSON.parse((await stream('receive', 'file', target, '--json')).stdout)).toMatchObject({ resumedFrom: left });
  expect((await readFile(target)).equals(content)).toBe(true);
  expect((await readdir(folder)).filter((name) => name.startsWith('copy'))).toEqual(['copy']);
});

test('an existing file is replaced only with --force, and the list shows the files', async () => {
  const [source, copy] = [join(folder, 'source'), join(folder, 'copy')];
  expect((await stream('list')).stdout).toBe('the device has no files\n');
  expect((await stream('send', source, 'file')).code).toBe(0);
  await writeFile(source, 'other');
  expect(await stream('send', source, 'file')).toMatchObject({
    code: 1,
    stderr: 'svc: the device has a file file: give another name, or --force to replace it\n',
  });
  expect((await stream('send', source, 'file', '--force')).code).toBe(0);
  expect((await stream('receive', 'file', copy)).code).toBe(0);
  const exists = { code: 1, stderr: `svc: ${copy} exists already: give another name, or --force to replace it\n` };
  expect(await stream('receive', 'file', copy)).toMatchObject(exists);
  expect((await stream('receive', 'file', copy, '--force')).code).toBe(0);
  expect((await stream('list')).stdout).toMatch(/^NAME {2}BYTES {2}CHANGED\nfile {6}5 {2}\d{4}-\d\d-\d\d \d\d:\d\dZ\n$/);
  expect(JSON.parse((await stream('list', '--json')).stdout)).toEqual([{ name: 'file', size: 5, time: expect.stringMatching(/Z$/) }]);
  const { stderr } = await stream('receive', 'nothing', join(folder, 'nothing'));
  const [, command = ''] = /^svc: the device refused: there is no such file: svc (.*) shows what it has\n$/.exec(stderr) ?? [];
  // It runs as printed; the address, which is not fixed here, was remembered.
  expect(await svcInProcess([...command.split(' '), '--no-local'])).toMatchObject({ code: 0, stdout: expect.stringMatching(/file/) });
  expect((await readdir(folder)).filter((name) => name.startsWith('nothing'))).toEqual([]);
});

test('standard input and output carry the file and nothing else', async () => {
  const sent = await svcProcess({ input: 'hello\n' }, 'stream', 'send', '-', 'greeting', ...at);
  expect(sent).toMatchObject({ code: 0, stderr: '', stdout: expect.stringMatching(/^6 bytes in/) });
  expect(await svcProcess({}, 'stream', 'receive', 'greeting', '-', ...at)).toEqual({ code: 0, stdout: 'hello\n', stderr: '' });
});
