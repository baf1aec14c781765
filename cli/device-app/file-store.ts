/** What the parts of the file service of `svc device` share: where files are, and one request. */
import type { SessionStream } from '../../device/index.ts';
import { type FileReader, FileTransferError } from '../files/protocol.ts';
import type { Leftovers } from './leftovers.ts';

/** Where files are. */
export interface FileStore {
  readonly directory: string;
  readonly leftovers: Leftovers;
  /** Bytes that the disk of a directory has left. */
  readonly free: (directory: string) => Promise<number>;
}

/** One request on its stream. */
export interface FileCall {
  readonly stream: SessionStream;
  readonly reader: FileReader;
  /** Fingerprint. */
  readonly client: string;
  /** Ends the call: the same client has sent a later one of that name. */
  readonly supersede: () => void;
}

/** Reading a long file for a client that is gone would be in vain. @throws FileTransferError */
export function requireLive(stream: SessionStream): void {
  if (stream.ended) throw new FileTransferError('the client is gone', 'FAILED');
}
