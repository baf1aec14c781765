/**
 * A file to a device and back, checked by SHA-256 at both ends (`file-protocol.ts`). For `svc stream` and the demo.
 *
 * A download is written beside its target and renamed when its hash is right: there is the whole file or none.
 */
import { createHash } from 'node:crypto';
import { type FileHandle, open, rename, rm } from 'node:fs/promises';
import type { Connection, Stream } from '../client/node.ts';
import { SvcError } from '../protocol/errors/index.ts';
import { CHUNK, encodeLine, FILE_PORT, FileReader, FileTransferError, isSize } from './file-protocol.ts';

export interface TransferOptions {
  /** Told after every step: bytes done, bytes in all. */
  onProgress?: (done: number, total: number) => void;
  /** Of an upload: waited for before each further chunk is sent. */
  pace?: (done: number) => Promise<void>;
}

export interface TransferResult {
  readonly bytes: number;
  /** Hex. */
  readonly sha256: string;
}

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

/** A file to be sent. */
export interface OpenFile {
  readonly handle: FileHandle;
  readonly size: number;
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
export function uploadOpened(
  connection: Connection,
  { handle, size }: OpenFile,
  name: string,
  options: TransferOptions = {},
): Promise<TransferResult> {
  return withFileStream(connection, async (stream) => {
    const reply = new FileReader(stream).readLine();
    reply.catch(() => {});
    const sha256 = await sendFile(stream, handle, { name, size }, reply, options);
    checkDigest(await reply, sha256);
    return { bytes: size, sha256 };
  });
}

/** Fetches the file `name` into `file`, replacing it. @throws FileTransferError, SvcError, system errors */
export async function downloadFile(
  connection: Connection,
  name: string,
  file: string,
  options: TransferOptions = {},
): Promise<TransferResult> {
  const partial = `${file}.part`;
  const target = await open(partial, 'w');
  try {
    const result = await withFileStream(connection, (stream) => receiveFile(stream, target, name, options));
    await target.close();
    await rename(partial, file);
    return result;
  } catch (error) {
    await target.close();
    await rm(partial, { force: true });
    throw error;
  }
}

async function withFileStream(connection: Connection, work: (stream: Stream) => Promise<TransferResult>): Promise<TransferResult> {
  const stream = connection.createStream();
  try {
    // The request travels with the opening.
    const [, result] = await Promise.all([stream.open(FILE_PORT), work(stream)]);
    await ended(stream);
    return result;
  } finally {
    stream.abort();
  }
}

/** Waits for the device's end of the stream, so that its own close is not cut off by ours. */
async function ended(stream: Stream): Promise<void> {
  try {
    await stream.readSome();
  } catch (error) {
    if (error instanceof SvcError && error.code === 'END_OF_FILE') return;
    throw error;
  }
  throw new FileTransferError('the device sent more than the file');
}

/** Writes request and content. When writing fails because the device has answered already, its answer is the error. */
async function sendFile(
  stream: Stream,
  source: FileHandle,
  { name, size }: { name: string; size: number },
  reply: Promise<unknown>,
  options: TransferOptions,
): Promise<string> {
  const hash = createHash('sha256');
  try {
    await stream.write(encodeLine({ op: 'put', name, size }));
    for (let done = 0; done < size; ) {
      const chunk = await readChunk(source, Math.min(CHUNK, size - done));
      hash.update(chunk);
      await stream.write(chunk);
      done += chunk.length;
      options.onProgress?.(done, size);
      await options.pace?.(done);
    }
    await stream.close();
  } catch (error) {
    if (error instanceof SvcError && error.code === 'STOPPED') checkRefusal(await reply);
    throw error;
  }
  return hash.digest('hex');
}

async function readChunk(source: FileHandle, length: number): Promise<Uint8Array> {
  const chunk = new Uint8Array(length);
  const { bytesRead } = await source.read(chunk, 0, length);
  if (bytesRead === 0) throw new FileTransferError('the file became shorter while it was sent');
  return chunk.subarray(0, bytesRead);
}

async function receiveFile(stream: Stream, target: FileHandle, name: string, options: TransferOptions): Promise<TransferResult> {
  await stream.write(encodeLine({ op: 'get', name }));
  await stream.close();
  const reader = new FileReader(stream);
  const head = await reader.readLine();
  checkRefusal(head);
  if (!isSize(head.size)) throw new FileTransferError('the device does not say how long the file is');
  const hash = createHash('sha256');
  let done = 0;
  for await (const piece of reader.bytes(head.size)) {
    hash.update(piece);
    await target.writeFile(piece);
    done += piece.length;
    options.onProgress?.(done, head.size);
  }
  const sha256 = hash.digest('hex');
  checkDigest(await reader.readLine(), sha256);
  return { bytes: done, sha256 };
}

function checkRefusal(line: unknown): void {
  const { error } = line as { error?: unknown };
  if (error !== undefined) throw new FileTransferError(`the device refused: ${String(error)}`);
}

function checkDigest(line: Record<string, unknown>, sha256: string): void {
  checkRefusal(line);
  if (line.sha256 !== sha256)
    throw new FileTransferError('the SHA-256 at the two ends differs: the file was damaged on a disk or changed while it was sent');
}
