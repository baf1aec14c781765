/**
 * A file to a device and back, checked by SHA-256 at both ends (`protocol.ts`). For `svc stream` and the demo.
 *
 * What an attempt that was interrupted has moved need not be moved again, if the file still begins with it: the device keeps it for a day, and here it lies
 * beside its target. Where the result is not what was sent, all of it is moved once more. A device of an earlier version sends and gets whole files.
 */
import { open } from 'node:fs/promises';
import type { Connection } from '../../client/node.ts';
import { FileTransferError } from './protocol.ts';
import { FileRefusal, type TransferOptions, type TransferResult } from './stream.ts';
import { type Flow, type OpenFile, send, sendWhole } from './upload.ts';

export { downloadFile } from './download.ts';

/**
 * Sends a file, to be kept under `name`. Resolves when the device has it on its disk with the same hash.
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

/** Opens a file to be sent; the caller closes it. @throws system errors */
export async function openFile(file: string): Promise<OpenFile> {
  const handle = await open(file, 'r');
  try {
    return { handle, size: (await handle.stat()).size };
  } catch (error) {
    await handle.close();
    throw error;
  }
}

/** As `uploadFile`; the request leaves at once. */
export async function uploadOpened(
  connection: Connection,
  source: OpenFile,
  name: string,
  options: TransferOptions = {},
): Promise<TransferResult> {
  try {
    return await send(connection, source, name, options);
  } catch (error) {
    if (error instanceof FileRefusal && error.older) return sendWhole(connection, source, name, options);
    // The device has discarded it: what arrived was damaged on a disk, or is not what was there at the last attempt.
    if (error instanceof FileRefusal && error.code === 'MISMATCH') return send(connection, source, name, options);
    throw error;
  }
}

/** Sends what comes, as `uploadFile`. An attempt that is interrupted leaves nothing. @throws FileTransferError for a device of an earlier version, too */
export async function uploadFlow(connection: Connection, flow: Flow, name: string, options: TransferOptions = {}): Promise<TransferResult> {
  try {
    return await send(connection, flow, name, options);
  } catch (error) {
    if (error instanceof FileRefusal && error.older)
      throw new FileTransferError('the device is of an earlier version, which takes nothing of unknown length: send a file', 'FAILED');
    throw error;
  }
}
