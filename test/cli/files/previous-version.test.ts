/** Files between this version and the previous one, which can neither resume nor list. */
import { readdir, readFile, writeFile } from 'node:fs/promises';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { listFiles } from '../../../cli/files/list.ts';
import type { Beginning } from '../../../cli/files/stream.ts';
import { downloadFile, uploadFile, uploadFlow } from '../../../cli/files/transfer.ts';
import { MemoryDevice } from './memory-streams.ts';
import { installOlderFiles, olderGet, olderPut } from './older-peers.ts';
import { content, message, SIZE, TransferScene } from './transfer-scene.ts';

let scene: TransferScene;
let directory: string;
let source: string;
let target: string;
let memory: MemoryDevice;
beforeEach(async () => {
  scene = await TransferScene.open();
  ({ directory, source, target, memory } = scene);
});
afterEach(() => scene.close());

describe('with a peer of the previous version', () => {
  test('a device sends and receives whole files, and detects existing ones', async () => {
    const older = new MemoryDevice();
    installOlderFiles(older, directory);
    await writeFile(source, content(18));
    const beginnings: Beginning[] = [];
    const onBegin = (beginning: Beginning): void => void beginnings.push(beginning);
    await uploadFile(older.connection(), source, 'file', { replace: false, onBegin });

    expect((await scene.stored()).equals(content(18))).toBe(true);
    await expect(uploadFile(older.connection(), source, 'file', { replace: false, onBegin })).rejects.toMatchObject({ code: 'EXISTS' });
    await uploadFile(older.connection(), source, 'file', { onBegin });
    expect(beginnings).toEqual(Array(2).fill({ offset: 0, total: SIZE, resumable: false }));
    await writeFile(`${target}.svc.part`, content(18).subarray(0, 1000));
    expect(await downloadFile(older.connection(), 'file', target)).toMatchObject({ resumedFrom: 0, bytes: SIZE });
    expect((await readFile(target)).equals(content(18))).toBe(true);
    expect(await message(listFiles(older.connection()))).toMatch(/earlier version, which cannot list/);
    const flow = { pieces: (async function* () {})(), stop: () => {} };
    expect(await message(uploadFlow(older.connection(), flow, 'x'))).toMatch(/earlier version, which accepts nothing of unknown length/);
    expect(await message(uploadFile(older.connection(), source, 'a b'))).toMatch(/a file name has/);
  });

  test('a client sends and fetches whole files, and replaces', async () => {
    for (const seed of [19, 20]) {
      expect(await olderPut(memory.connection(), 'file', content(seed))).toMatchObject({ size: SIZE });
      expect((await olderGet(memory.connection(), 'file')).equals(content(seed))).toBe(true);
    }
    await message(olderPut(memory.connection(undefined, 220_000), 'other', content(21)));
    await memory.settled();
    expect(await readdir(directory)).toEqual(['file']);
  });
});
