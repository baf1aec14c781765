/** What the parts of the file service of `svc device` share: where files are, and one request. */
import type { SessionStream } from '../../device/index.ts';
import { type FileReader, FileTransferError } from '../files/protocol.ts';
import type { ClientTurns } from './client-turns.ts';
import type { DiskRoom } from './disk-room.ts';
import type { Leftovers } from './leftovers.ts';

/** Where files are. */
export interface FileStore {
  readonly directory: string;
  /** How many it may be for one that is new, parts included. */
  readonly maxFiles: number;
  readonly leftovers: Leftovers;
  /** On its disk. */
  readonly room: DiskRoom;
  /** What a short request has the device do: hash a file of any length, list thousands. */
  readonly costly: ClientTurns;
}

/** One request on its stream. */
export interface FileCall {
  readonly stream: SessionStream;
  readonly reader: FileReader;
  /** Fingerprint. */
  readonly client: string;
  /** Ends the call: the same client has sent a later one of that name. */
  readonly supersede: () => void;
  /** Fires then; its reason is a FileTransferError. */
  readonly superseded: AbortSignal;
}

/** Reading a long file for a client that is gone, or has sent a later request, would be in vain. @throws FileTransferError */
export function requireLive({ stream, superseded }: FileCall): void {
  superseded.throwIfAborted();
  if (stream.ended) throw new FileTransferError('the client is gone', 'FAILED');
}
