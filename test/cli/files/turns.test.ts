/** A client that has many files hashed by its device waits for itself. */
import { mkdtemp, rm, truncate, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, onTestFinished, test, vi } from 'vitest';
import { ClientTurns } from '../../../cli/device-app/client-turns.ts';
import { installFiles } from '../../../cli/device-app/files.ts';
import { encodeLine, FILE_PORT, FileReader } from '../../../cli/files/protocol.ts';
import { nodeEnvironment } from '../../../transport/node/index.ts';
import { MemoryDevice } from './memory-streams.ts';

const OTHER = 'b'.repeat(64);

let directory: string;
let memory: MemoryDevice;
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'svc-turns-'));
  memory = new MemoryDevice();
  await installFiles(memory.device, directory, { clock: nodeEnvironment().clock });
});
afterEach(() => rm(directory, { recursive: true }));

test('of what the device has, one file at a time is hashed for a client: it delays its own requests, and no other client', async () => {
  await writeFile(join(directory, 'small'), '0123456789');
  await writeFile(join(directory, 'large'), '');
  await truncate(join(directory, 'large'), 32 << 20);
  const answered: string[] = [];
  const ask = async (client: string, name: string, offset: number): Promise<void> => {
    const stream = memory.connection(client).createStream();
    await stream.open(FILE_PORT);
    await stream.write(encodeLine({ op: 'get', name, offset, sha256: '0'.repeat(64) }));
    await new FileReader(stream).readLine();
    answered.push(`${name} of ${client[0]}`);
    stream.abort();
  };
  // The large file is hashed only when the others have asked.
  let begin = (): void => {};
  const held = new Promise<void>((resolve) => (begin = resolve));
  const { run } = ClientTurns.prototype;
  const turns = vi.spyOn(ClientTurns.prototype, 'run').mockImplementationOnce(function (this: ClientTurns, client, work) {
    return run.call(this, client, () => held.then(work)) as never;
  });
  onTestFinished(() => turns.mockRestore());
  const asked = (requests: number) => vi.waitFor(() => expect(turns).toHaveBeenCalledTimes(requests));

  const large = ask('a'.repeat(64), 'large', 32 << 20);
  await asked(1);
  await ask(OTHER, 'small', 10);
  const small = ask('a'.repeat(64), 'small', 10);
  await asked(3);
  begin();
  await Promise.all([large, small]);
  expect(answered).toEqual(['small of b', 'large of a', 'small of a']);
});
