/**
 * A connection: the result of the handshake, its paths, byte streams, messages and datagrams, each a part. Sans-IO.
 *
 * The data plane is the core's; this class translates its events. The endpoint drives packets and timers. Not here:
 * packets and ids (endpoint/), the meaning of messages (coap/), when to try which path.
 */
import { type CoreConnection, type CoreConnectionStats, type CoreStreamTotals, EventKind, type KeepAlive } from '../../bindings/index.ts';
import { CloseCode, isCoreFailure, LocalError, RemoteError, type SvcError } from '../errors/index.ts';
import type { Path } from '../path.ts';
import { ByteStreams } from './byte-streams.ts';
import { type ConnectionEvent, SIGNALS } from './events.ts';
import { Lifecycle } from './lifecycle.ts';
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

  readonly #life: Lifecycle;
  #path: Path | null;
  /** Created when the first path is not all, and released when it is again. */
  #paths: ConnectionPaths | null = null;
  /** Created at first use, and released when idle. */
  #streams: ByteStreams | null = null;
  #messages: Messages | null = null;
  #limits: StreamLimits | null = null;
  #acceptStreams = false;
  /** Created at the first rest. */
  #rest: Rest | null = null;
  #mayRest = false;
  /** When it ends unless the peer acknowledges it; null once that has happened. A number would be an object of V8. */
  #confirmBy: number | null = null;
  #heardAt = 0;
  /** Time of the last timed call, for deadlines of what begins in between. */
  #now = 0;

  constructor(options: { readonly initiator: boolean; readonly path: Path | null; readonly owner: ConnectionOwner }) {
    this.initiator = options.initiator;
    this.#path = options.path;
    this.#life = new Lifecycle(options.owner);
  }

  get state(): ConnectionState {
    return this.#life.state;
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

  /** The active path and all other known ones. Makes no part: a host looks at those of every connection. */
  get allPaths(): readonly Path[] {
    return this.#paths?.all ?? (this.#path === null ? [] : [this.#path]);
  }

  /** What an application does with paths. A part is released when idle: read it at each use. Errors as `path`. */
  get paths(): ConnectionPaths {
    this.#paths ??= new ConnectionPaths(this.path, this.#life);
    return this.#paths;
  }

  /** Byte streams. @throws LocalError NOT_CONNECTED during the handshake, CLOSED after the end */
  get streams(): ByteStreams {
    return this.#makeStreams(this.#life.data());
  }

  /** Messages and datagrams. Errors as for {@link streams}. */
  get messages(): Messages {
    const core = this.#life.data();
    this.#messages ??= new Messages(core.messages, this.#life.owner);
    return this.#messages;
  }

  /**
   * Returns the next event, or null. Call it until null after the endpoint reported this connection `active`. Returning
   * a message or datagram gives back its credit, so an application that cannot take more should stop calling.
   */
  nextEvent(): ConnectionEvent | null {
    let event = this.#life.nextEvent();
    while (event === undefined && this.#pump()) event = this.#life.nextEvent();
    return event ?? null;
  }

  /** Changes the keep-alive; null disables it. */
  setKeepAlive(keepAlive: KeepAlive | null, now: number): void {
    this.#now = now;
    this.#life.request().setKeepAlive(keepAlive, now);
  }

  /** Lets the connection rest when it loses its last path or keep-alive finds no answer, instead of ending. */
  allowRest(): void {
    this.#mayRest = true;
    this.#life.data().allowRest(true);
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
    this.#rest?.makeWay(now);
  }

  /** Requests our next sending key early; false while the peer has acknowledged nothing under the current one. */
  updateKey(): boolean {
    return this.#life.request().updateKey();
  }

  /** Asks the peer for an acknowledgement, so that it learns our current address. */
  ping(): void {
    this.#life.request().ping();
  }

  /** Ends the connection, in any state. A `closed` event without error follows at once, the closing period later. */
  close(code: number, reason: string, now: number): void {
    this.#now = now;
    if (!this.#life.isOver) this.#life.end(null, code, reason, now);
  }

  /** Returns the figures of the data plane and of rests; null while there is no data plane. */
  stats(): (CoreConnectionStats & CoreStreamTotals & RestStats) | null {
    if (this.#life.core === null) return null;
    return { ...this.#life.core.stats(), ...(this.#rest?.stats(this.#now) ?? NEVER_RESTED) };
  }

  /** Releases what nothing in progress needs: the owner calls it when the connection has been idle for a while. */
  sweep(): void {
    if (this.#streams?.isIdle === true) {
      this.#streams = null;
      this.#life.atEnd = null;
    }
    this.#messages = null;
    this.#life.sweep();
    if (this.#paths?.isIdle === true) {
      this.#path = this.#paths.active;
      this.#paths = null;
    }
    this.#life.core?.sweep();
  }

  // For the endpoint. After receive, handleTimeout and application calls: transmit until 0, nextTimeout, nextEvent.

  /** Returns true when the packet is authentic. */
  receive(datagram: Uint8Array, start: number, path: Path, now: number): boolean {
    this.#now = now;
    const { core } = this.#life;
    if (core === null) return false;
    const isKnown = this.#paths === null && path === this.#path;
    if (!(isKnown ? core.receive(datagram, start, now) : this.paths.receive(core, datagram, start, path, now))) return false;
    this.#heardAt = now;
    return true;
  }

  /** Returns the number of packets written into the core's slots. */
  transmit(now: number, max: number): number {
    this.#now = now;
    return this.#life.core?.transmit(now, max) ?? 0;
  }

  nextTimeout(): number {
    if (this.#life.core === null) return Number.POSITIVE_INFINITY;
    const { POSITIVE_INFINITY: never } = Number;
    return Math.min(
      this.#life.core.nextTimeout(),
      this.restReason === null ? (this.#streams?.nextTimeout() ?? never) : never,
      this.#life.isOver ? never : Math.min(this.#rest?.nextTimeout() ?? never, this.#confirmBy ?? never),
    );
  }

  handleTimeout(now: number): void {
    this.#now = now;
    this.#life.core?.handleTimeout(now);
    if (this.restReason === null) this.#streams?.handleTimeout(now);
    // The acknowledgement may have come in the same pass.
    if (this.#confirmBy !== null && now >= this.#confirmBy) this.#pump();
    if (this.#life.isOver) return;
    if (this.#confirmBy !== null && now >= this.#confirmBy)
      this.#life.end(new RemoteError('TIMEOUT', 'the peer does not answer'), CloseCode.NO_ERROR, '', now);
    else this.#rest?.handleTimeout(now);
  }

  /** The handshake is complete. */
  established(known: Established): void {
    this.#life.opened(known.core);
    this.#path = known.path;
    this.#paths = null;
    this.peer.shown(known);
    this.#limits = known.streams;
    this.#acceptStreams = known.acceptStreams;
    if (known.confirmBy !== undefined) this.#confirmBy = known.confirmBy;
    else if (this.initiator) this.#opened();
  }

  /** Responder: the Complete, or a duplicate of it, was verified and needs an acknowledgement. */
  completeReceived(now: number): void {
    this.#now = now;
    this.#life.core?.completeReceived(now);
  }

  /**
   * Call when a path no longer carries packets. Without another one the connection rests if it may: event `resting`.
   * @returns false when it has no other path and may not rest: its owner ends it
   */
  pathLost(path: Path, now: number, reason: SvcError): boolean {
    this.#now = now;
    if (this.#life.state === 'handshaking') return path !== this.#path;
    if (this.#life.state !== 'open') return true;
    const isOther = path !== this.path && this.allPaths.includes(path);
    const isLeft = this.paths.lost(path, now);
    if (isOther) this.#life.emit({ kind: 'probed', path, answered: false, forgotten: true });
    if (isLeft) return true;
    if (!this.#mayRest) return false;
    this.#life.data().rest();
    this.#beginRest(reason);
    return true;
  }

  /** Ends the connection without a packet: the handshake failed, the peer lost its state, or the core is dead. */
  lost(error: SvcError, code: number = CloseCode.NO_ERROR): void {
    this.#life.lost(error, code);
  }

  /** Frees the core's slot, and forgets all paths, even if their part was released. Only queued events remain. */
  free(): void {
    const paths = this.#path === null ? null : this.paths;
    this.#path = paths?.active ?? null;
    paths?.clear();
    this.#paths = null;
    this.#life.free();
  }

  /** Takes one event from the core; false when there is none, or when the core is dead (the endpoint reports that). */
  #pump(): boolean {
    const core = this.#life.core;
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
    if (kind === EventKind.DRAINED) this.#life.owner.drained();
    else if (kind >= EventKind.PATH_CHANGED && kind < EventKind.PATH_SUSPECTED) this.#translatePath(kind, id, value, core);
    else if (this.#life.isOver) return;
    else if (kind === EventKind.COMPLETED && this.#confirmBy !== null) this.#opened();
    else if (kind === EventKind.MESSAGE) this.#life.emit({ kind: 'message', data: core.messages.read(id) });
    else if (kind === EventKind.DATAGRAM) this.#life.emit({ kind: 'datagram', data: core.messages.readDatagram() });
    else if (SIGNALS[kind] !== undefined) this.#life.emit(SIGNALS[kind]);
    else if (kind === EventKind.CRAMPED) this.#life.emit({ kind: 'cramped', cramped: value === 1 });
    else if (kind === EventKind.RESTED) this.#beginRest(new LocalError('TIMEOUT', SILENT));
    else if (kind === EventKind.RESUMED) this.#resumed();
    else if (kind === EventKind.CLOSED) this.#life.closedByPeer(value, core);
    else if (kind === EventKind.TIMED_OUT) this.#life.timedOut(new LocalError('TIMEOUT', SILENT));
    // Prefaces and refusals are packets to send. Others (Complete acknowledged, key updated) are of no interest above.
    else if (this.#makeStreams(core).translate(kind, id, value, this.#now)) this.#life.owner.touched();
  }

  #opened(): void {
    this.#confirmBy = null;
    this.#life.emit({ kind: 'opened' });
  }

  #translatePath(kind: number, index: number, value: number, core: CoreConnection): void {
    const { paths } = this;
    const event = paths.translate(core, kind, index, value);
    this.#life.owner.touched();
    if (this.#life.isOver) return;
    if (event !== null) this.#life.emit(event);
    if (!paths.isWithoutPath || this.restReason !== null) return;
    // The paths beside a lost one have failed, too.
    const reason = new RemoteError('CLOSED', 'no path to the peer is left');
    if (this.#mayRest) {
      core.rest();
      this.#beginRest(reason);
    } else this.#life.end(reason, CloseCode.ROUTE_CLOSED, reason.message, this.#now);
  }

  #beginRest(reason: SvcError): void {
    this.#rest ??= new Rest(this.#life);
    this.#rest.begin(reason, this.#now);
  }

  #resumed(): void {
    this.#streams?.postpone(this.#now - (this.#rest?.since ?? this.#now));
    this.#rest?.end(this.#now);
    const replaced = this.#paths?.noteResumed() ?? false;
    if (replaced) this.#life.emit({ kind: 'path', path: this.path, reason: 'failed-over' });
    this.#life.emit({ kind: 'resumed' });
  }

  #makeStreams(core: CoreConnection): ByteStreams {
    this.#streams ??= new ByteStreams(core.streams, this.#life, this.#limits!, this.#acceptStreams);
    return this.#streams;
  }
}
