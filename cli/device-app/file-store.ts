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
  /** Reading what is there to compare it: a request of 130 bytes has a file of any length hashed. */
  readonly hashing: ClientTurns;
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
