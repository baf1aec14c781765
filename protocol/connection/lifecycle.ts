/**
 * The life of a connection: its state, its data plane while it has one, and the events of both. Nothing else says that
 * a connection is not open yet, or is over.
 *
 *   handshaking ──established──▶ open ──close / peer closes / lost──▶ closing ──drained──▶ closed
 *        └──────────failed──────────────────────────────────────────────────────────────────▲
 */
import type { CoreConnection } from '../../bindings/index.ts';
import { CloseCode, closeError, isCoreFailure, LocalError, type SvcError } from '../errors/index.ts';
import { decodeReason, encodeReason } from './close-reason.ts';
import type { ConnectionEvent } from './events.ts';
import type { ConnectionOwner, ConnectionState } from './owner.ts';

export class Lifecycle {
  state: ConnectionState = 'handshaking';
  /** Null before and after. */
  core: CoreConnection | null = null;
  /** Called when it is over. */
  atEnd: (() => void) | null = null;
  readonly owner: ConnectionOwner;
  /** Null when there are none and the connection is idle. */
  #events: ConnectionEvent[] | null = null;

  constructor(owner: ConnectionOwner) {
    this.owner = owner;
  }

  /** It has ended, with or without a closing period. */
  get isOver(): boolean {
    return this.state === 'closing' || this.state === 'closed';
  }

  /** Returns the data plane of an open connection. @throws LocalError NOT_CONNECTED before, CLOSED after */
  data(): CoreConnection {
    if (this.state === 'open' && this.core !== null) return this.core;
    throw new LocalError(this.state === 'handshaking' ? 'NOT_CONNECTED' : 'CLOSED', `the connection is ${this.state}`);
  }

  /** Returns it for a request, which may cause packets to send. Errors as for {@link data}. */
  request(): CoreConnection {
    const core = this.data();
    this.owner.touched();
    return core;
  }

  opened(core: CoreConnection): void {
    this.core = core;
    this.state = 'open';
  }

  emit(event: ConnectionEvent): void {
    this.#events ??= [];
    this.#events.push(event);
  }

  /** Returns the oldest event that was emitted. */
  nextEvent(): ConnectionEvent | undefined {
    return this.#events?.shift();
  }

  /** Releases the memory of events. */
  sweep(): void {
    if (this.#events?.length === 0) this.#events = null;
  }

  /** Ends the connection, and notifies the peer in case it can receive. */
  end(error: SvcError | null, code: number, reason: string, now: number): void {
    // Also where the core turns out to be dead: the endpoint reports that.
    if (this.core !== null) this.owner.touched();
    try {
      this.core?.close(code, encodeReason(reason), now);
    } catch (failure) {
      if (isCoreFailure(failure)) return;
      throw failure;
    }
    this.#closed(this.core === null ? 'closed' : 'closing', error, code, reason);
    this.owner.eventful();
    if (this.core === null) this.owner.drained();
  }

  closedByPeer(code: number, core: CoreConnection): void {
    const reason = decodeReason(core.closeReason());
    this.#closed('closing', closeError(code, reason), code, reason);
  }

  /** The peer has been silent for too long. */
  timedOut(error: SvcError): void {
    this.#closed('closing', error, CloseCode.NO_ERROR, error.message);
  }

  /** Ends the connection without a packet. */
  lost(error: SvcError, code: number): void {
    if (this.state === 'closed') return;
    const previous = this.state;
    this.#finish('closed');
    this.#events = null;
    if (previous === 'handshaking') this.emit({ kind: 'failed', error });
    else if (previous === 'open') this.emit({ kind: 'closed', error, code, reason: error.message });
  }

  /** Frees the core's slot. Only queued events remain. */
  free(): void {
    const { core } = this;
    this.core = null;
    this.#finish('closed');
    core?.free();
  }

  #closed(state: 'closing' | 'closed', error: SvcError | null, code: number, reason: string): void {
    this.#finish(state);
    this.emit({ kind: 'closed', error, code, reason });
  }

  #finish(state: 'closing' | 'closed'): void {
    this.state = state;
    this.atEnd?.();
  }
}
