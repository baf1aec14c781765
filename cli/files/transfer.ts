/**
 * Transfers a file to a device or back, checked by SHA-256 at both ends (`protocol.ts`), for `svc stream` and the demo.
 *
 * The part moved by an interrupted attempt is not moved again, if the file still begins with it: the device keeps it
 * for a day, and here it is next to its target. If the result differs from what was sent, all of it is moved once more.
 */
import { open } from 'node:fs/promises';
import type { Connection } from '../../client/node.ts';
import { FileRefusal, type TransferOptions, type TransferResult } from './stream.ts';
import { type OpenFile, upload } from './upload.ts';

export { downloadFile } from './download.ts';

/**
 * Sends a file, to be stored as `name`. Resolves when the device has it on disk with the same hash.
 * @throws FileTransferError, SvcError, system errors
 */
export async function uploadFile(
  connection: Connection,
  file: string,
  name: string,
  options: TransferOptions = {},
): Promise<TransferResult> {
  const source = await openFile(file);
  try {
    return await uploadOpened(connection, source, name, options);
  } finally {
    await source.handle.close();
  }
}

/** Opens a file to send; the caller closes it. @throws system errors */
export async function openFile(file: string): Promise<OpenFile> {
  const handle = await open(file, 'r');
  try {
    return { handle, size: (await handle.stat()).size };
  } catch (error) {
    await handle.close();
    throw error;
  }
}

/** Like `uploadFile`; the request is sent at once. */
export async function uploadOpened(
  connection: Connection,
  source: OpenFile,
  name: string,
  options: TransferOptions = {},
): Promise<TransferResult> {
  try {
    return await upload(connection, source, name, options);
  } catch (error) {
    // The device has discarded its part: it was damaged on a disk, or the file has changed since the last attempt.
    if (error instanceof FileRefusal && error.code === 'MISMATCH') return upload(connection, source, name, options);
    throw error;
  }
}
