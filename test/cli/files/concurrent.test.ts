/** Transfers of the same name at the same time, by one client, by two, and into one directory. */
import { appendFile, readdir, readFile, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { beforeEach, describe, expect, test } from 'vitest';
import { PartFile } from '../../../cli/files/part-file.ts';
import type { TransferResult } from '../../../cli/files/stream.ts';
import { downloadFile, uploadFile } from '../../../cli/files/transfer.ts';
import { TestProcess } from '../../support/process.ts';
import type { MemoryDevice } from './memory-streams.ts';
import { content, message, OTHER, sizeOf, TransferScene } from './transfer-scene.ts';

let scene: TransferScene;
let directory: string;
let source: string;
let target: string;
let memory: MemoryDevice;
beforeEach(async () => {
  scene = await TransferScene.open();
  ({ directory, source, target, memory } = scene);
});

describe('concurrent transfers of the same name', () => {
  test('by one client: the later takes over, and the earlier reports that', async () => {
    await writeFile(source, content(9));
    let second: Promise<TransferResult> | undefined;
    const pace = async (): Promise<void> => {
      second ??= uploadFile(memory.connection(), source, 'file');
      await second;
    };
    expect(await message(uploadFile(memory.connection(), source, 'file', { pace }))).toMatch(
      /another transfer of this name by the same client took over/,
    );
    expect((await scene.stored()).equals(content(9))).toBe(true);
    await memory.settled();
    expect(await readdir(directory)).toEqual(['file']);
  });

  test('by two clients: each has its own part, and the later does not replace the file of the other', async () => {
    await writeFile(source, content(10));
    await writeFile(`${source}2`, content(11));
    let second: Promise<TransferResult> | undefined;
    const pace = async (): Promise<void> => {
      second ??= uploadFile(memory.connection(OTHER), `${source}2`, 'file', { replace: false });
      await second;
    };
    expect(await message(uploadFile(memory.connection(), source, 'file', { pace, replace: false }))).toMatch(
      /a file of that name exists already/,
    );
    expect((await scene.stored()).equals(content(11))).toBe(true);
  });

  test('into this directory: the second is refused', async () => {
    await writeFile(join(directory, 'file'), content(12));
    const part = await PartFile.open(target);
    expect(await message(downloadFile(memory.connection(), 'file', target))).toBe(
      `${target}.svc.part is being written by this process: wait for it, or end it`,
    );
    await part.close();
    expect(await message(downloadFile(memory.connection(), 'file', target))).toBe('done');
  });

  test('into this directory: a part that an undetected process also wrote never becomes a file', async () => {
    const part = await PartFile.open(target);
    await part.append(content(13, 100));
    await appendFile(`${target}.svc.part`, 'x');
    await expect(part.finish(true)).rejects.toThrow(/is being written by another process/);
    await part.close();
    expect(await sizeOf(target)).toBe(0);
  });

  test('into this directory: a partial file of another program stays', async () => {
    await writeFile(join(directory, 'file'), content(12));
    await writeFile(`${target}.part`, 'of another program');
    await downloadFile(memory.connection(), 'file', target, { replace: false });
    expect(await readFile(`${target}.part`, 'utf8')).toBe('of another program');
  });

  test('into this directory: a FIFO in the place of the part is refused at once', async () => {
    await new TestProcess('mkfifo', [`${target}.svc.part`]).succeeded();
    await expect(PartFile.open(target)).rejects.toThrow(`${target}.svc.part is not a file`);
  });

  test('into this directory: the lock of a killed process does not count, and nothing is left of it', async () => {
    await writeFile(join(directory, 'file'), content(12));
    await writeFile(`${target}.svc.part.lock.0123456789ab`, '');
    await downloadFile(memory.connection(), 'file', target);
    expect((await readdir(dirname(target))).filter((name) => name.includes('.svc.part'))).toEqual([]);
  });
});
