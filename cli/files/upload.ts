/** Uploads a file to a device, on one stream (`protocol.ts`). */
import { createHash, type Hash } from 'node:crypto';
import type { FileHandle } from 'node:fs/promises';
import type { Connection, Stream } from '../../client/node.ts';
import { SvcError } from '../../protocol/errors/index.ts';
import { digestOf, hashOf, piecesOf } from './content.ts';
import { encodeLine, FileReader, FileTransferError, type Prefix, readPrefix } from './protocol.ts';
import { checkDigest, checkRefusal, type TransferOptions, type TransferResult, withFileStream } from './stream.ts';

/** A file to send. */
export interface OpenFile {
  readonly handle: FileHandle;
  readonly size: number;
}

/** Content that can be read once, of unknown length. */
export interface Flow {
  readonly pieces: AsyncIterable<Uint8Array>;
  /** Stops reading: `pieces` fails with this error. */
  stop(error: unknown): void;
}

type Source = OpenFile | Flow;

/**
 * Sends a file, or a flow, of which an interrupted attempt leaves nothing.
 * @throws FileRefusal, FileTransferError, SvcError, system errors
 */
export function upload(connection: Connection, source: Source, name: string, options: TransferOptions = {}): Promise<TransferResult> {
  const { signal, replace = true } = options;
  const size = 'handle' in source ? source.size : undefined;
  return withFileStream(connection, signal, async (stream) => {
    const reader = new FileReader(stream);
    await stream.write(encodeLine({ op: 'send', name, ...(size !== undefined && { size }), replace }));
    const head = await reader.readLine();
    checkRefusal(head);
    const { offset, hash } = await commonPrefix(source, readPrefix(head), signal);
    options.onBegin?.({ offset, total: size });
    await stream.write(encodeLine({ offset }));
    const reply = new Reply(reader, source);
    const bytes = await reply.unlessRefused(sendPieces(stream, source, { offset, hash }, options));
    const sha256 = digestOf(hash);
    await reply.unlessRefused(stream.write(encodeLine({ sha256 })).then(() => stream.close()));
    checkDigest(await reply.line, sha256);
    return { bytes, sha256, resumedFrom: offset };
  });
}

/** Returns the length of the device's part if the file begins with it, else 0. */
async function commonPrefix(
  source: Source,
  { offset, sha256 }: Prefix,
  signal: AbortSignal | undefined,
): Promise<{ offset: number; hash: Hash }> {
  if ('handle' in source && offset > 0 && offset <= source.size) {
    const hash = await hashOf(source.handle, offset, () => signal?.throwIfAborted());
    if (digestOf(hash) === sha256) return { offset, hash };
  }
  return { offset: 0, hash: createHash('sha256') };
}

/** The answer of the device. If it comes before everything is sent, the device refuses, or the stream has ended. */
class Reply {
  readonly line: Promise<Record<string, unknown>>;
  #settled = false;

  constructor(reader: FileReader, source: Source) {
    this.line = reader.readLine();
    const settle = (error: unknown): void => {
      this.#settled = true;
      if ('stop' in source) source.stop(error);
    };
    this.line.then(() => settle(new FileTransferError('the device has answered before the end')), settle);
  }

  /** Returns the result of `work`. If it fails because the device has answered, the error is the refusal. */
  async unlessRefused<T>(work: Promise<T>): Promise<T> {
    try {
      return await work;
    } catch (error) {
      const stopped = error instanceof SvcError && error.code === 'STOPPED';
      if (stopped || this.#settled) checkRefusal(await this.line.catch(() => ({})));
      throw error;
    }
  }
}

async function sendPieces(
  stream: Stream,
  source: Source,
  { offset, hash }: { offset: number; hash: Hash },
  { onProgress, pace }: TransferOptions,
): Promise<number> {
  const total = 'handle' in source ? source.size : undefined;
  const pieces = 'handle' in source ? piecesOf(source.handle, offset, source.size) : source.pieces;
  let done = offset;
  for await (const piece of pieces) {
    hash.update(piece);
    await stream.write(encodeLine({ bytes: piece.length }));
    await stream.write(piece);
    done += piece.length;
    onProgress?.(done, total);
    await pace?.(done);
  }
  return done;
}
