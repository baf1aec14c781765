/** A file of a device, into a file here or piece by piece (`protocol.ts`). */
import { createHash } from 'node:crypto';
import type { Connection } from '../../client/node.ts';
import { digestOf } from './content.ts';
import { PartFile } from './part-file.ts';
import { encodeLine, FileReader, FileTransferError, isSize, type Prefix } from './protocol.ts';
import { checkDigest, checkRefusal, type TransferOptions, type TransferResult, withFileStream } from './stream.ts';

/** Where content goes. */
interface Sink {
  /** What it has. */
  readonly prefix: Prefix;
  /** SHA-256 of that, hex. */
  readonly digest: string;
  append(piece: Uint8Array): Promise<void>;
  /** Forgets what it has. */
  restart(): Promise<void>;
}

/**
 * Fetches the file `name` into `file`, replacing it unless the options say otherwise. What arrives lies in `<file>.svc.part` until it is whole; when the transfer
 * is interrupted it stays, and the next one fetches the rest, if the file of the device still begins with it.
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
 * Hands the content of the file `name` on as it comes. When it is not as it was sent, that is known at the end.
 * @throws FileTransferError, SvcError, what `take` throws
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
  return fetchFile(connection, name, sink, options, false);
}

/** What is not as it was sent is forgotten, and fetched once more. */
async function fetchTwice(connection: Connection, name: string, part: PartFile, options: TransferOptions): Promise<TransferResult> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await fetchFile(connection, name, part, options, true);
    } catch (error) {
      if (!(error instanceof FileTransferError) || error.code !== 'MISMATCH') throw error;
      await part.restart();
      if (attempt === 2) throw error;
    }
  }
}

function fetchFile(
  connection: Connection,
  name: string,
  sink: Sink,
  options: TransferOptions,
  resumable: boolean,
): Promise<TransferResult> {
  return withFileStream(connection, options.signal, async (stream) => {
    await stream.write(encodeLine({ op: 'get', name, ...sink.prefix }));
    await stream.close();
    const reader = new FileReader(stream);
    const head = await reader.readLine();
    checkRefusal(head);
    const { size, offset = 0 } = head;
    if (!isSize(size)) throw new FileTransferError('the device does not say how long the file is');
    if (offset !== 0 && (offset !== sink.prefix.offset || offset > size))
      throw new FileTransferError('the device begins where nobody asked');
    if (offset === 0) await sink.restart();
    options.onBegin?.({ offset, total: size, resumable });
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
