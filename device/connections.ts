/**
 * The client connections of a device: each gets an increasing number (its ref) and is announced when it opens and
 * closes.
 */

import type { Clock, Log } from '../platform/environment.ts';
import { callback, check } from '../protocol/arguments.ts';
import { CloseCode, LocalError } from '../protocol/errors/index.ts';
import { shortFingerprint } from '../protocol/identity/index.ts';
import { Emitter } from '../runtime/emitter.ts';
import type { PathsReport, PathTimes } from '../runtime/rendezvous/index.ts';
import type { DatagramCounts, DatagramFlow, Session, Stream } from '../runtime/session/index.ts';

/** Number of a connection: from 1, never reused by a device. */
export type ConnectionRef = number;

/**
 * CHANNEL_CHANGED: the connection migrated to another path, so its type and locality may have changed. CRAMPED: bytes
 * of its streams that the application has not read leave so little memory that its further streams get the least
 * window; read or abort them. RELIEVED: that is over.
 */
export type ConnectionEvent = 'OPENED' | 'CLOSED' | 'CHANNEL_CHANGED' | 'CRAMPED' | 'RELIEVED';

const CRAMPED =
  'bytes of streams that the application has not read fill their memory: new streams of this client are slow until some are read or aborted';

/** Reports paths for all connections of a device. */
export type ReportPaths = (session: Session, times: PathTimes) => PathsReport;

/** A client's connection, as the application sees it. */
export class DeviceConnection {
  readonly ref: ConnectionRef;
  readonly #session: Session;
  readonly #paths: ReportPaths;
  readonly #opened: number;
  #migrated: number;
  #passwordUsername: string | null = null;
  #boundUsername: string | null = null;

  /** For the device. @param opened Unix ms */
  constructor(ref: ConnectionRef, session: Session, paths: ReportPaths, opened: number) {
    this.ref = ref;
    this.#session = session;
    this.#paths = paths;
    this.#opened = opened;
    this.#migrated = opened;
  }

  /** For the device: records a migration. @param at Unix ms */
  noteMigration(at: number): void {
    this.#migrated = at;
  }

  /**
   * Reports the current paths: the one in use, those tried, and why the connection is not direct.
   * @throws LocalError INVALID_CONNECTION when the connection is closed
   */
  paths(): PathsReport {
    if (!this.#session.isOpen) throw new LocalError('INVALID_CONNECTION', 'the connection is closed');
    return this.#paths(this.#session, { opened: this.#opened, migrated: this.#migrated });
  }

  /** Full hex fingerprint of the client's key. */
  get clientFingerprint(): string {
    return this.#session.peer.fingerprint;
  }

  /** The first 16 bytes of the fingerprint: for display only, never to distinguish clients. */
  get clientFingerprintHex(): string {
    return shortFingerprint(this.clientFingerprint);
  }

  /** For the device: current numeric address of the client, or of the base station that relays it. */
  get remoteAddress(): string {
    return this.#session.paths.active.address;
  }

  /** Whether the connection is local now (PROTOCOL.md §6). It can change: read it at each decision. */
  get isLocal(): boolean {
    return this.#session.paths.isLocal;
  }

  /** RELAY: through the base station. */
  get type(): 'RELAY' | 'DIRECT' {
    return this.#session.paths.type;
  }

  /** Whether the client proved a password over this connection. False again once it is closed. */
  get isPasswordAuthenticated(): boolean {
    return this.#session.isOpen && this.#passwordUsername !== null;
  }

  /**
   * The user whose password the client proved; empty for the password of open pairing.
   * @throws LocalError INVALID_STATE when the client proved none; INVALID_CONNECTION when the connection is closed
   */
  get passwordAuthenticationUsername(): string {
    if (!this.#session.isOpen) throw new LocalError('INVALID_CONNECTION', 'the connection is closed');
    if (this.#passwordUsername === null) throw new LocalError('INVALID_STATE', 'the connection is not password authenticated');
    return this.#passwordUsername;
  }

  /** The user that `Device.authorizeConnection` bound to it; null without one, and once it is closed. */
  get boundUsername(): string | null {
    return this.#session.isOpen ? this.#boundUsername : null;
  }

  /** Noise handshake hash: the same at both ends, and unique to this connection. */
  get handshakeHash(): Uint8Array {
    return this.#session.peer.handshakeHash;
  }

  /** For the device: the client proved this user's password. */
  setPasswordUsername(username: string): void {
    this.#passwordUsername = username;
    this.#session.peer.markVerified('password');
  }

  /** For the device: the user's new name; null when the password is no longer the user's. */
  changePasswordUsername(username: string | null): void {
    this.#passwordUsername = username;
  }

  /** For the device: binds a user, or none. @throws LocalError INVALID_CONNECTION when the connection is closed */
  bind(username: string | null): void {
    if (!this.#session.isOpen) throw new LocalError('INVALID_CONNECTION', 'the connection is closed');
    this.#boundUsername = username;
  }

  /** For the device: the datagrams of an accepted stream (PROTOCOL.md §12). */
  openFlow(stream: Stream, receive: (payload: Uint8Array) => void, counts: DatagramCounts): DatagramFlow {
    return this.#session.datagrams.open(stream.id, receive, counts);
  }

  /** For the device: our datagrams that were lost on the way to the client. */
  get datagramsLost(): number {
    return this.#session.datagrams.lost;
  }

  /** Whether the connection has not ended. */
  get isOpen(): boolean {
    return this.#session.isOpen;
  }

  /** Resolves when the connection has ended. */
  get closed(): Promise<unknown> {
    return this.#session.closed;
  }

  /**
   * Calls back when the connection ends. Returns the function that stops listening: for short-lived listeners on a long
   * connection.
   */
  onClosed(listener: () => void): () => void {
    check('the listener', listener, callback);
    return this.#session.on('closed', listener);
  }

  /** Closes it; the client sees CLOSED. */
  close(): Promise<void> {
    return this.#session.close();
  }

  /** For the device: closes it because its user was deleted; the client sees FORBIDDEN. */
  withdrawAccess(): Promise<void> {
    return this.#session.close(CloseCode.FORBIDDEN);
  }
}

/** Called when a client's connection opens, closes or migrates to another path. */
export type ConnectionListener = (connection: DeviceConnection, event: ConnectionEvent) => void;

/** All client connections of a device. */
export class Connections {
  readonly #events: Emitter<{ connectionEvent: { connection: DeviceConnection; event: ConnectionEvent } }>;
  readonly #bySession = new WeakMap<Session, DeviceConnection>();
  readonly #byRef = new Map<ConnectionRef, DeviceConnection>();
  readonly #clock: Pick<Clock, 'wallTime'>;
  readonly #log: Log;
  #lastRef = 0;

  constructor(log: Log, clock: Pick<Clock, 'wallTime'>) {
    this.#log = log;
    this.#events = new Emitter(log);
    this.#clock = clock;
  }

  /** Adds a listener. @returns the function that removes it */
  onEvent(listener: ConnectionListener): () => void {
    check('the connection listener', listener, callback);
    return this.#events.on('connectionEvent', ({ connection, event }) => listener(connection, event));
  }

  /** Adds a client's new connection. */
  add(session: Session, paths: ReportPaths): DeviceConnection {
    const connection = new DeviceConnection(++this.#lastRef, session, paths, this.#clock.wallTime());
    this.#bySession.set(session, connection);
    this.#byRef.set(connection.ref, connection);
    session.closed.then(() => {
      this.#byRef.delete(connection.ref);
      this.#emit(connection, 'CLOSED');
    });
    session.on('path', () => {
      connection.noteMigration(this.#clock.wallTime());
      this.#emit(connection, 'CHANNEL_CHANGED');
    });
    session.on('cramped', (cramped) => {
      if (cramped) this.#log.warn(CRAMPED, { connection: connection.ref });
      this.#emit(connection, cramped ? 'CRAMPED' : 'RELIEVED');
    });
    this.#emit(connection, 'OPENED');
    return connection;
  }

  of(session: Session): DeviceConnection {
    const connection = this.#bySession.get(session);
    if (connection === undefined) throw new LocalError('INVALID_CONNECTION', 'the session belongs to no client connection');
    return connection;
  }

  /** @throws LocalError INVALID_CONNECTION when it is closed or never existed */
  byRef(ref: ConnectionRef): DeviceConnection {
    const connection = this.#byRef.get(ref);
    if (connection === undefined) throw new LocalError('INVALID_CONNECTION', `there is no connection ${ref}`);
    return connection;
  }

  get open(): readonly DeviceConnection[] {
    return [...this.#byRef.values()];
  }

  #emit(connection: DeviceConnection, event: ConnectionEvent): void {
    this.#events.emit('connectionEvent', { connection, event });
  }
}
