/** Common parts of the file service of `svc device`: the store of files, and one request. */
import type { Stream } from '../../device/index.ts';
import { type FileReader, FileTransferError } from '../files/protocol.ts';
import type { ClientTurns } from './client-turns.ts';
import type { DiskRoom } from './disk-room.ts';
import type { Leftovers } from './leftovers.ts';

/** The store of files. */
export interface FileStore {
  readonly directory: string;
  /** Most files, parts included, at which a new one is still accepted. */
  readonly maxFiles: number;
  readonly leftovers: Leftovers;
  /** The space on its disk. */
  readonly room: DiskRoom;
  /** Costly work of short requests: hashing a file of any length, listing thousands. */
  readonly costly: ClientTurns;
}

/** One request on its stream. */
export interface FileCall {
  readonly stream: Stream;
  readonly reader: FileReader;
  /** Fingerprint. */
  readonly client: string;
  /** Ends the call, because the same client has sent a later one for that name. */
  readonly supersede: () => void;
  /** Fires when the call is superseded; its reason is a FileTransferError. */
  readonly superseded: AbortSignal;
}

/**
 * Checks that the client still wants the result: it may be gone, or have sent a later request.
 * @throws FileTransferError
 */
export function requireLive({ stream, superseded }: FileCall): void {
  superseded.throwIfAborted();
  if (stream.ended) throw new FileTransferError('the client is gone', 'FAILED');
}
