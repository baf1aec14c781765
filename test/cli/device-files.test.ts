/**
 * The file service of `svc device` on a disk that fills: the space that users, audit log and settings need stays free.
 *
 * @module-tag slow
 */
import { readdir, rm, writeFile } from 'node:fs/promises';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { installFiles } from '../../cli/device-app/files.ts';
import { uploadFile } from '../../cli/files/transfer.ts';
import type { Connection } from '../../client/node.ts';
import { nodeEnvironment } from '../../platform/node/index.ts';
import { LoopbackFixture } from '../support/fixture/loopback.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';

const MIB = 1 << 20;
const RESERVE = 8 * MIB;

let directory: string;
let source: string;
/** The free space of the disk at each query; the last value stays. */
let room: number[];
let connection: Connection;

beforeEach(async () => {
  directory = temporaryDirectory();
  source = `${directory}.source`;
  const fixture = new LoopbackFixture();
  const under = fixture.device();
  under.device.onAuthorizationRequest(() => true);
  const free = async (): Promise<number> => (room.length > 1 ? room.shift()! : room[0]!);
  await installFiles(under.device, directory, { clock: nodeEnvironment().clock, free });
  await fixture.start(under);
  connection = await fixture.connected(under);
});
afterEach(() => rm(source, { force: true }));

async function upload(bytes: number): Promise<string> {
  await writeFile(source, new Uint8Array(bytes));
  try {
    await uploadFile(connection, source, 'file');
    return 'stored';
  } catch (error) {
    return (error as Error).message;
  }
}

test('a file that leaves the reserve is stored, one byte more is refused before anything is written', async () => {
  room = [RESERVE + 3 * MIB];
  expect(await upload(1000)).toBe('stored');
  expect(await upload(3 * MIB + 1)).toMatch(/the device has no room for the file/);
  expect(await readdir(directory)).toEqual(['file']);
});

test('a file is abandoned when others fill the disk beside it, and leaves nothing', async () => {
  room = [RESERVE + 10 * MIB, RESERVE - 1];
  expect(await upload(3 * MIB)).toMatch(/the device has no room for the file/);
  expect(await readdir(directory)).toEqual([]);
});
