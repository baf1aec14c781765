/**
 * A connection: the result of the handshake, its byte streams, messages and datagrams, and its end. Sans-IO.
 *
 *   handshaking ──established──▶ open ──close / peer closes / lost──▶ closing ──drained──▶ closed
 *        └──────────failed──────────────────────────────────────────────────────────────────▲
 *
 * The data plane is the core's. This class translates its events, adds the preface of byte streams and keeps the known
 * facts about the peer: key, `info`, and how it is verified. The endpoint creates connections and drives their packets
 * and timers. Not here: packets and ids (endpoint/), the meaning of messages (coap/), when to try which path.
 */
import { type CoreConnection, type CoreConnectionStats, type CoreStreamTotals, EventKind, type KeepAlive } from '../../bindings/index.ts';
import { CloseCode, closeError, isCoreFailure, LocalError, RemoteError, type SvcError } from '../errors/index.ts';
import type { Path } from '../path.ts';
import { ByteStreams } from './byte-streams.ts';
import { decodeReason, encodeReason } from './close-reason.ts';
import type { ConnectionEvent } from './events.ts';
import { Messages } from './messages.ts';
import type { ConnectionOwner, ConnectionState, Established, StreamLimits } from './owner.ts';
import { ConnectionPaths } from './paths.ts';
import { Peer } from './peer.ts';
import { NEVER_RESTED, Rest, type RestStats } from './rest.ts';

const SILENT = 'the peer has not answered for too long';

/** A connection of an endpoint. Created by `Endpoint.connect`, `prepare`, or a handshake of the peer. */
export class Connection {
  /** True when this end started the handshake. */
  readonly initiator: boolean;
  /** What the handshake has shown about the peer. */
  readonly peer = new Peer();
  /** The Initiate packet of a connection made with `prepare`, for the base station to carry. */
  initiate?: Uint8Array;
  /** State that the layer above attaches to the connection; not used here. */
  attachment: unknown = null;

  readonly #owner: ConnectionOwner;
  /** Null when there are none and the connection is idle. */
  #events: ConnectionEvent[] | null = null;
  #state: ConnectionState = 'handshaking';
  #path: Path | null;
  #core: CoreConnection | null = null;
  /** Created when there is more than the first path. */
  #paths: ConnectionPaths | null = null;
  /** Created at first use, and released when idle. */
  #streams: ByteStreams | null = null;
  #messages: Messages | null = null;
  #limits: StreamLimits | null = null;
  #acceptStreams = false;
  /** Created at the first rest. */
  #rest: Rest | null = null;
  #mayRest = false;
  /** When it ends unless the peer acknowledges it; never once that has happened. */
  #confirmBy = Number.POSITIVE_INFINITY;
  #heardAt = 0;
  /** Time of the last timed call, for deadlines of what begins in between. */
  #now = 0;

  constructor(options: { readonly initiator: boolean; readonly path: Path | null; readonly owner: ConnectionOwner }) {
    this.initiator = options.initiator;
    this.#path = options.path;
    this.#owner = options.owner;
  }

  get state(): ConnectionState {
    return this.#state;
  }

  /** The active path. @throws LocalError NOT_CONNECTED for a prepared connection that has none yet */
  get path(): Path {
    const path = this.#paths?.active ?? this.#path;
    if (path === null) throw new LocalError('NOT_CONNECTED', 'the connection has no path yet');
    return path;
  }

  /**
   * The last validated active path: `path`, except between the arrival of a packet of the peer from another address and
   * its answer to a challenge there. Packets forwarded to this peer are sent there. Errors as `path`.
   */
  get validatedPath(): Path {
    return this.#paths?.validated ?? this.path;
  }

  /** Returns whether a path, perhaps a route, uses the socket. Allocates nothing: it is called for every connection. */
  isOn(socket: number): boolean {
    return this.#paths?.isOn(socket) ?? this.#path?.socket === socket;
  }

  /** The path of the packets that the last `transmit` wrote. */
  get transmitPath(): Path {
    return this.#paths?.transmitPath ?? this.path;
  }

  /**
   * All paths, and what an application does with them. A part is released when the connection is idle: read it at each
   * use. @throws LocalError NOT_CONNECTED for a prepared connection that has no path yet
   */
  get paths(): ConnectionPaths {
    this.#paths ??= new ConnectionPaths(this.path, this.#core, this.#owner, () => this.#data());
    return this.#paths;
  }

  /**
   * Byte streams.
   * @throws LocalError NOT_CONNECTED during the handshake, CLOSED after the end
   */
  get streams(): ByteStreams {
    return this.#makeStreams(this.#data());
  }

  /** Messages and datagrams. Errors as for {@link streams}. */
  get messages(): Messages {
    const core = this.#data();
    this.#messages ??= new Messages(core.messages, this.#owner);
    return this.#messages;
  }

  /**
   * Returns the next event, or null. Call it until null after the endpoint reported this connection `active`. Returning
   * a message or datagram gives back its credit, so an application that cannot take more should stop calling.
   */
  nextEvent(): ConnectionEvent | null {
    for (;;) {
      const event = this.#events?.shift();
      if (event !== undefined) return event;
      if (!this.#pump()) return null;
    }
  }

  /** Changes the keep-alive; null disables it. */
  setKeepAlive(keepAlive: KeepAlive | null, now: number): void {
    this.#now = now;
    this.#touch(this.#data().setKeepAlive(keepAlive, now));
  }

  /** Lets the connection rest when it loses its last path or keep-alive finds no answer, instead of ending. */
  allowRest(): void {
    this.#mayRest = true;
    this.#data().allowRest(true);
  }

  /** Why it rests; null while it has a path. */
  get restReason(): SvcError | null {
    return this.#rest?.reason ?? null;
  }

  /** When the last authentic packet came in, ms on the clock of `now`. */
  get heardAt(): number {
    return this.#heardAt;
  }

  /** Time since which it rests; null while it has a path. */
  get restSince(): number | null {
    return this.#rest?.since ?? null;
  }

  /** Ends a resting connection, to free its slot for another one. */
  makeWay(now: number): void {
    this.#now = now;
    if (this.restReason !== null) this.#restOver(new RemoteError('CLOSED', 'it had no path, and made way for another connection'), now);
  }

  /**
   * Requests our next sending key early; false when the peer has not acknowledged a packet under the current one yet.
   */
  updateKey(): boolean {
    return this.#touch(this.#data().updateKey());
  }

  /** Asks the peer for an acknowledgement, so that it learns our current address. */
  ping(): void {
    this.#touch(this.#data().ping());
  }

  /** Ends the connection, in any state. A `closed` event without error follows at once, the closing period later. */
  close(code: number, reason: string, now: number): void {
    this.#now = now;
    if (!this.#hasEnded) this.#end(null, code, reason, now);
  }

  /** Returns the figures of the data plane and of rests; null while there is no data plane. */
  stats(): (CoreConnectionStats & CoreStreamTotals & RestStats) | null {
    if (this.#core === null) return null;
    return { ...this.#core.stats(), ...(this.#rest?.stats(this.#now) ?? NEVER_RESTED) };
  }

  /** Releases what nothing in progress needs: the owner calls it when the connection has been idle for a while. */
  sweep(): void {
    if (this.#streams?.isIdle === true) this.#streams = null;
    this.#messages = null;
    if (this.#events?.length === 0) this.#events = null;
    if (this.#paths?.isIdle === true) {
      this.#path = this.#paths.active;
      this.#paths = null;
    }
    this.#core?.sweep();
  }

  // Methods for the endpoint. After receive, handleTimeout and application calls: transmit until 0,
  // nextTimeout, nextEvent.

  /** Returns true when the packet is authentic. */
  receive(datagram: Uint8Array, start: number, path: Path, now: number): boolean {
    this.#now = now;
    const core = this.#core;
    if (core === null) return false;
    const isKnown = this.#paths === null && path === this.#path;
    const isAuthentic = isKnown ? core.receive(datagram, start, now) : this.paths.receive(core, datagram, start, path, now);
    if (isAuthentic) this.#heardAt = now;
    return isAuthentic;
  }

  /** Returns the number of packets written into the core's slots. */
  transmit(now: number, max: number): number {
    this.#now = now;
    return this.#core?.transmit(now, max) ?? 0;
  }

  nextTimeout(): number {
    if (this.#core === null) return Number.POSITIVE_INFINITY;
    const { POSITIVE_INFINITY: never } = Number;
    return Math.min(
      this.#core.nextTimeout(),
      this.restReason === null ? (this.#streams?.nextTimeout() ?? never) : never,
      this.#hasEnded ? never : Math.min(this.#rest?.nextTimeout() ?? never, this.#confirmBy),
    );
  }

  handleTimeout(now: number): void {
    this.#now = now;
    this.#core?.handleTimeout(now);
    if (this.restReason === null) this.#streams?.handleTimeout(now);
    // The acknowledgement may have come in the same pass.
    if (now >= this.#confirmBy) this.#pump();
    if (this.#hasEnded) return;
    if (now >= this.#confirmBy) this.#end(new RemoteError('TIMEOUT', 'the peer does not answer'), CloseCode.NO_ERROR, '', now);
    else if (this.#rest !== null && now >= this.#rest.nextTimeout()) this.#restOver(this.#rest.error, now);
  }

  // Reports of the endpoint.

  /** The handshake is complete. */
  established(known: Established): void {
    this.#core = known.core;
    this.#path = known.path;
    this.#paths = null;
    this.peer.shown(known);
    this.#limits = known.streams;
    this.#acceptStreams = known.acceptStreams;
    this.#state = 'open';
    if (known.confirmBy !== undefined) this.#confirmBy = known.confirmBy;
    else if (this.initiator) this.#opened();
  }

  /** Responder: the Complete, or a duplicate of it, was verified and needs an acknowledgement. */
  completeReceived(now: number): void {
    this.#now = now;
    this.#core?.completeReceived(now);
  }

  /**
   * Call when a path no longer carries packets. Without another one the connection rests if it may: event `resting`.
   * @returns false when it has no other path and may not rest: its owner ends it
   */
  pathLost(path: Path, now: number, reason: SvcError): boolean {
    this.#now = now;
    if (this.#state === 'handshaking') return path !== this.#path;
    if (this.#state !== 'open') return true;
    const isOther = path !== this.path && this.paths.all.includes(path);
    const isLeft = this.paths.lost(path, now);
    if (isOther) this.#emit({ kind: 'probed', path, answered: false, forgotten: true });
    if (isLeft) return true;
    if (!this.#mayRest) return false;
    this.#data().rest();
    this.#beginRest(reason);
    return true;
  }

  /** Ends the connection without a packet: the handshake failed, the peer lost its state, or the core is dead. */
  lost(error: SvcError, code: number = CloseCode.NO_ERROR): void {
    if (this.#state === 'closed') return;
    const previous = this.#state;
    this.#finish('closed');
    this.#events = null;
    if (previous === 'handshaking') this.#emit({ kind: 'failed', error });
    else if (previous === 'open') this.#emit({ kind: 'closed', error, code, reason: error.message });
  }

  /** Frees the core's slot. Only queued events remain. */
  free(): void {
    const core = this.#core;
    this.#core = null;
    this.#path = this.#paths?.active ?? this.#path;
    this.#paths?.clear();
    this.#paths = null;
    this.#state = 'closed';
    this.#streams?.clear();
    core?.free();
  }

  /** Takes one event from the core; false when there is none, or when the core is dead (the endpoint reports that). */
  #pump(): boolean {
    const core = this.#core;
    if (core === null) return false;
    try {
      const kind = core.nextEvent();
      if (kind === EventKind.NONE) return false;
      this.#translate(kind, core);
      return true;
    } catch (error) {
      if (isCoreFailure(error)) return false;
      throw error;
    }
  }

  #translate(kind: number, core: CoreConnection): void {
    const id = core.eventStream;
    const value = core.eventValue;
    if (kind === EventKind.DRAINED) this.#owner.drained();
    else if (kind >= EventKind.PATH_CHANGED && kind < EventKind.PATH_SUSPECTED) this.#translatePath(kind, id, value, core);
    else if (this.#hasEnded) return;
    else if (kind === EventKind.COMPLETED && this.#confirmBy !== Number.POSITIVE_INFINITY) this.#opened();
    else if (kind === EventKind.MESSAGE) this.#emit({ kind: 'message', data: core.messages.read(id) });
    else if (kind === EventKind.DATAGRAM) this.#emit({ kind: 'datagram', data: core.messages.readDatagram() });
    else if (kind === EventKind.PATH_SUSPECTED) this.#emit({ kind: 'suspected' });
    else if (kind === EventKind.PATH_CHALLENGED) this.#emit({ kind: 'challenged' });
    else if (kind === EventKind.MESSAGES_WRITABLE) this.#emit({ kind: 'messages-writable' });
    else if (kind === EventKind.STREAMS_AVAILABLE) this.#emit({ kind: 'streams-available' });
    else if (kind === EventKind.CRAMPED) this.#emit({ kind: 'cramped', cramped: value === 1 });
    else if (kind === EventKind.RESTED) this.#beginRest(new LocalError('TIMEOUT', SILENT));
    else if (kind === EventKind.RESUMED) this.#resumed();
    else if (kind === EventKind.CLOSED) this.#closedByPeer(value, core);
    else if (kind === EventKind.TIMED_OUT) this.#closed('closing', new LocalError('TIMEOUT', SILENT), CloseCode.NO_ERROR, SILENT);
    else this.#translateStream(kind, id, value, this.#makeStreams(core));
  }

  #opened(): void {
    this.#confirmBy = Number.POSITIVE_INFINITY;
    this.#emit({ kind: 'opened' });
  }

  #translatePath(kind: number, index: number, value: number, core: CoreConnection): void {
    const { paths } = this;
    const event = paths.translate(core, kind, index, value);
    if (event !== null && !this.#hasEnded) this.#emit(event);
    if (paths.isWithoutPath && this.restReason === null && !this.#hasEnded) this.#lastPathFailed(core);
    this.#owner.touched();
  }

  /** Handles events of byte streams. Others (Complete acknowledged, key updated) are of no interest above. */
  #translateStream(kind: number, id: number, value: number, streams: ByteStreams): void {
    // Prefaces and refusals are packets to send.
    if (streams.translate(kind, id, value, this.#now)) this.#owner.touched();
  }

  /** Call when the paths beside a lost one have failed, too. */
  #lastPathFailed(core: CoreConnection): void {
    const reason = new RemoteError('CLOSED', 'no path to the peer is left');
    if (this.#mayRest) {
      core.rest();
      this.#beginRest(reason);
    } else this.#restOver(reason, this.#now);
  }

  #beginRest(reason: SvcError): void {
    this.#rest ??= new Rest();
    this.#rest.begin(reason, this.#now);
    this.#emit({ kind: 'resting', reason });
    this.#owner.eventful();
    this.#owner.touched();
  }

  #resumed(): void {
    this.#streams?.postpone(this.#now - (this.#rest?.since ?? this.#now));
    this.#rest?.end(this.#now);
    const replaced = this.#paths?.noteResumed() ?? false;
    if (replaced) this.#emit({ kind: 'path', path: this.path, reason: 'failed-over' });
    this.#emit({ kind: 'resumed' });
  }

  /** Ends a connection that got no path in time. */
  #restOver(error: SvcError, now: number): void {
    this.#rest?.end(now);
    this.#end(error, CloseCode.ROUTE_CLOSED, error.message, now);
  }

  /** Ends the connection, and notifies the peer in case it can receive. */
  #end(error: SvcError | null, code: number, reason: string, now: number): void {
    try {
      this.#core?.close(code, encodeReason(reason), now);
    } catch (failure) {
      if (isCoreFailure(failure)) return;
      throw failure;
    }
    this.#closed(this.#core === null ? 'closed' : 'closing', error, code, reason);
    this.#owner.eventful();
    if (this.#core === null) this.#owner.drained();
    else this.#owner.touched();
  }

  #closedByPeer(code: number, core: CoreConnection): void {
    const reason = decodeReason(core.closeReason());
    this.#closed('closing', closeError(code, reason), code, reason);
  }

  #closed(state: 'closing' | 'closed', error: SvcError | null, code: number, reason: string): void {
    this.#finish(state);
    this.#emit({ kind: 'closed', error, code, reason });
  }

  #finish(state: 'closing' | 'closed'): void {
    this.#state = state;
    this.#streams?.clear();
  }

  get #hasEnded(): boolean {
    return this.#state === 'closing' || this.#state === 'closed';
  }

  /** The data plane of an open connection. @throws LocalError NOT_CONNECTED before, CLOSED after. */
  #data(): CoreConnection {
    if (this.#state === 'open' && this.#core !== null) return this.#core;
    throw new LocalError(this.#state === 'handshaking' ? 'NOT_CONNECTED' : 'CLOSED', `the connection is ${this.#state}`);
  }

  #makeStreams(core: CoreConnection): ByteStreams {
    this.#streams ??= new ByteStreams(core.streams, this.#owner, {
      limits: this.#limits!,
      accepts: this.#acceptStreams,
      emit: (event) => this.#emit(event),
    });
    return this.#streams;
  }

  #emit(event: ConnectionEvent): void {
    this.#events ??= [];
    this.#events.push(event);
  }

  #touch<T>(result: T): T {
    this.#owner.touched();
    return result;
  }
}
