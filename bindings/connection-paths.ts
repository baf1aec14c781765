/** The paths of a connection by their indices, and the connection ids that its packets carry there (PROTOCOL.md §6). */
import { Status } from './codes.generated.ts';
import { type CoreHandle, call, copyOut, keysOfMasks } from './core-internals.ts';
import { LocalError } from './error.ts';
import type { PathOptions } from './options.ts';
import { type CorePathStats, readPathStats } from './stats.ts';

/** Bytes of a route id (PROTOCOL.md §2). */
const ROUTE_ID_LENGTH = 8;

/** Bytes of a connection id, and of a reset token. */
const ID_LENGTH = 8;
const TOKEN_LENGTH = 16;

/** For `receive`: an address without an index; the second one differs from the active path's by the port only. */
export const UNKNOWN_PATH = 4;
export const UNKNOWN_PORT = 5;

/** The ids that both ends may use now, besides or instead of the first two. */
export interface ConnectionIds {
  /** How many more of our ids the peer may get. */
  room: number;
  ours: Uint8Array[];
  /** Without the token of the peer's first id, which the handshake carried. */
  theirs: { id: Uint8Array; resetToken: Uint8Array }[];
}

/** The paths of a connection; errors as for the connection. */
export class CorePaths {
  private readonly of: CoreHandle;

  /** `CoreConnection` makes its parts. */
  constructor(of: CoreHandle) {
    this.of = of;
  }

  /** Puts a Route header with this 8-byte id before every packet; null = none. */
  setRoute(route: Uint8Array | null): void {
    const { transfer } = this.of.check();
    if (route !== null) transfer.set(exactRoute(route));
    call(this.of, (exports, handle) => exports.connectionSetRoute(handle, route === null ? 0 : 1));
  }

  /** Makes a path that the peer arrived on a route: its packets get a Route header with this 8-byte id. */
  setRouteOf(path: number, route: Uint8Array): void {
    const { transfer } = this.of.check();
    transfer.set(exactRoute(route));
    call(this.of, (exports, handle) => exports.connectionSetPathRoute(handle, path));
  }

  /** Adds and challenges a path: PATH_VALIDATED or PATH_FAILED follows. Returns its index, -1 without room. */
  add(options: PathOptions, now: number): number {
    const { transfer } = this.of.check();
    const { route, portOnly = false, keepInterval = 0 } = options;
    if (route !== undefined) transfer.set(exactRoute(route));
    return call(this.of, (exports, handle) =>
      exports.connectionAddPath(handle, route === undefined ? 0 : 1, portOnly ? 1 : 0, keepInterval, now),
    );
  }

  /** Keeps a path while another is active, challenged every `interval` ms (0 = never). False without such a path. */
  keep(path: number, interval: number, now: number): boolean {
    return call(this.of, (exports, handle) => exports.connectionKeepPath(handle, path, interval, now)) === Status.OK;
  }

  /** Challenges a path. False when there is no path of that index. */
  probe(path: number, now: number): boolean {
    return call(this.of, (exports, handle) => exports.connectionProbePath(handle, path, now)) === Status.OK;
  }

  /**
   * Initiator: makes a path active once it has answered a challenge. False at the responder, or without such a path.
   */
  migrate(path: number, now: number): boolean {
    return call(this.of, (exports, handle) => exports.connectionMigrate(handle, path, now)) === Status.OK;
  }

  /** Forgets a path other than the active one. */
  remove(path: number): boolean {
    return call(this.of, (exports, handle) => exports.connectionRemovePath(handle, path)) === Status.OK;
  }

  /**
   * At rest: redirects the active path, which keeps its ids. It is challenged; RESUMED follows, or PATH_FAILED.
   * @param route 8 bytes, for a path behind a Route header
   * @param ceiling largest packet there
   * @returns false when the connection does not rest
   */
  replace(route: Uint8Array | undefined, ceiling: number, now: number): boolean {
    const { transfer } = this.of.check();
    if (route !== undefined) transfer.set(exactRoute(route));
    if (call(this.of, (exports, handle) => exports.connectionReplacePath(handle, route === undefined ? 0 : 1, now)) !== Status.OK)
      return false;
    this.resetPacketSize(ceiling);
    return true;
  }

  /** Whether that path is active and validated, and the peer's newest packets arrive on it. */
  isThere(path: number): boolean {
    return call(this.of, (exports, handle) => exports.connectionIsThere(handle, path)) !== 0;
  }

  /** Returns the statistics of one path, null when there is no path of that index. */
  stats(path: number): CorePathStats | null {
    return call(this.of, (exports, handle) => exports.connectionPathStats(handle, path)) === 0 ? null : readPathStats(this.of.core.results);
  }

  /** Restarts small on another path, whose packets may have up to `ceiling` bytes (RFC 8899 §5.3.3). */
  resetPacketSize(ceiling: number): void {
    call(this.of, (exports, handle) => exports.connectionResetSize(handle, Math.min(ceiling, this.of.maxUdpPayload)));
  }

  /** After PATH_CHANGED: allows packets of up to `ceiling` bytes there. Earlier findings about that path stay. */
  allowPacketSize(ceiling: number): void {
    call(this.of, (exports, handle) => exports.connectionAllowSize(handle, Math.min(ceiling, this.of.maxUdpPayload)));
  }

  /** Enables the exchange of connection ids: IDS follows. False when there is no memory for them. */
  enableIds(): boolean {
    const { transfer } = this.of.check();
    transfer.set(keysOfMasks(this.of));
    return call(this.of, (exports, handle) => exports.connectionEnableIds(handle)) === Status.OK;
  }

  /** Gives the peer another one of our ids (8 bytes) with its reset token (16). False when the peer has its maximum. */
  issueId(id: Uint8Array, resetToken: Uint8Array): boolean {
    const { transfer } = this.of.check();
    transfer.set(id);
    transfer.set(resetToken, ID_LENGTH);
    return call(this.of, (exports, handle) => exports.connectionIssueId(handle)) === Status.OK;
  }

  /** Returns the ids in force, null while there are only the first two. */
  ids(): ConnectionIds | null {
    if (call(this.of, (exports, handle) => exports.connectionIds(handle)) !== Status.OK) return null;
    const [room = 0, ours = 0, theirs = 0] = this.of.core.results;
    const bytes = copyOut(this.of.core, ours * ID_LENGTH + theirs * (ID_LENGTH + TOKEN_LENGTH));
    const at = (index: number) => ours * ID_LENGTH + index * (ID_LENGTH + TOKEN_LENGTH);
    return {
      room,
      ours: Array.from({ length: ours }, (_, index) => bytes.slice(index * ID_LENGTH, (index + 1) * ID_LENGTH)),
      theirs: Array.from({ length: theirs }, (_, index) => ({
        id: bytes.slice(at(index), at(index) + ID_LENGTH),
        resetToken: bytes.slice(at(index) + ID_LENGTH, at(index + 1)),
      })),
    };
  }

  /** Returns the peer's id that our packets on the active path carry. */
  remoteId(): Uint8Array {
    call(this.of, (exports, handle) => exports.connectionRemoteId(handle));
    return copyOut(this.of.core, ID_LENGTH);
  }
}

function exactRoute(route: Uint8Array): Uint8Array {
  if (route.length !== ROUTE_ID_LENGTH)
    throw new LocalError('INVALID_ARGUMENT', `a route id has ${ROUTE_ID_LENGTH} bytes, not ${route.length}`);
  return route;
}
