/** Downloads a file of a device, into a file here or piece by piece (`protocol.ts`). */
import { createHash } from 'node:crypto';
import type { Connection } from '../../client/node.ts';
import { digestOf } from './content.ts';
import { PartFile } from './part-file.ts';
import { encodeLine, FileReader, FileTransferError, isSize, type Prefix } from './protocol.ts';
import { checkDigest, checkRefusal, type TransferOptions, type TransferResult, withFileStream } from './stream.ts';

/** Destination of content. */
interface Sink {
  /** The content it has. */
  readonly prefix: Prefix;
  /** SHA-256 of that content, hex. */
  readonly digest: string;
  append(piece: Uint8Array): Promise<void>;
  /** Discards its content. */
  restart(): Promise<void>;
}

/**
 * Fetches the file `name` into `file`, replacing it unless the options say otherwise. Until it is complete, its content
 * is in `<file>.svc.part`; after an interruption it stays, and the next download fetches the rest, if the device's file
 * still begins with it.
 * @throws FileTransferError, SvcError, CommandError
 */
export async function downloadFile(
  connection: Connection,
  name: string,
  file: string,
  options: TransferOptions = {},
): Promise<TransferResult> {
  const part = await PartFile.open(file, options.signal);
  try {
    const result = await fetchTwice(connection, name, part, options);
    await part.finish(options.replace ?? true);
    return result;
  } finally {
    await part.close();
  }
}

/**
 * Passes the content of the file `name` on as it arrives. Damaged content is detected only at the end.
 * @throws FileTransferError, SvcError, the error of `take`
 */
export function downloadFlow(
  connection: Connection,
  name: string,
  take: (piece: Uint8Array) => Promise<void>,
  options: TransferOptions = {},
): Promise<TransferResult> {
  const hash = createHash('sha256');
  const sink: Sink = {
    prefix: { offset: 0 },
    get digest() {
      return digestOf(hash);
    },
    append: async (piece) => {
      hash.update(piece);
      await take(piece);
    },
    restart: async () => {},
  };
  return fetchFile(connection, name, sink, options);
}

/** Fetches a file; damaged content is discarded, and fetched once more. */
async function fetchTwice(connection: Connection, name: string, part: PartFile, options: TransferOptions): Promise<TransferResult> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await fetchFile(connection, name, part, options);
    } catch (error) {
      if (!(error instanceof FileTransferError) || error.code !== 'MISMATCH') throw error;
      await part.restart();
      if (attempt === 2) throw error;
    }
  }
}

function fetchFile(connection: Connection, name: string, sink: Sink, options: TransferOptions): Promise<TransferResult> {
  return withFileStream(connection, options.signal, async (stream) => {
    await stream.write(encodeLine({ op: 'get', name, ...sink.prefix }));
    await stream.close();
    const reader = new FileReader(stream);
    const head = await reader.readLine();
    checkRefusal(head);
    const { size, offset } = head;
    if (!isSize(size)) throw new FileTransferError('the device did not report the length of the file');
    if (!isSize(offset) || (offset !== 0 && (offset !== sink.prefix.offset || offset > size)))
      throw new FileTransferError('the device begins at an offset that was not requested');
    if (offset === 0) await sink.restart();
    options.onBegin?.({ offset, total: size });
    let done = offset;
    for await (const piece of reader.bytes(size - offset)) {
      await sink.append(piece);
      done += piece.length;
      options.onProgress?.(done, size);
    }
    checkDigest(await reader.readLine(), sink.digest);
    return { bytes: size, sha256: sink.digest, resumedFrom: offset };
  });
}
