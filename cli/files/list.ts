/** Lists the files that a device has for its clients (`protocol.ts`). */
import type { Connection } from '../../client/node.ts';
import { encodeLine, FileReader, FileTransferError, isFileName, isSize, type ListedFile } from './protocol.ts';
import { checkRefusal, withFileStream } from './stream.ts';

/** Most files of a list: a longer one would fill the memory of this process. */
const MAX_FILES = 100_000;

/** Returns all of them, sorted by name. @throws FileTransferError, SvcError */
export function listFiles(connection: Connection, signal?: AbortSignal): Promise<ListedFile[]> {
  return withFileStream(connection, signal, async (stream) => {
    await stream.write(encodeLine({ op: 'list' }));
    await stream.close();
    return readList(new FileReader(stream));
  });
}

async function readList(reader: FileReader): Promise<ListedFile[]> {
  const head = await reader.readLine();
  checkRefusal(head);
  const { files: count } = head;
  if (!isSize(count)) throw new FileTransferError('the device did not report the number of its files');
  if (count > MAX_FILES) throw new FileTransferError(`the device has ${count} files, and more than ${MAX_FILES} are not listed`);
  const files: ListedFile[] = [];
  while (files.length < count) files.push(readListed(await reader.readLine()));
  return files;
}

function readListed({ name, size, time }: Record<string, unknown>): ListedFile {
  if (typeof name === 'string' && isFileName(name) && isSize(size) && isTime(time)) return { name, size, time };
  throw new FileTransferError('the device names a file without size or time');
}

/** Whether a value is in the range of ECMAScript's Date. */
function isTime(value: unknown): value is number {
  return Number.isSafeInteger(value) && Math.abs(value as number) <= 8.64e15;
}
