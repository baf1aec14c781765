/** A byte stream the peer wants to open, until the application accepts or refuses it (30 s, then the connection resets it). */
import type { SessionStream } from './stream.ts';

export class IncomingStream {
  /** Port the peer named, 0 … 2^32 - 1. */
  get port(): number {
    throw new Error('not there yet');
  }
  /** Accepts: the peer's open resolves. @throws LocalError INVALID_STATE when decided before; STOPPED when the peer gave up meanwhile */
  accept(): SessionStream {
    throw new Error('not there yet');
  }
  /** Refuses: the peer's open fails with STOPPED. @param code stream error code on the wire, default REFUSED. Does nothing when decided before. */
  refuse(code?: number): void {
    void code;
    throw new Error('not there yet');
  }
}
