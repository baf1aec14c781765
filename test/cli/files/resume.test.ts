/** Files that are interrupted, resumed, changed meanwhile and damaged, in both directions; limits of the disk. */
import { createHash } from 'node:crypto';
import { appendFile, link, mkdir, open, readdir, readFile, rm, stat, symlink, truncate, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeEach, describe, expect, test, vi } from 'vitest';
import { installFiles } from '../../../cli/device-app/files.ts';
import { listFiles } from '../../../cli/files/list.ts';
import { encodeLine, FILE_PORT, FileReader } from '../../../cli/files/protocol.ts';
import type { TransferOptions, TransferResult, TransferStart } from '../../../cli/files/stream.ts';
import { downloadFile, uploadFile } from '../../../cli/files/transfer.ts';
import { TestProcess } from '../../support/process.ts';
import { seeds } from '../../support/tiered.ts';
import { MemoryDevice } from './memory-streams.ts';
import { clock, content, message, OTHER, SIZE, sizeOf, TransferScene } from './transfer-scene.ts';

let scene: TransferScene;
let folder: string;
let directory: string;
let source: string;
let target: string;
let memory: MemoryDevice;
beforeEach(async () => {
  scene = await TransferScene.open();
  ({ folder, directory, source, target, memory } = scene);
});

/** Transfers the file in one direction. */
interface Way {
  /** The end that has it. */
  from: () => string;
  to: () => string;
  move(options?: TransferOptions, cutAfter?: number): Promise<TransferResult>;
  /** The partial file of an interrupted attempt. */
  part: () => string;
  /** Bytes that an interrupted attempt left; 0: none. */
  left(): Promise<number>;
}

const ways: Record<'send' | 'receive', Way> = {
  send: {
    from: () => source,
    to: () => join(directory, 'file'),
    move: (options, cutAfter) => uploadFile(memory.connection(undefined, cutAfter), source, 'file', options),
    left: async () => {
      await memory.settled();
      return sizeOf(ways.send.part());
    },
    part: () => join(directory, `.file.${'a'.repeat(64)}.part`),
  },
  receive: {
    from: () => join(directory, 'file'),
    to: () => target,
    move: (options, cutAfter) => downloadFile(memory.connection(undefined, cutAfter), 'file', target, options),
    part: () => `${target}.svc.part`,
    left: () => sizeOf(ways.receive.part()),
  },
};

describe.each(Object.entries(ways))('%s', (_, way) => {
  test('a transfer that broke is resumed where it ended, and leaves nothing but the file', async () => {
    await writeFile(way.from(), content(1));
    const beginnings: TransferStart[] = [];
    expect(await message(way.move({}, 220_000))).toMatch(/aborted/);
    const left = await way.left();
    expect(left).toBeGreaterThan(30_000);
    const result = await way.move({ onBegin: (beginning) => beginnings.push(beginning) });
    expect(beginnings).toEqual([{ offset: left, total: SIZE }]);
    expect(result).toMatchObject({ bytes: SIZE, resumedFrom: left });
    expect((await readFile(way.to())).equals(content(1))).toBe(true);
    expect(await way.left()).toBe(0);
    expect((await readdir(directory)).filter((name) => name !== 'file')).toEqual([]);
    expect((await readdir(folder)).filter((name) => name.includes('part'))).toEqual([]);
  });

  test('a part that had become the file when its process was killed is begun again: the file stays whole', async () => {
    await writeFile(way.to(), content(1));
    await link(way.to(), way.part());
    await writeFile(way.from(), content(2));
    expect(await message(way.move({}, 150_000))).toMatch(/aborted/);
    expect(await way.left()).toBeGreaterThan(0);
    expect((await readFile(way.to())).equals(content(1))).toBe(true);
    await way.move();
    expect((await readFile(way.to())).equals(content(2))).toBe(true);
    expect(await way.left()).toBe(0);
  });

  test('a part of another user is not continued', async () => {
    await writeFile(way.part(), content(1).subarray(0, 1000));
    await writeFile(way.from(), content(1));
    const getuid = vi.spyOn(process, 'getuid').mockReturnValue((process.getuid?.() ?? 0) + 1);
    const { resumedFrom } = await way.move().finally(() => getuid.mockRestore());
    expect(resumedFrom).toBe(0);
    expect((await readFile(way.to())).equals(content(1))).toBe(true);
  });

  test('a signal ends it with its reason, and it can be resumed', async () => {
    await writeFile(way.from(), content(2));
    const stop = new AbortController();
    const onProgress = (done: number): void => void (done > 220_000 && stop.abort(new Error('enough')));
    expect(await message(way.move({ signal: stop.signal, onProgress }))).toBe('enough');
    expect(await way.left()).toBeGreaterThan(0);
    expect((await way.move()).resumedFrom).toBeGreaterThan(0);
  });

  test.each([
    ['other content', (path: string) => writeFile(path, content(4)), 4, SIZE, false],
    ['one byte of it is different', (path: string) => poke(path, 1000), undefined, SIZE, false],
    ['it is shorter than the part', (path: string) => truncate(path, 5000), 3, 5000, false],
    ['it has grown', (path: string) => appendFile(path, 'more'), undefined, SIZE + 4, true],
    ['it equals the part', (path: string, left: number) => truncate(path, left), 3, undefined, true],
  ] as const)('a file that changed meanwhile: %s', async (_name, change, seed, size, resumed) => {
    await writeFile(way.from(), content(3));
    await message(way.move({}, 220_000));
    const left = await way.left();
    await change(way.from(), left);
    let beginnings = 0;
    const result = await way.move({ onBegin: () => beginnings++ });
    // A different beginning is known before any transfer.
    expect(beginnings).toBe(1);
    expect(result.resumedFrom).toBe(resumed ? left : 0);
    expect(result.bytes).toBe(size ?? left);
    expect((await readFile(way.to())).equals(await readFile(way.from()))).toBe(true);
    if (seed !== undefined) expect((await readFile(way.to())).equals(content(seed).subarray(0, result.bytes))).toBe(true);
  });

  test('an existing file stays without replace, and nothing is transferred', async () => {
    await writeFile(way.from(), content(5));
    await writeFile(way.to(), 'mine');
    let began = 0;
    const refused = way.move({ replace: false, onBegin: () => began++ });
    if (way === ways.send) {
      expect(await message(refused)).toMatch(/a file of that name exists already/);
      expect(began).toBe(0);
    } else await expect(refused).rejects.toMatchObject({ code: 'EXISTS' });
    expect(await readFile(way.to(), 'utf8')).toBe('mine');
    await way.move({ replace: true });
    expect((await readFile(way.to())).equals(content(5))).toBe(true);
  });

  test.each([0, 1, 65_536, 262_145])('a file of %i bytes', async (size) => {
    await writeFile(way.from(), content(6, size));
    expect(await way.move({ replace: false })).toMatchObject({ bytes: size, resumedFrom: 0 });
    expect((await readFile(way.to())).equals(content(6, size))).toBe(true);
    expect(await way.left()).toBe(0);
  });
});

describe('a file that is cut at any byte and resumed until it is whole passes both ways, from a device that starts again', () => {
  async function passes(seed: number): Promise<void> {
    const size = 1 + (content(seed, 4).readUInt32LE() % 200_000);
    await writeFile(source, content(seed, size));
    for (const way of [ways.send, ways.receive]) {
      for (let attempt = 0; ; attempt++) {
        const cut = attempt < 3 ? content(seed * 7 + attempt, 4).readUInt32LE() % size : Number.POSITIVE_INFINITY;
        const outcome = await message(way.move({ replace: false }, cut));
        await memory.settled();
        if (outcome === 'done') break;
        expect(await sizeOf(way.to())).toBe(0);
        memory = new MemoryDevice();
        await installFiles(memory.device, directory, { clock });
      }
      expect((await readFile(way.to())).equals(content(seed, size))).toBe(true);
    }
  }
  test.each(seeds(1, 6))('seed %i', passes);
  test.each(seeds(7, 100))('seed %i', { tags: ['slow'] }, passes);
});

describe('a damaged file', () => {
  /** A device that damages each file, `times` times. */
  function damaging(times: number): MemoryDevice {
    const device = new MemoryDevice();
    let left = times;
    device.device.addStreamListener(FILE_PORT, async (incoming) => {
      const stream = incoming.accept();
      const { offset } = await new FileReader(stream).readLine();
      const whole = await scene.stored();
      await stream.write(encodeLine({ size: whole.length, offset: left === times ? (offset ?? 0) : 0 }));
      const rest = Buffer.from(whole.subarray(left === times ? Number(offset ?? 0) : 0));
      if (left-- > 0) rest[0]! ^= 1;
      await stream.write(rest);
      await stream.write(encodeLine({ sha256: createHash('sha256').update(whole).digest('hex') }));
      await stream.close();
    });
    return device;
  }

  test('is fetched once more, as a whole', async () => {
    await writeFile(join(directory, 'file'), content(7));
    await writeFile(`${target}.svc.part`, content(7).subarray(0, 1000));
    expect(await downloadFile(damaging(1).connection(), 'file', target)).toMatchObject({ resumedFrom: 0, bytes: SIZE });
    expect((await readFile(target)).equals(content(7))).toBe(true);
  });

  test('fails when it is damaged again, and nothing is left', async () => {
    await writeFile(join(directory, 'file'), content(7));
    expect(await message(downloadFile(damaging(2).connection(), 'file', target))).toMatch(/SHA-256 at the two ends differs/);
    expect(await readdir(folder)).toEqual(['device']);
  });

  test.each([
    [1, 'done'],
    [2, /the device refused: what arrived is not what was sent/],
  ])('is sent in %i attempts when the hash differs', async (times, outcome) => {
    await writeFile(source, content(8));
    let left = times;
    const connection = memory.connection();
    const openStream = connection.openStream.bind(connection);
    connection.openStream = (port) => {
      const stream = openStream(port);
      const write = stream.write.bind(stream);
      stream.write = (data) => {
        const text = new TextDecoder().decode(data as Uint8Array);
        return text.startsWith('{"sha256"') && left-- > 0 ? write(encodeLine({ sha256: '0'.repeat(64) })) : write(data);
      };
      return stream;
    };
    expect(await message(uploadFile(connection, source, 'file', { replace: false }))).toMatch(outcome);
    await memory.settled();
    expect(await readdir(directory)).toEqual(times === 1 ? ['file'] : []);
  });
});

describe('on the disk of the device', () => {
  test('a link to a file elsewhere, and a pipe, are no files to receive', async () => {
    await writeFile(source, 'elsewhere');
    await symlink(source, join(directory, 'link'));
    await new TestProcess('mkfifo', [join(directory, 'pipe')]).succeeded();
    for (const name of ['link', 'pipe', 'nothing'])
      expect(await message(downloadFile(memory.connection(), name, target))).toMatch(/there is no such file/);
    expect(await readdir(folder)).toEqual(['device', 'source']);
  });

  test('space is requested only for the missing bytes, and a resumable part stays when there is none', async () => {
    const RESERVE = 8 << 20;
    await writeFile(source, content(17));
    await message(uploadFile(memory.connection(undefined, 220_000), source, 'file'));
    const left = await ways.send.left();
    const small = new MemoryDevice();
    let room = RESERVE + SIZE - left - 1;
    await installFiles(small.device, directory, { clock, free: async () => room });
    expect(await message(uploadFile(small.connection(), source, 'file'))).toMatch(/no room/);
    await small.settled();
    expect(await ways.send.left()).toBe(left);
    room++;
    expect((await uploadFile(small.connection(), source, 'file')).resumedFrom).toBe(left);
  });

  test('many concurrent transfers, each below the checked size, leave the reserve free', async () => {
    const [RESERVE, MIB] = [8 << 20, 1 << 20];
    const used = async (): Promise<number> => {
      const sizes = (await readdir(directory)).map((name) => sizeOf(join(directory, name)));
      return (await Promise.all(sizes)).reduce((sum, size) => sum + size, 0);
    };
    const free = async (): Promise<number> => RESERVE + 2 * MIB - (await used());
    const small = new MemoryDevice();
    await installFiles(small.device, directory, { clock, free });
    const begin = async (_: unknown, index: number) => {
      const stream = small.connection().openStream(FILE_PORT);
      await stream.opened;
      await stream.write(encodeLine({ op: 'send', name: `file${index}`, size: MIB, replace: true }));
      const reader = new FileReader(stream);
      expect(await reader.readLine()).toMatchObject({ offset: 0 });
      return { stream, reader };
    };
    const all = await Promise.all(Array.from({ length: 8 }, begin));
    // One byte is missing each time, and no more is sent.
    const sent = all.map(async ({ stream, reader }) => {
      await stream.write(encodeLine({ offset: 0 }));
      await stream.write(encodeLine({ bytes: MIB - 1 }));
      const refused = reader.readLine().then(({ code }) => code);
      const taken = stream.write(new Uint8Array(MIB - 1)).then(() => 'taken');
      return Promise.race([refused, taken.catch(() => refused)]);
    });
    expect(new Set(await Promise.all(sent))).toEqual(new Set(['taken', 'NO_ROOM']));
    expect(await free()).toBeGreaterThanOrEqual(RESERVE);
    for (const { stream } of all) stream.abort();
    await small.settled();
  });
});

test('a device with its maximum of files accepts no new one, not even an empty one, until one is removed', async () => {
  const full = new MemoryDevice();
  await installFiles(full.device, directory, { clock, maxFiles: 2 });
  await writeFile(source, '');
  const send = (name: string) => message(uploadFile(full.connection(), source, name));
  expect([await send('one'), await send('two')]).toEqual(['done', 'done']);
  expect(await send('three')).toMatch(/the device accepts no further files/);
  expect((await readdir(directory)).sort()).toEqual(['one', 'two']);
  expect(await send('two')).toBe('done');
  await rm(join(directory, 'one'));
  expect(await send('three')).toBe('done');
});

test.each([
  ['more than was announced', '{"offset":0}\n{"bytes":4}\n', /more than was announced/],
  [
    'less than was announced',
    `{"offset":0}\n{"bytes":2}\nab{"sha256":"${createHash('sha256').update('ab').digest('hex')}"}\n`,
    /less than/,
  ],
  ['from elsewhere', '{"offset":2}\n', /neither here nor/],
  ['neither pieces nor an end', '{"offset":0}\n{"bytes":-1}\n', /more than was announced/],
  ['no line', '{"offset":0}\nabc\n', /not JSON/],
])('a client that sends %s is refused, and makes no file', async (_, sent, refusal) => {
  const stream = memory.connection().openStream(FILE_PORT);
  await stream.opened;
  const reader = new FileReader(stream);
  await stream.write(encodeLine({ op: 'send', name: 'file', size: 3 }));
  expect(await reader.readLine()).toMatchObject({ offset: 0 });
  await stream.write(new TextEncoder().encode(sent));
  expect(await reader.readLine()).toEqual({ error: expect.stringMatching(refusal), code: 'INVALID' });
  stream.abort();
  await memory.settled();
  expect(await readdir(directory)).not.toContain('file');
});

test('the list has only files, sorted', async () => {
  await writeFile(join(directory, 'b'), 'two');
  await writeFile(join(directory, 'a.txt'), '');
  await writeFile(join(directory, `.b.${OTHER}.part`), 'x');
  await writeFile(join(directory, 'with blank'), 'x');
  await mkdir(join(directory, 'folder'));
  const { mtimeMs } = await stat(join(directory, 'b'));
  expect(await listFiles(memory.connection())).toEqual([
    { name: 'a.txt', size: 0, time: expect.any(Number) },
    { name: 'b', size: 3, time: Math.trunc(mtimeMs) },
  ]);
});

/** Changes one byte. */
async function poke(path: string, at: number): Promise<void> {
  const file = await open(path, 'r+');
  const { buffer } = await file.read(Buffer.alloc(1), 0, 1, at);
  await file.write(Buffer.of(buffer[0]! ^ 1), 0, 1, at);
  await file.close();
}
