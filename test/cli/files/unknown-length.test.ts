/** Content of unknown length, in both directions: pipes in place of files. */
import { readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeEach, describe, expect, test } from 'vitest';
import { installFiles } from '../../../cli/device-app/files.ts';
import { downloadFlow } from '../../../cli/files/download.ts';
import { upload } from '../../../cli/files/upload.ts';
import { MemoryDevice } from './memory-streams.ts';
import { clock, content, message, SIZE, TransferScene } from './transfer-scene.ts';

let scene: TransferScene;
let directory: string;
let memory: MemoryDevice;
beforeEach(async () => {
  scene = await TransferScene.open();
  ({ directory, memory } = scene);
});

describe('content of unknown length', () => {
  async function* pieces(data: Uint8Array, fail = Number.POSITIVE_INFINITY) {
    for (let at = 0; at < data.length; at += 10_000) {
      if (at >= fail) throw new Error('the pipe broke');
      yield data.subarray(at, at + 10_000);
    }
  }
  const flow = (data: Uint8Array, fail?: number) => ({ pieces: pieces(data, fail), stop: () => {} });

  test('is sent as it arrives; a failure leaves nothing', async () => {
    expect(await upload(memory.connection(), flow(content(13)), 'file')).toMatchObject({ bytes: SIZE, resumedFrom: 0 });
    expect((await scene.stored()).equals(content(13))).toBe(true);
    expect(await message(upload(memory.connection(), flow(content(13), 220_000), 'other'))).toBe('the pipe broke');
    await memory.settled();
    expect(await readdir(directory)).toEqual(['file']);
  });

  test('is not read when the device has the name', async () => {
    await writeFile(join(directory, 'file'), 'mine');
    let stopped = 0;
    const unread = {
      pieces: {
        // biome-ignore lint/correctness/useYield: it must not be read
        async *[Symbol.asyncIterator]() {
          stopped = Number.NaN;
        },
      },
      stop: () => stopped++,
    };
    expect(await message(upload(memory.connection(), unread, 'file', { replace: false }))).toMatch(/a file of that name exists/);
    expect(stopped).toBe(0);
  });

  test('stops waiting for more when the device refuses', async () => {
    const small = new MemoryDevice();
    let asked = 0;
    await installFiles(small.device, directory, { clock, free: async () => (asked++ === 0 ? 2 ** 30 : 0) });
    let stop = (_error: unknown): void => {};
    const never = new Promise<never>((_, reject) => (stop = reject));
    never.catch(() => {});
    const waiting = async function* () {
      yield content(14, (1 << 20) + 1);
      await never;
    };
    const sent = upload(small.connection(), { pieces: waiting(), stop: (error) => stop(error) }, 'file');
    expect(await message(sent)).toMatch(/the device has no room for the file/);
  });

  test('is passed on as it arrives', async () => {
    await writeFile(join(directory, 'file'), content(16));
    const taken: Uint8Array[] = [];
    await downloadFlow(memory.connection(), 'file', async (piece) => void taken.push(piece.slice()));
    expect(Buffer.concat(taken).equals(content(16))).toBe(true);
  });
});
