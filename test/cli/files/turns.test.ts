/** Operations that cost a device much and a client little: a client that requests many of them delays only itself. */
import { truncate, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeEach, expect, onTestFinished, test, vi } from 'vitest';
import { ClientTurns } from '../../../cli/device-app/client-turns.ts';
import { installFiles } from '../../../cli/device-app/files.ts';
import { Leftovers } from '../../../cli/device-app/leftovers.ts';
import { encodeLine, FILE_PORT, FileReader } from '../../../cli/files/protocol.ts';
import { nodeEnvironment } from '../../../platform/node/index.ts';
import { eventually } from '../../support/eventually.ts';
import { temporaryDirectory } from '../../support/temporary-directory.ts';
import { MemoryDevice } from './memory-streams.ts';

const OTHER = 'b'.repeat(64);

let directory: string;
let memory: MemoryDevice;
beforeEach(async () => {
  directory = temporaryDirectory();
  memory = new MemoryDevice();
  await installFiles(memory.device, directory, { clock: nodeEnvironment().clock });
});

test('the device hashes one file at a time for a client, which delays its own requests and no other client', async () => {
  await writeFile(join(directory, 'small'), '0123456789');
  await writeFile(join(directory, 'large'), '');
  await truncate(join(directory, 'large'), 32 << 20);
  const answered: string[] = [];
  const ask = async (client: string, name: string, offset: number): Promise<void> => {
    const stream = memory.connection(client).openStream(FILE_PORT);
    await stream.opened;
    await stream.write(encodeLine({ op: 'get', name, offset, sha256: '0'.repeat(64) }));
    await new FileReader(stream).readLine();
    answered.push(`${name} of ${client[0]}`);
    stream.abort();
  };
  // The large file is hashed only after the other requests.
  let begin = (): void => {};
  const held = new Promise<void>((resolve) => (begin = resolve));
  const { run } = ClientTurns.prototype;
  const turns = vi.spyOn(ClientTurns.prototype, 'run').mockImplementationOnce(function (this: ClientTurns, client, work) {
    return run.call(this, client, () => held.then(work)) as never;
  });
  onTestFinished(() => turns.mockRestore());
  const asked = (requests: number) => eventually(() => expect(turns).toHaveBeenCalledTimes(requests));

  const large = ask('a'.repeat(64), 'large', 32 << 20);
  await asked(1);
  await ask(OTHER, 'small', 10);
  const small = ask('a'.repeat(64), 'small', 10);
  await asked(3);
  begin();
  await Promise.all([large, small]);
  expect(answered).toEqual(['small of b', 'large of a', 'small of a']);
});

/** Holds requests until `begin` is called. */
function heldTurns() {
  let begin = (): void => {};
  const held = new Promise<void>((resolve) => (begin = resolve));
  const { run } = ClientTurns.prototype;
  const turns = vi.spyOn(ClientTurns.prototype, 'run').mockImplementation(function (this: ClientTurns, client, work) {
    return run.call(this, client, () => held.then(work)) as never;
  });
  onTestFinished(() => turns.mockRestore());
  return { asked: (requests: number) => eventually(() => expect(turns).toHaveBeenCalledTimes(requests)), begin };
}

async function request(line: Record<string, unknown>) {
  const stream = memory.connection('a'.repeat(64)).openStream(FILE_PORT);
  await stream.opened;
  await stream.write(encodeLine(line));
  return { stream, reader: new FileReader(stream) };
}

test('lists are made one after the other, too, and none for a client that is gone', async () => {
  const { asked, begin } = heldTurns();
  const [gone, here] = [await request({ op: 'list' }), await request({ op: 'list' })];
  await asked(2);
  gone.stream.abort();
  begin();
  expect(await here.reader.readLine()).toEqual({ files: 0 });
  await expect(gone.reader.readLine()).rejects.toMatchObject({ code: 'STOPPED' });
});

test('a transfer that a later one supersedes is not hashed to its end', async () => {
  await writeFile(join(directory, `.file.${'a'.repeat(64)}.part`), '0123456789');
  await installFiles(memory.device, directory, { clock: nodeEnvironment().clock });
  const { asked, begin } = heldTurns();
  const hold = vi.spyOn(Leftovers.prototype, 'hold');
  onTestFinished(() => hold.mockRestore());
  const send = { op: 'send', name: 'file', size: 20 };
  const first = await request(send);
  await asked(1);
  const second = await request(send);
  await eventually(() => expect(hold).toHaveBeenCalledTimes(2));
  begin();
  expect(await first.reader.readLine()).toMatchObject({ code: 'SUPERSEDED' });
  expect(await second.reader.readLine()).toMatchObject({ offset: 10 });
});
