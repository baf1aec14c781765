/** The client's end of a file's stream: one request to the file service of a device, and the device's refusals. */
import type { Connection, Stream } from '../../client/node.ts';
import { SvcError } from '../../protocol/errors/index.ts';
import { FILE_PORT, FileTransferError, type RefusalCode } from './protocol.ts';

export interface TransferOptions {
  /** Called when content begins to move, and again after a restart. */
  onBegin?: (beginning: TransferStart) => void;
  /** Called after every step: bytes done, bytes in all. */
  onProgress?: (done: number, total: number | undefined) => void;
  /** For an upload: awaited before each further chunk is sent. */
  pace?: (done: number) => Promise<void>;
  /** Ends the transfer, which fails with its reason. */
  signal?: AbortSignal;
  /** False: an existing file stays, and the transfer is refused. Default true. */
  replace?: boolean;
}

export interface TransferStart {
  /** Bytes transferred by an earlier attempt. */
  readonly offset: number;
  /** Undefined if known only at the end. */
  readonly total: number | undefined;
}

export interface TransferResult {
  readonly bytes: number;
  /** Hex. */
  readonly sha256: string;
  /** Bytes of it transferred by an earlier attempt. */
  readonly resumedFrom: number;
}

/** A refusal by the device, with the device's message. */
export class FileRefusal extends FileTransferError {
  constructor(message: string, code: RefusalCode) {
    super(`the device refused: ${message}`, code);
  }
}

/**
 * Runs `work` over its own stream, whose request may travel with the opening, and waits for the device's end.
 * @throws FileTransferError, SvcError, the reason of `signal`, the error of `work`
 */
export async function withFileStream<T>(
  connection: Connection,
  signal: AbortSignal | undefined,
  work: (stream: Stream) => Promise<T>,
): Promise<T> {
  signal?.throwIfAborted();
  const stream = connection.openStream(FILE_PORT);
  const abort = (): void => stream.abort();
  signal?.addEventListener('abort', abort, { once: true });
  const working = work(stream);
  try {
    const [, result] = await Promise.all([stream.opened, working]);
    await ended(stream);
    return result;
  } catch (error) {
    stream.abort();
    // `work` may be writing to a file that the caller is about to close.
    await Promise.allSettled([working]);
    throw signal?.aborted ? signal.reason : error;
  } finally {
    signal?.removeEventListener('abort', abort);
    stream.abort();
  }
}

/** Waits for the device's end of the stream, so that our close does not cut it off. */
async function ended(stream: Stream): Promise<void> {
  try {
    await stream.read();
  } catch (error) {
    if (error instanceof SvcError && error.code === 'END_OF_FILE') return;
    throw error;
  }
  throw new FileTransferError('the device sent more than the file');
}

/** @throws FileRefusal when the line is one */
export function checkRefusal(line: Record<string, unknown>): void {
  const { error, code } = line;
  if (error === undefined) return;
  if (typeof error !== 'string' || typeof code !== 'string') throw new FileTransferError('the device refuses without a reason in words');
  throw new FileRefusal(error, code as RefusalCode);
}

/** @throws FileRefusal; FileTransferError MISMATCH */
export function checkDigest(line: Record<string, unknown>, sha256: string): void {
  checkRefusal(line);
  if (line.sha256 !== sha256)
    throw new FileTransferError(
      'the SHA-256 at the two ends differs: the file was damaged on a disk or changed while it was sent',
      'MISMATCH',
    );
}
