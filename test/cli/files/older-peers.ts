/**
 * The file service and its client before files could be resumed: whole files, `put` and `get`, refusals without codes.
 */
import { createHash } from 'node:crypto';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { FILE_PORT, FileReader } from '../../../cli/files/protocol.ts';
import type { Connection } from '../../../client/node.ts';
import type { MemoryDevice } from './memory-streams.ts';

const NAME = /^[A-Za-z0-9_-][A-Za-z0-9._-]{0,127}$/;
const digest = (data: Uint8Array): string => createHash('sha256').update(data).digest('hex');
const line = (value: object): Uint8Array => new TextEncoder().encode(`${JSON.stringify(value)}\n`);

async function content(reader: FileReader, size: number): Promise<Buffer> {
  const pieces: Uint8Array[] = [];
  for await (const piece of reader.bytes(size)) pieces.push(piece.slice());
  return Buffer.concat(pieces);
}

/** Serves `directory` as the previous version did. */
export function installOlderFiles({ device }: MemoryDevice, directory: string): void {
  device.addStreamListener(FILE_PORT, async (incoming) => {
    const stream = incoming.accept();
    const answer = async (): Promise<Uint8Array[]> => {
      const reader = new FileReader(stream);
      const { op, name, size } = await reader.readLine();
      if (typeof name !== 'string' || !NAME.test(name)) return [line({ error: 'a file name has 1 to 128 letters, …' })];
      if (op === 'put' && typeof size === 'number') {
        const data = await content(reader, size);
        await writeFile(join(directory, name), data);
        return [line({ size, sha256: digest(data) })];
      }
      if (op !== 'get') return [line({ error: 'the request is neither put nor get' })];
      const data = await readFile(join(directory, name)).catch(() => null);
      return data === null
        ? [line({ error: 'there is no such file' })]
        : [line({ size: data.length }), data, line({ sha256: digest(data) })];
    };
    for (const piece of await answer()) await stream.write(piece);
    await stream.close();
    stream.abort();
  });
}

/** Sends a file as the previous version did. @returns the device's answer */
export async function olderPut(connection: Connection, name: string, data: Uint8Array): Promise<Record<string, unknown>> {
  const stream = connection.createStream();
  await stream.open(FILE_PORT);
  const reply = new FileReader(stream).readLine();
  reply.catch(() => {});
  await stream.write(line({ op: 'put', name, size: data.length }));
  await stream.write(data);
  await stream.close();
  return reply;
}

/** Fetches a file as the previous version did. */
export async function olderGet(connection: Connection, name: string): Promise<Buffer> {
  const stream = connection.createStream();
  await stream.open(FILE_PORT);
  await stream.write(line({ op: 'get', name }));
  await stream.close();
  const reader = new FileReader(stream);
  const data = await content(reader, Number((await reader.readLine()).size));
  if ((await reader.readLine()).sha256 !== digest(data)) throw new Error('another hash');
  return data;
}
